"""Direct sums of the tree: the sources that no expansion takes, listed, bounded, sorted by what they hold and added.

Targets lie in the rows of a block, as in ``tree_kernels``.
"""
# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np
from numba import njit

from tokensphere.pde.tree_kernels import BLOCK_STRIDE, DX, DY, DZ, GX, GY, GZ, SCALE, TOTAL
from tokensphere.pde.vector_kernels import KERNEL, exponential, single_exponential, wide

BINS = 64


@njit(**KERNEL, fastmath={"contract"})
def list_sources(listed, count, points, log_masses, first, last, tilt):
    """Append sources to the columns of ``listed``: y and log m + ⟨tilt, y⟩; their new number."""
    z0, z1, z2 = tilt[0], tilt[1], tilt[2]
    for j in range(last - first):
        x, y, z = points[0, first + j], points[1, first + j], points[2, first + j]
        listed[0, count + j] = x
        listed[1, count + j] = y
        listed[2, count + j] = z
        listed[3, count + j] = log_masses[first + j] + (z0 * x + z1 * y + z2 * z)
    return count + last - first


@njit(**KERNEL, fastmath={"reassoc", "contract", "nsz"})
def lower_bound(listed, count, d0, d1, d2, exponents, middle):
    """log Σ m e^{⟨z, y⟩} of the listed sources and their mean, at z = z0 + d; exponents: log m + ⟨z, y⟩."""
    wide()
    largest = -np.inf
    for j in range(count):
        exponents[j] = listed[3, j] + (d0 * listed[0, j] + d1 * listed[1, j] + d2 * listed[2, j])
    for j in range(count):
        largest = max(largest, exponents[j])
    total, m0, m1, m2 = 0.0, 0.0, 0.0, 0.0
    for j in range(count):
        w = exponential(exponents[j] - largest)
        total += w
        m0 += w * listed[0, j]
        m1 += w * listed[1, j]
        m2 += w * listed[2, j]
    middle[0], middle[1], middle[2] = m0 / total, m1 / total, m2 / total
    return largest + math.log(total)


@njit(**KERNEL, fastmath={"contract"})
def bound_shares(listed, count, lower, middle, reach, exponents, shares):
    """Bounds of the log shares of F ≥ e^{lower + ⟨dz, middle⟩} on |dz| ≤ reach."""
    wide()
    m0, m1, m2 = middle[0], middle[1], middle[2]
    for j in range(count):
        x, y, z = listed[0, j] - m0, listed[1, j] - m1, listed[2, j] - m2
        shares[j] = (exponents[j] - lower) + reach * math.sqrt(x * x + y * y + z * z)


@njit(**KERNEL)
def cuts(shares, count, omission, minor_share, bins):
    """Up to which log share sources may be left out, and up to which they are minor.

    Shares are binned; bins are left out from the smallest on while they hold at most ``omission`` of F together, then
    are minor while those hold at most ``minor_share``.
    """
    lowest = math.log(omission / max(count, 1))  # what lies below may be left out whatever the rest is
    bins[:] = 0.0
    for j in range(count):
        bins[int(min(max(shares[j] - lowest, -1.0), BINS - 1.0) + 1.0)] += 1.0
    row, spent = 1, bins[0] * math.exp(lowest)
    while row < BINS and spent + bins[row] * math.exp(lowest + row) <= omission:
        spent += bins[row] * math.exp(lowest + row)
        row += 1
    nothing = lowest + (row - 1.0)
    spent = 0.0
    while row < BINS and spent + bins[row] * math.exp(lowest + row) <= minor_share:
        spent += bins[row] * math.exp(lowest + row)
        row += 1
    return nothing, lowest + (row - 1.0)


@njit(**KERNEL)
def pick_sources(listed, count, lower, middle, exponents, shares, nothing, little, picked, minor):
    """Sort the listed sources by their log shares into those to sum (picked) and to sum in single precision (minor).

    Columns of minor are y − middle and the exponent less lower. Returns the numbers of both.
    """
    m0, m1, m2 = middle[0], middle[1], middle[2]
    count_picked, count_minor = 0, 0
    for j in range(count):
        if shares[j] > little:
            picked[0, count_picked], picked[1, count_picked] = listed[0, j], listed[1, j]
            picked[2, count_picked], picked[3, count_picked] = listed[2, j], listed[3, j]
            count_picked += 1
        elif shares[j] > nothing:
            minor[0, count_minor] = np.float32(listed[0, j] - m0)
            minor[1, count_minor] = np.float32(listed[1, j] - m1)
            minor[2, count_minor] = np.float32(listed[2, j] - m2)
            minor[3, count_minor] = np.float32(exponents[j] - lower)
            count_minor += 1
    return count_picked, count_minor


@njit(**KERNEL, fastmath={"reassoc", "contract"})
def raise_scale(block, first, last, picked, count):
    """scale ← max(scale, log m + ⟨z, y⟩ of every picked source), a lower bound of log F up to rounding."""
    wide()
    for i in range(first, last):
        d0, d1, d2 = block[DX * BLOCK_STRIDE + i], block[DY * BLOCK_STRIDE + i], block[DZ * BLOCK_STRIDE + i]
        scale = block[SCALE * BLOCK_STRIDE + i]
        for k in range(count):
            scale = max(scale, picked[3, k] + (picked[0, k] * d0 + picked[1, k] * d1 + picked[2, k] * d2))
        block[SCALE * BLOCK_STRIDE + i] = scale


@njit(**KERNEL, fastmath={"reassoc", "contract", "nsz"})
def add_sources(block, first, last, picked, count):
    """Add single sources to targets first … last−1: columns of ``picked`` are y and log m + ⟨z0, y⟩."""
    wide()
    for i in range(first, last):
        d0, d1, d2 = block[DX * BLOCK_STRIDE + i], block[DY * BLOCK_STRIDE + i], block[DZ * BLOCK_STRIDE + i]
        scale = block[SCALE * BLOCK_STRIDE + i]
        total, g0, g1, g2 = 0.0, 0.0, 0.0, 0.0
        for k in range(count):
            y0, y1, y2 = picked[0, k], picked[1, k], picked[2, k]
            e = exponential((picked[3, k] - scale) + (y0 * d0 + y1 * d1 + y2 * d2))
            total += e
            g0 += e * y0
            g1 += e * y1
            g2 += e * y2
        block[TOTAL * BLOCK_STRIDE + i] += total
        block[GX * BLOCK_STRIDE + i] += g0
        block[GY * BLOCK_STRIDE + i] += g1
        block[GZ * BLOCK_STRIDE + i] += g2


@njit(**KERNEL, fastmath={"reassoc", "contract", "nsz"})
def add_minor_sources(block, first, last, offset, lower, middle, minor, count):
    """Add sources that hold little of F, in single precision, relative to lower + ⟨z − z0 − offset, middle⟩."""
    wide()
    m0, m1, m2 = middle[0], middle[1], middle[2]
    zero = np.float32(0.0)
    for i in range(first, last):
        d0 = block[DX * BLOCK_STRIDE + i] - offset[0]
        d1 = block[DY * BLOCK_STRIDE + i] - offset[1]
        d2 = block[DZ * BLOCK_STRIDE + i] - offset[2]
        f0, f1, f2 = np.float32(d0), np.float32(d1), np.float32(d2)
        total, g0, g1, g2 = zero, zero, zero, zero
        for k in range(count):
            y0, y1, y2 = minor[0, k], minor[1, k], minor[2, k]
            e = single_exponential(minor[3, k] + (y0 * f0 + y1 * f1 + y2 * f2))
            total += e
            g0 += e * y0
            g1 += e * y1
            g2 += e * y2
        factor = math.exp(lower - block[SCALE * BLOCK_STRIDE + i] + (d0 * m0 + d1 * m1 + d2 * m2))
        block[TOTAL * BLOCK_STRIDE + i] += factor * total
        block[GX * BLOCK_STRIDE + i] += factor * (g0 + m0 * total)
        block[GY * BLOCK_STRIDE + i] += factor * (g1 + m1 * total)
        block[GZ * BLOCK_STRIDE + i] += factor * (g2 + m2 * total)
