"""One target block after another: walk the tree, expand what pays, sum the rest directly.

A node expanded about its centre y0 takes part in F(z) with Σ_j w_j e^{x_j} e^{a3 t3}, x = a1 t1 + a2 t2 (see
tree_kernels). e^x becomes a polynomial of degree p_k in the part of degree k of e^{a3 t3}; with |x| ≤ c, |a3 t3| ≤ d,
|p3||t3| ≤ g that part weighs d^k/k! in F and g d^{k−1}/(k−1)! in ∇F. As all w_j ≥ 0, the errors are relative to the
node's own Σ w_j, whatever the density does inside, and the degrees follow from the node's share of F.
"""
# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np
from numba import njit

from tokensphere.pde.tree_kernels import (
    BINS,
    BLOCK_ROWS,
    BLOCK_STRIDE,
    CHUNK_ROWS,
    DX,
    DY,
    DZ,
    GX,
    GY,
    GZ,
    SCALE,
    SCRATCH_ROWS,
    STRIDE,
    THIRD_DEGREES,
    TILE,
    TOTAL,
    add_minor_sources,
    add_sources,
    expand,
    expand_cubic,
    list_sources,
    load_sources,
    lower_bound,
    moments,
    pick_sources,
    raise_scale,
    weigh,
)
from tokensphere.pde.tree_orders import HIGHEST_DEGREE, RANGES, RANGES_PER_OCTAVE, SMALLEST_RANGE
from tokensphere.pde.tree_walk import LN2, RADIUS, THICKNESS, level_of, node_exponent, walk

LARGEST_REACH = 150.0
"""Blocks of larger |z − z0| are summed directly: e^{scale} might be e^{2 reach} below F."""
FEWEST_EXPANDED = 12
WIDEST_EXPANDED = 0.6
LARGEST_RANGE, LARGEST_THIRD = 3.5, 0.5
LEAST_COSINE = 0.3
PART_TARGETS = 32
SINGLE_REACH = 64.0
"""Parts of a block of larger |z − z0| use double precision only: up to here single precision errs by 5e-5 at most."""
MAJOR, MAJOR_COST, MINOR_COST = -10.0, 1.5, 0.8
"""Nanoseconds of one source at one target in the direct sum; less for nodes whose share of F is below e^MAJOR, since
parts of the block leave such sources out. The other costs in `expand_node` were measured on the same machine."""


@njit(cache=True)
def frames(normal, axis, p, q):
    """Vectors p_k (rows of p), q_k (rows of q) with Σ p_k q_kᵀ = I, p_2 = q_2 normal to the axis; oblique or not.

    Oblique, where the axis is not nearly tangent to the block: ⟨p_3, dz⟩ and ⟨q_3, dy⟩ are both of second order.
    Otherwise p = q and only the latter is.
    """
    cosine = normal[0] * axis[0] + normal[1] * axis[1] + normal[2] * axis[2]
    r0 = normal[1] * axis[2] - normal[2] * axis[1]
    r1 = normal[2] * axis[0] - normal[0] * axis[2]
    r2 = normal[0] * axis[1] - normal[1] * axis[0]
    length = math.sqrt(r0 * r0 + r1 * r1 + r2 * r2)
    oblique = abs(cosine) > LEAST_COSINE and length > 1e-6
    if length <= 1e-6:
        k = 2 if abs(axis[2]) < 0.6 else 0
        r0, r1, r2 = -axis[k] * axis[0], -axis[k] * axis[1], -axis[k] * axis[2]
        if k == 2:
            r2 += 1.0
        else:
            r0 += 1.0
        length = math.sqrt(r0 * r0 + r1 * r1 + r2 * r2)
    r0, r1, r2 = r0 / length, r1 / length, r2 / length
    p[1, 0], p[1, 1], p[1, 2] = r0, r1, r2
    p[0, 0] = r1 * axis[2] - r2 * axis[1]
    p[0, 1] = r2 * axis[0] - r0 * axis[2]
    p[0, 2] = r0 * axis[1] - r1 * axis[0]
    for k in range(3):
        q[0, k], q[1, k], q[2, k], p[2, k] = p[0, k], p[1, k], axis[k], axis[k]
    if oblique:
        q[0, 0] = r1 * normal[2] - r2 * normal[1]
        q[0, 1] = r2 * normal[0] - r0 * normal[2]
        q[0, 2] = r0 * normal[1] - r1 * normal[0]
        for k in range(3):
            p[0, k] /= cosine
            p[2, k] = normal[k] / cosine
    return oblique, cosine


@njit(cache=True)
def choose_degrees(tables, radius, range_, third, stretch, tolerance, degrees):
    """Smallest degrees for errors below tolerance·Σ w, with c = range_, d = third, g = stretch and |dy| ≤ radius.

    Returns the row of the tables and the number of terms, inf where no degrees suffice.
    """
    value_errors, slope_errors = tables
    degrees[:] = -1
    row = math.ceil(RANGES_PER_OCTAVE * math.log2(max(range_ / SMALLEST_RANGE, 1.0)))
    if row >= RANGES:
        return -1, np.inf
    rest, terms, highest = 0.5 * tolerance / math.exp(third), 0.0, HIGHEST_DEGREE
    weight, power, growth = 1.0, 1.0, math.exp(range_)
    for k in range(THIRD_DEGREES + 1):
        if k > 0:
            weight = power * (third / k + stretch)
            power *= third / k
            rest *= 0.5
            if weight * growth <= rest:  # the parts from k on, left out
                return row, terms
            if k == THIRD_DEGREES:
                break
        degree = 0
        while degree <= highest and weight * (value_errors[row, degree] + radius * slope_errors[row, degree]) > rest:
            degree += 1
        if degree > highest:
            break
        degrees[k] = degree
        terms += 0.5 * (degree + 1) * (degree + 2)
    return -1, np.inf


@njit(cache=True)
def expand_node(node, level, first, last, nodes_kept, block, size, place, middle, lower, sources, expansion, omission,
                tolerance, flat, buffers):
    """Try to serve a node by an expansion: 1 done, 2 negligible after all, 0 if a direct sum is needed or cheaper."""
    tilt, reach, depth, normal = place
    points, log_masses, nodes, weights = sources
    tables, coefficients, binomials = expansion
    scratch, chunk, loaded, terms, degrees, p, q = buffers
    radius = nodes[node, RADIUS]
    center, axis = nodes[node, 0:3], nodes[node, 3:6]
    inside = last - first
    oblique, cosine = frames(normal, axis, p, q)
    stretch = nodes[node, THICKNESS]
    if oblique:
        stretch /= abs(cosine)
        third = stretch * depth
    else:
        third = stretch * min(reach, reach * math.sqrt(max(1.0 - cosine * cosine, 0.0)) + depth * abs(cosine))
    range_ = reach * radius + third
    least = 5.0 * size + 4.0 * inside + 800.0
    if third > LARGEST_THIRD or range_ > LARGEST_RANGE or least > MAJOR_COST * inside * size:
        return 0
    along = tilt[0] * center[0] + tilt[1] * center[1] + tilt[2] * center[2]
    base = node_exponent(tilt, weights, node) - along
    total = load_sources(loaded, points, log_masses, first, last, base, tilt, center, q)
    distance = math.sqrt((center[0] - middle[0]) ** 2 + (center[1] - middle[1]) ** 2 + (center[2] - middle[2]) ** 2)
    share = math.log(total) + base + along - lower + reach * distance
    if share + range_ <= math.log(omission) - level * LN2:
        return 2
    # relative to the node's own part of F, or to F itself where the node holds a small share of it
    wanted = tolerance * max(math.exp(-range_), math.exp(min(-share, 600.0)) / nodes_kept)
    row, count_terms = choose_degrees(tables, radius, range_, third, stretch, wanted, degrees)
    direct = (MAJOR_COST if share > MAJOR else MINOR_COST) * inside * size
    if least + (0.2 * size + 0.15 * inside) * count_terms > direct:
        return 0
    for k in range(THIRD_DEGREES):
        if degrees[k] >= 0:
            terms[k] = 0.0
    for start in range(0, inside, TILE):
        moments(chunk, loaded, start, min(TILE, inside - start), degrees, flat, terms)
    weigh(terms, coefficients[row], binomials, degrees, flat)
    if degrees[0] <= 3 and degrees[1] < 0:
        for i in range(1 if flat else degrees[0] + 1, 4):
            terms[0, i] = 0.0
        expand_cubic(block, size, terms, base + along, center, p)
    else:
        for start in range(0, size, TILE):
            expand(block, start, min(TILE, size - start), scratch, terms, degrees, flat, base + along, center, p)
    return 1


@njit(cache=True)
def add_directly(block, size, reach, lower, middle, omission, minor_share, listed, count, singles):
    """Sum the listed sources, in parts of at most PART_TARGETS targets that pick the sources they need."""
    picked, minor, exponents, shares, bins = singles
    own_middle, offset = np.empty(3), np.empty(3)
    parts = (size + PART_TARGETS - 1) // PART_TARGETS
    for part in range(parts):
        first, last = (size * part) // parts, (size * (part + 1)) // parts
        d0, d1, d2 = 0.0, 0.0, 0.0
        for i in range(first, last):
            d0 += block[DX * BLOCK_STRIDE + i] / (last - first)
            d1 += block[DY * BLOCK_STRIDE + i] / (last - first)
            d2 += block[DZ * BLOCK_STRIDE + i] / (last - first)
        square = 0.0
        for i in range(first, last):
            x, y = block[DX * BLOCK_STRIDE + i] - d0, block[DY * BLOCK_STRIDE + i] - d1
            z = block[DZ * BLOCK_STRIDE + i] - d2
            square = max(square, x * x + y * y + z * z)
        own_reach = math.sqrt(square) * (1.0 + 1e-9) + 1e-13 * reach
        own_lower = lower_bound(listed, count, d0, d1, d2, exponents, own_middle)
        inherited = lower + (d0 * middle[0] + d1 * middle[1] + d2 * middle[2])
        if own_lower < inherited:
            own_lower = inherited
            own_middle[0], own_middle[1], own_middle[2] = middle[0], middle[1], middle[2]
        share = minor_share if own_reach <= SINGLE_REACH else 0.0
        count_picked, count_minor = pick_sources(
            listed, count, own_lower, own_middle, own_reach, omission, share, exponents, shares, bins, picked, minor
        )
        if reach > LARGEST_REACH:
            raise_scale(block, first, last, picked, count_picked)
        add_sources(block, first, last, picked, count_picked)
        if count_minor > 0:
            offset[0], offset[1], offset[2] = d0, d1, d2
            add_minor_sources(block, first, last, offset, own_lower, own_middle, minor, count_minor)


@njit(cache=True)
def serve_block(block, size, place, sources, levels, expansion, tolerances, flat, lists, singles, buffers):
    """Fill TOTAL, GX, GY, GZ, relative to e^{SCALE}, for the first ``size`` targets of the block."""
    tilt, reach = place[0], place[1]
    omission, tolerance, minor_share = tolerances
    kept, frontier, following, upper = lists
    points, log_masses, nodes, weights = sources
    n = points.shape[1]
    middle = np.empty(3)
    count, lower, middle[0], middle[1], middle[2] = walk(
        tilt, reach, size, n, nodes, weights, levels, omission, kept, upper, frontier, following
    )
    for i in range(size):
        block[SCALE * BLOCK_STRIDE + i] = lower + (
            middle[0] * block[DX * BLOCK_STRIDE + i]
            + middle[1] * block[DY * BLOCK_STRIDE + i]
            + middle[2] * block[DZ * BLOCK_STRIDE + i]
        )
        block[TOTAL * BLOCK_STRIDE + i] = 0.0
        block[GX * BLOCK_STRIDE + i], block[GY * BLOCK_STRIDE + i], block[GZ * BLOCK_STRIDE + i] = 0.0, 0.0, 0.0
    listed = singles[0]
    count_listed = 0
    for s in range(count):
        node = kept[s]
        level = level_of(node)
        k = node + 1 - (1 << level)
        first, last = (n * k) >> level, (n * (k + 1)) >> level
        done = 0
        if last - first >= FEWEST_EXPANDED and nodes[node, RADIUS] <= WIDEST_EXPANDED and reach <= LARGEST_REACH:
            done = expand_node(node, level, first, last, count, block, size, place, middle, lower, sources, expansion,
                               omission, tolerance, flat, buffers)
        if done == 0:
            count_listed = list_sources(listed, count_listed, points, log_masses, first, last, tilt)
    if count_listed > 0:
        add_directly(block, size, reach, lower, middle, omission, minor_share, listed, count_listed, singles[1:])


@njit(cache=True, nogil=True)
def serve_task(task, tasks, tilts, serve, blocks, sources, levels, expansion, tolerances, flat, mean, log_normaliser):
    """Serve blocks task, task + tasks, …: rows starts[b] … of the ordered tilts (3, n); fills mean, log_normaliser."""
    starts, sizes, middles, reaches, depths, normals = blocks
    leaves, n = 1 << levels, sources[0].shape[1]
    block = np.zeros(BLOCK_ROWS * BLOCK_STRIDE)
    rows = np.empty(BLOCK_STRIDE, dtype=np.int64)
    buffers = (
        np.zeros(SCRATCH_ROWS * STRIDE),
        np.zeros(CHUNK_ROWS * STRIDE),
        np.empty((4, n)),
        np.zeros((THIRD_DEGREES, HIGHEST_DEGREE + 1, HIGHEST_DEGREE + 4)),
        np.empty(THIRD_DEGREES, dtype=np.int64),
        np.empty((3, 3)),
        np.empty((3, 3)),
    )
    lists = (
        np.empty(2 * leaves, dtype=np.int64),
        np.empty(2 * leaves, dtype=np.int64),
        np.empty(2 * leaves, dtype=np.int64),
        np.empty(4 * leaves),
    )
    singles = (
        np.empty((4, n)),
        np.empty((4, n)),
        np.empty((4, n), dtype=np.float32),
        np.empty(n),
        np.empty(n),
        np.empty(BINS + 1),
    )
    for b in range(task, len(starts), tasks):
        size = 0
        for i in range(starts[b], starts[b] + sizes[b]):
            if serve[i]:
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
        serve_block(block, full, place, sources, levels, expansion, tolerances, flat, lists, singles, buffers)
        for i in range(size):
            total = block[TOTAL * BLOCK_STRIDE + i]
            log_normaliser[rows[i]] = block[SCALE * BLOCK_STRIDE + i] + math.log(total)
            mean[0, rows[i]] = block[GX * BLOCK_STRIDE + i] / total
            mean[1, rows[i]] = block[GY * BLOCK_STRIDE + i] / total
            mean[2, rows[i]] = block[GZ * BLOCK_STRIDE + i] / total
