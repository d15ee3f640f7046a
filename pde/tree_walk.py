"""The walk of the tree for one target block: rigorous bounds, and the nodes that matter to some target of the block.

Bounds, with z = z0 + dz of the block (|dz| ≤ rz) and Y_S the centre of mass of node S (Jensen's inequality):

    log F(z) ≥ L + ⟨dz, ȳ⟩,   L = log Σ_S M_S e^{⟨z0, Y_S⟩},   ȳ = the mean of Y_S under those weights,

over any disjoint nodes S. The part of S in F(z0) is at most e^{u_S}, its part in F(z) at most e^{L + ⟨dz, ȳ⟩ + U_S}:

    u_S = log M_S + ⟨z0, y0⟩ + |z0 − ⟨z0, ŷ⟩ŷ| width + |⟨z0, ŷ⟩| thickness,   U_S = u_S − L + rz (|y0 − ȳ| + radius).

A node of level l is left out if U_S ≤ log(omission) − l log 2: all of them together hold less than `omission` of F.
"""
# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np
from numba import njit

from tokensphere.pde.vector_kernels import KERNEL

FIRST_LEVEL = 4
SPREAD = 12.0
RANGE, SLOPE, LARGEST_RANGE = 1.8, 0.12, 3.5
WIDEST = 0.4
MINOR = -8.0
"""A node is opened no further once ⟨z0, y⟩ varies by at most ± the spread in it, or it holds at most e^MINOR of F, and
⟨dz, y⟩ by at most ± a range, which grows as the node holds less of F, since few terms do then, and its radius is at
most WIDEST: the third variable of an expansion is of second order in it."""
LN2 = math.log(2.0)
# columns of the array of nodes: the centre y0 (3), the axis ŷ (3), then
RADIUS, WIDTH, THICKNESS = 6, 7, 8


@njit(**KERNEL)
def masses_up(points, log_masses, levels, weights):
    """weights (nodes, 4): log M and the centre of mass of every node, from the leaves up; points (3, m)."""
    n = points.shape[1]
    for level in range(levels, -1, -1):
        for k in range(1 << level):
            node = (1 << level) - 1 + k
            largest, total, c0, c1, c2 = -np.inf, 0.0, 0.0, 0.0, 0.0
            if level == levels:
                first, last = (n * k) >> level, (n * (k + 1)) >> level
                for j in range(first, last):
                    largest = max(largest, log_masses[j])
                if largest > -np.inf:
                    for j in range(first, last):
                        w = math.exp(log_masses[j] - largest)
                        total += w
                        c0 += w * points[0, j]
                        c1 += w * points[1, j]
                        c2 += w * points[2, j]
            else:
                largest = max(weights[2 * node + 1, 0], weights[2 * node + 2, 0])
                if largest > -np.inf:
                    for child in range(2 * node + 1, 2 * node + 3):
                        w = math.exp(weights[child, 0] - largest)
                        total += w
                        c0 += w * weights[child, 1]
                        c1 += w * weights[child, 2]
                        c2 += w * weights[child, 3]
            if total > 0.0:
                weights[node, 0] = largest + math.log(total)
                weights[node, 1], weights[node, 2], weights[node, 3] = c0 / total, c1 / total, c2 / total
            else:
                weights[node, 0] = -np.inf
                weights[node, 1], weights[node, 2], weights[node, 3] = 0.0, 0.0, 0.0


@njit(**KERNEL)
def node_exponent(tilt, weights, node):
    """log M + ⟨tilt, centre of mass⟩: at most the node's log F(tilt) (Jensen)."""
    return weights[node, 0] + (tilt[0] * weights[node, 1] + tilt[1] * weights[node, 2] + tilt[2] * weights[node, 3])


@njit(**KERNEL)
def walk(tilt, reach, nodes, weights, levels, omission, kept, upper, frontier, following):
    """Fill kept (nodes that matter) and upper (u_S − L); returns their number, L and ȳ (3 numbers)."""
    size2 = tilt[0] * tilt[0] + tilt[1] * tilt[1] + tilt[2] * tilt[2]
    first_level = min(FIRST_LEVEL, levels)
    waiting = 1 << first_level
    for k in range(waiting):
        frontier[k] = waiting - 1 + k
    count = 0
    # mass already resolved: its largest exponent, sum and first moment
    done_base, done, d0, d1, d2 = -np.inf, 0.0, 0.0, 0.0, 0.0
    lower, m0, m1, m2 = -np.inf, 0.0, 0.0, 0.0
    for level in range(first_level, levels + 1):
        base = done_base
        for k in range(waiting):
            node = frontier[k]
            exponent = node_exponent(tilt, weights, node)
            upper[count + k] = exponent
            base = max(base, exponent)
        shrink = math.exp(done_base - base) if done > 0.0 else 0.0
        total, m0, m1, m2 = done * shrink, d0 * shrink, d1 * shrink, d2 * shrink
        for k in range(waiting):
            exponent = upper[count + k] - base
            if exponent > -30.0:
                node = frontier[k]
                w = math.exp(exponent)
                total += w
                m0 += w * weights[node, 1]
                m1 += w * weights[node, 2]
                m2 += w * weights[node, 3]
        lower = base + math.log(total)
        m0, m1, m2 = m0 / total, m1 / total, m2 / total
        threshold = math.log(omission) - level * LN2
        opened = 0
        for k in range(waiting):
            node = frontier[k]
            if weights[node, 0] == -np.inf:
                continue
            along = tilt[0] * nodes[node, 3] + tilt[1] * nodes[node, 4] + tilt[2] * nodes[node, 5]
            spread = (
                math.sqrt(max(size2 - along * along, 0.0)) * nodes[node, WIDTH] + abs(along) * nodes[node, THICKNESS]
            )
            y0, y1, y2 = nodes[node, 0], nodes[node, 1], nodes[node, 2]
            bound = weights[node, 0] + (tilt[0] * y0 + tilt[1] * y1 + tilt[2] * y2) + spread - lower
            distance = math.sqrt((y0 - m0) ** 2 + (y1 - m1) ** 2 + (y2 - m2) ** 2) + nodes[node, RADIUS]
            if bound + reach * distance <= threshold:
                continue
            share = node_exponent(tilt, weights, node) - lower + reach * distance
            range_ = min(RANGE - SLOPE * min(share, 0.0), LARGEST_RANGE)
            varied = spread > SPREAD and bound + reach * distance > MINOR
            wide = nodes[node, RADIUS] > WIDEST or reach * nodes[node, RADIUS] > range_
            if level < levels and (varied or wide):
                following[opened] = 2 * node + 1
                following[opened + 1] = 2 * node + 2
                opened += 2
                continue
            kept[count] = node
            exponent = node_exponent(tilt, weights, node)
            upper[count] = bound + lower  # made relative to the last L below
            count += 1
            if exponent > done_base:
                shrink = math.exp(done_base - exponent) if done > 0.0 else 0.0
                done, d0, d1, d2, done_base = done * shrink, d0 * shrink, d1 * shrink, d2 * shrink, exponent
            if exponent > done_base - 30.0:
                w = math.exp(exponent - done_base)
                done += w
                d0 += w * weights[node, 1]
                d1 += w * weights[node, 2]
                d2 += w * weights[node, 3]
        waiting = opened
        frontier, following = following, frontier
        if waiting == 0:
            break
    # L is at its best only now: leave out once more
    left = 0
    for k in range(count):
        node = kept[k]
        bound = upper[k] - lower
        y0, y1, y2 = nodes[node, 0], nodes[node, 1], nodes[node, 2]
        distance = math.sqrt((y0 - m0) ** 2 + (y1 - m1) ** 2 + (y2 - m2) ** 2) + nodes[node, RADIUS]
        if bound + reach * distance > math.log(omission) - level_of(node) * LN2:
            kept[left] = node
            upper[left] = bound
            left += 1
    return left, lower, m0, m1, m2


@njit(**KERNEL)
def level_of(node):
    """Level of a node in heap order."""
    level = 0
    while node >= (2 << level) - 1:
        level += 1
    return level
