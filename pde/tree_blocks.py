"""One target block after another: walk the tree, expand what pays, sum the rest directly."""
# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np
from numba import njit

from tokensphere.pde.tree_groups import expand_node, expand_rings
from tokensphere.pde.tree_kernels import (
    BLOCK_ROWS,
    BLOCK_STRIDE,
    DX,
    DY,
    DZ,
    ERROR,
    GX,
    PART,
    POWERS,
    RINGS,
    SCALE,
    SCRATCH_ROWS,
    STRIDE,
    THIRD_DEGREES,
    TOTAL,
)
from tokensphere.pde.tree_orders import HIGHEST_DEGREE
from tokensphere.pde.tree_sums import (
    BINS,
    add_minor_sources,
    add_sources,
    bound_shares,
    cuts,
    list_sources,
    lower_bound,
    pick_sources,
    raise_scale,
)
from tokensphere.pde.tree_walk import LN2, level_of, walk
from tokensphere.pde.vector_kernels import KERNEL

LARGEST_REACH = 150.0
"""Blocks of larger |z − z0| are summed directly: e^{scale} might be e^{2 reach} below F."""
NEAR, NEAREST = 3.0, 0.3
"""Nodes whose centre has |dz||y0 − ȳ| and |y0 − ȳ| up to this are expanded together."""
FEWEST_EXPANDED = 12  # more than a leaf holds: only leaves are kept whatever e^{⟨z0, y⟩} spans in them
FEWEST_OPENED = 128
"""A node of so many sources whose expansion fails, mostly for the powers of its third variable, is opened further."""
PART_TARGETS, FAR_TARGETS = 104, 48
SINGLE_REACH = 64.0
"""Parts of a block of larger |z − z0| use double precision only: up to here single precision errs by 5e-5 at most. The
direct sum takes blocks in parts of at most PART_TARGETS, and of FAR_TARGETS where |z − z0| is larger than this."""


@njit(**KERNEL)
def part_extent(block, first, last, offset):
    """Offset of the centre of targets first … last−1 from z0, and their largest distance from it."""
    offset[:] = 0.0
    for i in range(first, last):
        offset[0] += block[DX * BLOCK_STRIDE + i] / (last - first)
        offset[1] += block[DY * BLOCK_STRIDE + i] / (last - first)
        offset[2] += block[DZ * BLOCK_STRIDE + i] / (last - first)
    square = 0.0
    for i in range(first, last):
        x, y = block[DX * BLOCK_STRIDE + i] - offset[0], block[DY * BLOCK_STRIDE + i] - offset[1]
        z = block[DZ * BLOCK_STRIDE + i] - offset[2]
        square = max(square, x * x + y * y + z * z)
    return math.sqrt(square) * (1.0 + 1e-9)


@njit(**KERNEL)
def add_directly(block, size, reach, lower, middle, omission, minor_share, listed, count, singles):
    """Sum the listed sources, in parts of the block that pick the sources they need."""
    _, picked, minor, exponents, shares, bins, own_middle, offset = singles
    offset[:] = 0.0
    for k in range(3):
        own_middle[k] = middle[k]
    largest = PART_TARGETS if reach <= SINGLE_REACH else FAR_TARGETS
    parts = (size + largest - 1) // largest
    for part in range(parts):
        first, last = (size * part) // parts, (size * (part + 1)) // parts
        own_reach, own_lower = reach, lower
        if parts > 1:
            own_reach = part_extent(block, first, last, offset) + 1e-13 * reach
            own_lower = lower_bound(listed, count, offset[0], offset[1], offset[2], exponents, own_middle)
            inherited = lower + (offset[0] * middle[0] + offset[1] * middle[1] + offset[2] * middle[2])
            if own_lower < inherited:
                own_lower = inherited
                for k in range(3):
                    own_middle[k] = middle[k]
        else:
            for j in range(count):
                exponents[j] = listed[3, j]
        share = minor_share if own_reach <= SINGLE_REACH else 0.0
        bound_shares(listed, count, own_lower, own_middle, own_reach, exponents, shares)
        nothing, little = cuts(shares, count, omission, share, bins)
        count_picked, count_minor = pick_sources(
            listed, count, own_lower, own_middle, exponents, shares, nothing, little, picked, minor
        )
        if reach > LARGEST_REACH:
            raise_scale(block, first, last, picked, count_picked)
        add_sources(block, first, last, picked, count_picked)
        if count_minor > 0:
            add_minor_sources(block, first, last, offset, own_lower, own_middle, minor, count_minor)


@njit(**KERNEL)
def serve_block(block, size, place, sources, levels, expansion, tolerances, strictness, flat, lists, singles, buffers):
    """Fill TOTAL, GX, GY, GZ, relative to e^{SCALE}, for the first ``size`` targets of the block.

    Returns the largest ratio of the expansions' error to what is allowed: at most 1 if strictness is small enough.
    """
    tilt, reach = place[0], place[1]
    omission, tolerance, minor_share = tolerances
    kept, frontier, following, upper, middle = lists
    points, log_masses, nodes, weights = sources
    listed, exponents, near = singles[0], singles[3], singles[6]
    n = points.shape[1]
    found, lower, middle[0], middle[1], middle[2] = walk(
        tilt, reach, nodes, weights, levels, omission, kept, upper, frontier, following
    )
    # the nodes around ȳ are expanded together, others one by one where that pays, the rest is summed directly
    expandable = reach <= LARGEST_REACH
    count, far = 0, 0
    for s in range(found):
        node = kept[s]
        x, y, z = nodes[node, 0] - middle[0], nodes[node, 1] - middle[1], nodes[node, 2] - middle[2]
        distance = math.sqrt(x * x + y * y + z * z)
        if not expandable or (reach * distance <= NEAR and distance <= NEAREST):
            first, last = node_range(node, n)
            count = list_sources(listed, count, points, log_masses, first, last, tilt)
        else:
            kept[far] = node
            far += 1
    if count > 0:  # these sources alone may give a better bound than Jensen's inequality over all nodes
        better = lower_bound(listed, count, 0.0, 0.0, 0.0, exponents, near)
        if better > lower:
            lower = better
            middle[0], middle[1], middle[2] = near[0], near[1], near[2]
    for i in range(size):
        block[SCALE * BLOCK_STRIDE + i] = lower + (
            middle[0] * block[DX * BLOCK_STRIDE + i]
            + middle[1] * block[DY * BLOCK_STRIDE + i]
            + middle[2] * block[DZ * BLOCK_STRIDE + i]
        )
        for row in range(TOTAL, BLOCK_ROWS):
            block[row * BLOCK_STRIDE + i] = 0.0
    if expandable and count > 0:
        count = expand_rings(block, size, place, lower, middle, listed, count, expansion, strictness * tolerance, flat,
                             buffers)  # fmt: skip
    while far > 0:
        far -= 1
        node = kept[far]
        first, last = node_range(node, n)
        done = 0
        if last - first >= FEWEST_EXPANDED:
            lost = math.log(omission) - level_of(node) * LN2
            done = expand_node(block, size, place, lower, middle, node, first, last, lost, sources, expansion,
                               strictness * tolerance, flat, buffers)  # fmt: skip
        if done == 0 and last - first >= FEWEST_OPENED:
            kept[far], kept[far + 1] = 2 * node + 1, 2 * node + 2
            far += 2
        elif done == 0:
            count = list_sources(listed, count, points, log_masses, first, last, tilt)
    if count > 0:
        add_directly(block, size, reach, lower, middle, omission, minor_share, listed, count, singles)
    worst = 0.0
    for i in range(size):
        error = block[ERROR * BLOCK_STRIDE + i]
        if error > 0.0:
            worst = max(worst, error / (tolerance * block[TOTAL * BLOCK_STRIDE + i]))
    return worst


@njit(**KERNEL)
def node_range(node, n):
    """First and last row of a node's sources."""
    level = level_of(node)
    k = node + 1 - (1 << level)
    return (n * k) >> level, (n * (k + 1)) >> level


@njit(cache=True, nogil=True)
def serve_task(task, tasks, tilts, asked, blocks, sources, levels, expansion, tolerances, flat, mean, log_normaliser):
    """Serve blocks task, task + tasks, …: rows starts[b] … of the ordered tilts (3, n), where asked (n,) is not −1.

    asked is the row of mean (k, d) and log_normaliser (k,) that the results go to.
    """
    starts, sizes, middles, reaches, depths, normals = blocks
    leaves, n = 1 << levels, sources[0].shape[1]
    block = np.zeros(BLOCK_ROWS * BLOCK_STRIDE)
    rows = np.empty(BLOCK_STRIDE, dtype=np.int64)
    buffers = (
        np.zeros(SCRATCH_ROWS * STRIDE),
        np.zeros((POWERS + HIGHEST_DEGREE + 4, PART)),
        np.empty((4, n)),
        np.empty(n),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.zeros((THIRD_DEGREES, HIGHEST_DEGREE + 4, HIGHEST_DEGREE + 4)),
        np.zeros((THIRD_DEGREES, HIGHEST_DEGREE + 1, HIGHEST_DEGREE + 4)),
        np.empty((RINGS, THIRD_DEGREES), dtype=np.int64),
        np.empty(THIRD_DEGREES, dtype=np.int64),
        np.empty(RINGS, dtype=np.int64),
        np.empty(3),
        np.empty((3, 3)),
        np.empty((3, 3)),
        np.empty((RINGS, 4)),
    )
    lists = (
        np.empty(2 * leaves, dtype=np.int64),
        np.empty(2 * leaves, dtype=np.int64),
        np.empty(2 * leaves, dtype=np.int64),
        np.empty(4 * leaves),
        np.empty(3),
    )
    singles = (
        np.empty((4, n)),
        np.empty((4, n)),
        np.empty((4, n), dtype=np.float32),
        np.empty(n),
        np.empty(n),
        np.empty(BINS + 1),
        np.empty(3),
        np.empty(3),
    )
    for b in range(task, len(starts), tasks):
        size = 0
        for i in range(starts[b], starts[b] + sizes[b]):
            if asked[i] >= 0:
                rows[size] = i
                size += 1
        if size == 0:
            continue
        full = ((size + 7) // 8) * 8  # whole vector registers: the last target is repeated
        for i in range(full):
            row = rows[min(i, size - 1)]
            block[DX * BLOCK_STRIDE + i] = tilts[0, row] - middles[b, 0]
            block[DY * BLOCK_STRIDE + i] = tilts[1, row] - middles[b, 1]
            block[DZ * BLOCK_STRIDE + i] = tilts[2, row] - middles[b, 2]
        place = (middles[b], reaches[b], depths[b], normals[b])
        strictness, worst = 1.0, np.inf
        while worst > 1.0:
            worst = serve_block(
                block, full, place, sources, levels, expansion, tolerances, strictness, flat, lists, singles, buffers
            )
            strictness /= 2.0 * max(worst, 1.0)
        for i in range(size):
            total = block[TOTAL * BLOCK_STRIDE + i]
            row = asked[rows[i]]
            log_normaliser[row] = block[SCALE * BLOCK_STRIDE + i] + math.log(total)
            for k in range(mean.shape[1]):
                mean[row, k] = block[(GX + k) * BLOCK_STRIDE + i] / total
