"""Sources expanded about one centre: a node of the tree about its own, or all around ȳ in rings of their own degrees.

Sources of weights w_j = m_j e^{⟨z0, y_j⟩ − L} take part in e^{−L} F(z) with e^{⟨dz, yc⟩} Σ_j w_j e^{x_j} e^{a3 t3},
x = a1 t1 + a2 t2 (see tree_kernels, dy = y − yc). e^x becomes a polynomial of degree p_k in the part of degree k of
e^{a3 t3}; with |x| ≤ c, |a3 t3| ≤ d, |p3||t3| ≤ g that part weighs d^k/k! in F and g d^{k−1}/(k−1)! in ∇F. As all
w_j ≥ 0, the errors are relative to Σ w_j, whatever the density does inside, and the degrees follow from the share of F
that the node or the ring holds: rings further out have larger c, but hold less. What all expansions miss, by these
bounds, is added up at every target; the block is served again, more strictly, where that is more than the tolerance.
"""
# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np
from numba import njit

from tokensphere.pde.tree_kernels import (
    PART,
    RINGS,
    T3,
    THIRD_DEGREES,
    TILE,
    W,
    choose_sources,
    copy_sources,
    expand,
    find_rings,
    load_sources,
    moments,
    project,
    raise_powers,
    weigh,
    weigh_sources,
)
from tokensphere.pde.tree_orders import HIGHEST_DEGREE, RANGES, RANGES_PER_OCTAVE, SMALLEST_RANGE
from tokensphere.pde.tree_walk import RADIUS, THICKNESS
from tokensphere.pde.vector_kernels import KERNEL

LEAST_COSINE = 0.3
LARGEST_RANGE = 5.0
"""Nodes with larger |dz||dy| are not expanded."""
RING_SHARE, NODE_SHARE, OWN_SHARE = 0.2, 0.15, 0.2
"""Shares of the tolerance that a ring around ȳ, a node, and a node relative to its own part of F may use: together they
may break it, but seldom do."""
MAJOR, MAJOR_COST, MINOR_COST = -10.0, 0.9, 0.5
"""Nanoseconds of one source at one target in the direct sum; less for nodes whose share of F is below e^MAJOR."""
MOMENT, TERM, TARGET, NODE = 0.08, 0.17, 8.0, 600.0
"""Nanoseconds of a term of an expansion, per source and per target; of an expansion at one target, and of a node. They
decide what is expanded, not what comes out within the tolerance."""


@njit(**KERNEL)
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


@njit(**KERNEL)
def choose_degrees(tables, radius, range_, third, stretch, tolerance, degrees, ring):
    """Smallest degrees for errors below tolerance·Σ w, with c = range_, d = third, g = stretch and |dy| ≤ radius.

    Returns the row of the tables and the error of F and of ∇F over Σ w; −1 and inf where no degrees suffice.
    """
    for k in range(THIRD_DEGREES):
        degrees[ring, k] = -1
    row = math.ceil(RANGES_PER_OCTAVE * math.log2(max(range_ / SMALLEST_RANGE, 1.0)))
    if row >= RANGES:
        return -1, np.inf
    value_errors, slope_errors = tables
    factor, growth = math.exp(2.0 * third), math.exp(range_)
    rest, error = 0.5 * tolerance / factor, 0.0
    weight, power = 1.0, 1.0
    for k in range(THIRD_DEGREES + 1):
        if k > 0:
            weight = power * (third / k + stretch)
            power *= third / k
            rest *= 0.5
            if weight * growth <= rest:  # the parts from k on, left out
                return row, factor * (error + weight * growth)
            if k == THIRD_DEGREES:
                break
        degree = 0
        part = weight * (value_errors[row, 0] + radius * slope_errors[row, 0])
        while part > rest and degree < HIGHEST_DEGREE:
            degree += 1
            part = weight * (value_errors[row, degree] + radius * slope_errors[row, degree])
        if part > rest:
            break
        degrees[ring, k] = degree
        error += part
    return -1, np.inf


@njit(**KERNEL)
def third_range(reach, depth, oblique, cosine, thickness):
    """Bounds of |a3 t3| and of |p3||t3| where |⟨q3, dy⟩| ≤ thickness."""
    if oblique:
        return thickness / abs(cosine) * depth, thickness / abs(cosine)
    across = math.sqrt(max(1.0 - cosine * cosine, 0.0))
    return thickness * min(reach, reach * across + depth * abs(cosine)), thickness


@njit(**KERNEL)
def count_terms(degrees, flat):
    """Number of terms a3^k a2^i a1^j of these degrees, and the highest degree."""
    terms, highest = 0.0, 0
    for k in range(THIRD_DEGREES):
        if degrees[k] >= 0:
            highest = max(highest, degrees[k])
            terms += degrees[k] + 1.0 if flat else 0.5 * (degrees[k] + 1.0) * (degrees[k] + 2.0)
    return terms, highest


@njit(**KERNEL)
def expand_node(block, size, place, lower, middle, node, first, last, lost, sources, expansion, tolerance, flat,
                buffers):  # fmt: skip
    """Expand a node about its centre: 1 done, 2 negligible after all, 0 if a direct sum is needed or cheaper.

    Its error may be NODE_SHARE·tolerance of e^{lower + ⟨dz, ȳ⟩}, or OWN_SHARE·tolerance of its own part of F. It is
    negligible where the log of its share of F is at most ``lost``.
    """
    tilt, reach, depth, normal = place
    points, log_masses, nodes, _ = sources
    tables, coefficients, binomials = expansion
    scratch, powers, loaded, _, _, _, found, terms, degrees, _, _, axis, p, q, _ = buffers
    inside, radius = last - first, nodes[node, RADIUS]
    cheapest = size * (TARGET + 0.5 * TERM * (1.0 + 2.0 * reach * radius) ** (1 if flat else 2)) + NODE
    if reach * radius > LARGEST_RANGE or cheapest > MAJOR_COST * size * inside:
        return 0
    c0, c1, c2 = nodes[node, 0], nodes[node, 1], nodes[node, 2]
    axis[0], axis[1], axis[2] = nodes[node, 3], nodes[node, 4], nodes[node, 5]
    oblique, cosine = frames(normal, axis, p, q)
    third, stretch = third_range(reach, depth, oblique, cosine, nodes[node, THICKNESS])
    range_ = reach * radius + third
    total = load_sources(loaded, points, log_masses, first, inside, tilt, lower, c0, c1, c2, q)
    distance = math.sqrt((c0 - middle[0]) ** 2 + (c1 - middle[1]) ** 2 + (c2 - middle[2]) ** 2)
    share = math.log(total) + reach * distance
    if share + range_ <= lost:
        return 2
    wanted = tolerance * max(OWN_SHARE * math.exp(-range_), NODE_SHARE * math.exp(min(-share, 600.0)))
    row, error = choose_degrees(tables, radius, range_, third, stretch, wanted, degrees, 0)
    if row < 0:
        return 0
    number, highest = count_terms(degrees[0], flat)
    direct = (MAJOR_COST if share > MAJOR else MINOR_COST) * inside * size
    if (TERM * size + MOMENT * inside) * number + TARGET * size + NODE > direct:
        return 0
    clear(found, degrees[0])
    clear(terms, degrees[0])
    for start in range(0, inside, PART):
        part = min(PART, inside - start)
        copy_sources(powers, loaded, start, part)
        raise_powers(powers, part, highest)
        moments(powers, part, degrees, 0, flat, found)
    weigh(found, coefficients, row, binomials, degrees, 0, flat, terms)
    for start in range(0, size, TILE):
        part = min(TILE, size - start)
        expand(block, start, part, scratch, terms, degrees[0], flat, lower, total * error, c0, c1, c2, p)
    return 1


@njit(**KERNEL)
def expand_rings(block, size, place, lower, middle, listed, count, expansion, tolerance, flat, buffers):
    """Expand listed sources about ȳ, as far as that pays; the others move to the front: their number.

    The error of a ring may be RING_SHARE·tolerance of e^{lower + ⟨dz, ȳ⟩}.
    """
    reach, depth, normal = place[1], place[2], place[3]
    tables, coefficients, binomials = expansion
    scratch, powers, loaded, squares, rings, chosen, found, terms, degrees, union, places, axis, p, q, stats = buffers
    c0, c1, c2 = middle[0], middle[1], middle[2]
    length = math.sqrt(c0 * c0 + c1 * c1 + c2 * c2)
    axis[0], axis[1], axis[2] = 1.0, 0.0, 0.0
    if length > 1e-9:
        axis[0], axis[1], axis[2] = c0 / length, c1 / length, c2 / length
    oblique, cosine = frames(normal, axis, p, q)
    weigh_sources(listed, count, lower, loaded)
    project(listed, count, c0, c1, c2, q, loaded, squares)
    form_rings(count, loaded, squares, rings, stats)
    union[:] = -1
    saved, error, used = -TARGET * size, 0.0, 0
    for ring in range(RINGS):
        inside, mass, radius = stats[ring, 0], stats[ring, 1], math.sqrt(stats[ring, 2]) + 1e-15
        third, stretch = third_range(reach, depth, oblique, cosine, stats[ring, 3])
        degrees[ring, 0] = -1
        if mass == 0.0:
            continue
        wanted = RING_SHARE * tolerance / mass
        row, relative = choose_degrees(
            tables, radius, reach * radius + third, third, stretch, wanted, degrees, ring
        )
        number = count_terms(degrees[ring], flat)[0]
        gain = (MAJOR_COST * size - MOMENT * number) * inside - NODE if row >= 0 else -1.0
        if gain <= 0.0:
            degrees[ring, 0] = -1
            continue
        stats[ring, 3] = row
        used += int(inside)
        saved += gain
        error += mass * relative
        for k in range(THIRD_DEGREES):
            union[k] = max(union[k], degrees[ring, k])
    if saved <= TERM * size * count_terms(union, flat)[0]:
        return count
    clear(terms, union)
    sort_rings(count, rings, stats, places, chosen)
    for ring in range(RINGS):
        if degrees[ring, 0] < 0:
            continue
        clear(found, degrees[ring])
        highest = count_terms(degrees[ring], flat)[1]
        last = places[ring]
        for first in range(last - int(stats[ring, 0]), last, PART):
            part = min(PART, last - first)
            choose_sources(powers, loaded, chosen, first, part)
            raise_powers(powers, part, highest)
            moments(powers, part, degrees, ring, flat, found)
        weigh(found, coefficients, int(stats[ring, 3]), binomials, degrees, ring, flat, terms)
    for first in range(0, size, TILE):
        expand(block, first, min(TILE, size - first), scratch, terms, union, flat, lower, error, c0, c1, c2, p)
    left = 0
    for j in range(count if used < count else 0):
        if degrees[rings[j], 0] < 0:
            for row in range(4):
                listed[row, left] = listed[row, j]
            left += 1
    return left


@njit(**KERNEL)
def clear(terms, degrees):
    """Zero the terms up to these degrees."""
    for k in range(THIRD_DEGREES):
        if degrees[k] < 0:
            break
        for i in range(degrees[k] + 3):
            for j in range(degrees[k] + 4):
                terms[k, i, j] = 0.0


@njit(**KERNEL)
def form_rings(count, loaded, squares, rings, stats):
    """The ring of every source, and of every ring: number, Σ w, largest |y − center|² and largest |t3|.

    Ring k holds 2^{−k−1} < |y − center|² / the largest ≤ 2^{−k}, the last one all below.
    """
    find_rings(count, squares, rings)
    stats[:] = 0.0
    for j in range(count):
        ring = rings[j]
        stats[ring, 0] += 1.0
        stats[ring, 1] += loaded[W, j]
        stats[ring, 2] = max(stats[ring, 2], squares[j])
        stats[ring, 3] = max(stats[ring, 3], abs(loaded[T3, j]))


@njit(**KERNEL)
def sort_rings(count, rings, stats, places, chosen):
    """chosen: the sources ring after ring; places: where each ring ends in it."""
    first = 0
    for ring in range(RINGS):
        places[ring] = first
        first += int(stats[ring, 0])
    for j in range(count):
        ring = rings[j]
        chosen[places[ring]] = j
        places[ring] += 1
