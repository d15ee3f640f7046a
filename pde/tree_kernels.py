"""Kernels of the tree: e^x, moments of a node, evaluation of its expansion, and the direct sum, each for many targets.

With dz = z − z0, dy = y − y0 and vectors p_k, q_k such that Σ p_k q_kᵀ = I, a_k = ⟨p_k, dz⟩, t_k = ⟨q_k, dy⟩:

    Σ_j m_j e^{⟨z, y_j⟩} = e^{⟨z, y0⟩} Σ_j w_j e^{a1 t1 + a2 t2} e^{a3 t3},   w_j = m_j e^{⟨z0, dy_j⟩} ≥ 0.

Targets and sources lie in rows of arrays with fixed strides, so that the loops over them run in vector registers. The
kernels count no references to their arrays: such counts are atomic, and all threads would share them.
"""
# mypy: disable-error-code="no-untyped-def"

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

KERNEL: dict[str, Any] = {"cache": True, "_nrt": False}
"""Options of a function that neither allocates arrays nor counts references to them."""

TILE = 256
STRIDE = 264  # 2112 bytes: rows do not compete for the same cache lines
LARGEST_BLOCK = 2048
BLOCK_STRIDE = 2056
THIRD_DEGREES = 6  # powers 0 … 5 of the third variable
# rows of a block of targets, in steps of BLOCK_STRIDE
DX, DY, DZ, SCALE, TOTAL, GX, GY, GZ, ERROR = range(9)
BLOCK_ROWS = 9
# rows of the scratch of one tile of targets, in steps of STRIDE
A1, A2, A3, E, P, P1, P2, P3, S, S1, S2, R, D = range(13)
SCRATCH_ROWS = 13
# rows of loaded sources, and those that follow in the powers of PART of them: three to work in, then t1^0, t1^1, …
T1, T2, T3, W, X, POWERS = 0, 1, 2, 3, 4, 7
PART = 512
RINGS = 6
BINS = 64

_SPLIT = 6755399441055744.0  # 1.5 · 2**52: adding it leaves the nearest integer in the low bits
_LOG2E, _LN2 = 1.4426950408889634, 0.6931471805599453
# Chebyshev series of e^r on |r| ≤ (log 2)/2, cut after degree 10: error 2 I_11((log 2)/2) = 2e-16
_C1, _C2 = 1.0000000000000067, 0.5000000000000019
_C3, _C4, _C5, _C6 = 0.16666666666554386, 0.04166666666648808, 0.008333333385671627, 0.0013888888952318422
_C7, _C8, _C9, _C10 = 0.00019841170266119668, 2.4801485478808808e-05, 2.7640182413314577e-06, 2.763264082626174e-07
_SMALLEST = -708.0

# the same in single precision, cut after degree 5: error 2e-7
_F_SPLIT, _F_SMALLEST = np.float32(12582912.0), np.float32(-80.0)
_F_LOG2E, _F_LN2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)
_F_SHIFT, _F_BIAS = np.int32(23), np.int32(127 << 23)
_F0, _F1, _F2 = np.float32(1.0000000754958025), np.float32(1.0000000377276752), np.float32(0.4999886910428091)
_F3, _F4, _F5 = np.float32(0.16666415476229118), np.float32(0.0419175301909067), np.float32(0.008375128974237984)


def _wide(_typing):
    def generate(context, builder, _signature, _arguments):
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


wide: Any = intrinsic(_wide)
"""Called in a kernel, lets it use registers of 512 bits where the processor has them; LLVM's own choice is 256."""


@njit(**KERNEL, fastmath={"contract"})
def exponential(x):
    """e^x to 1e-15 (1 + |x|) for x ≤ 709, e^{-708} below: branchless, so that loops vectorise (math.exp does not)."""
    x = max(x, _SMALLEST)
    shifted = x * _LOG2E + _SPLIT
    r = x - (shifted - _SPLIT) * _LN2
    value = _C7 + r * (_C8 + r * (_C9 + r * _C10))
    value = 1.0 + r * (_C1 + r * (_C2 + r * (_C3 + r * (_C4 + r * (_C5 + r * (_C6 + r * value))))))
    exponent = (np.float64(shifted).view(np.int64) << 52) + np.int64(1023 << 52)
    return value * np.int64(exponent).view(np.float64)


@njit(**KERNEL, fastmath={"contract"})
def single_exponential(x):
    """e^x in single precision, to 3e-7 for −80 ≤ x ≤ 80, e^{-80} below."""
    x = max(x, _F_SMALLEST)
    shifted = x * _F_LOG2E + _F_SPLIT
    r = x - (shifted - _F_SPLIT) * _F_LN2
    value = _F0 + r * (_F1 + r * (_F2 + r * (_F3 + r * (_F4 + r * _F5))))
    exponent = np.int32((np.float32(shifted).view(np.int32) << _F_SHIFT) + _F_BIAS)
    return value * np.int32(exponent).view(np.float32)


@njit(**KERNEL, fastmath={"reassoc", "contract", "nsz"})
def project(listed, count, c0, c1, c2, q, loaded, squares):
    """Rows T1, T2, T3 of ``loaded``, t_k = ⟨q_k, y − c⟩, and |y − c|² of listed sources."""
    wide()
    a0, a1, a2 = q[0, 0], q[0, 1], q[0, 2]
    b0, b1, b2 = q[1, 0], q[1, 1], q[1, 2]
    n0, n1, n2 = q[2, 0], q[2, 1], q[2, 2]
    for j in range(count):
        d0, d1, d2 = listed[0, j] - c0, listed[1, j] - c1, listed[2, j] - c2
        loaded[T1, j] = a0 * d0 + a1 * d1 + a2 * d2
        loaded[T2, j] = b0 * d0 + b1 * d1 + b2 * d2
        loaded[T3, j] = n0 * d0 + n1 * d1 + n2 * d2
        squares[j] = d0 * d0 + d1 * d1 + d2 * d2


@njit(**KERNEL, fastmath={"contract"})
def find_rings(count, squares, rings):
    """Ring k of 2^{−k−1} < square / the largest ≤ 2^{−k}, by the binary exponent; at most RINGS − 1."""
    wide()
    largest = 1e-300
    for j in range(count):
        largest = max(largest, squares[j])
    factor = (1.0 - 1e-15) / largest
    for j in range(count):
        ring = np.int64(1022) - (np.float64(factor * squares[j]).view(np.int64) >> np.int64(52))
        rings[j] = min(max(ring, np.int64(0)), np.int64(RINGS - 1))


@njit(**KERNEL, fastmath={"contract"})
def multiply(powers, a, b, result, size):
    """Row ``result`` of ``powers`` = row a times row b."""
    wide()
    for q in range(size):
        powers[result, q] = powers[a, q] * powers[b, q]


@njit(**KERNEL, fastmath={"reassoc", "contract", "nsz"})
def load_sources(loaded, points, log_masses, first, size, tilt, lower, c0, c1, c2, q):
    """Rows T1, T2, T3, W of ``loaded`` for sources first …: t_k = ⟨q_k, y − c⟩, w = m e^{⟨tilt, y⟩ − lower}; Σ w."""
    wide()
    z0, z1, z2 = tilt[0], tilt[1], tilt[2]
    a0, a1, a2 = q[0, 0], q[0, 1], q[0, 2]
    b0, b1, b2 = q[1, 0], q[1, 1], q[1, 2]
    n0, n1, n2 = q[2, 0], q[2, 1], q[2, 2]
    for j in range(size):
        x, y, z = points[0, first + j], points[1, first + j], points[2, first + j]
        loaded[W, j] = (log_masses[first + j] - lower) + (z0 * x + z1 * y + z2 * z)
        x, y, z = x - c0, y - c1, z - c2
        loaded[T1, j] = a0 * x + a1 * y + a2 * z
        loaded[T2, j] = b0 * x + b1 * y + b2 * z
        loaded[T3, j] = n0 * x + n1 * y + n2 * z
    total = 0.0
    for j in range(size):
        w = exponential(loaded[W, j])
        loaded[W, j] = w
        total += w
    return total


@njit(**KERNEL)
def choose_sources(powers, loaded, chosen, first, size):
    """Rows T1, T2, T3, W of ``powers`` from those of chosen sources."""
    for q in range(size):
        j = chosen[first + q]
        for row in range(4):
            powers[row, q] = loaded[row, j]


@njit(**KERNEL)
def copy_sources(powers, loaded, first, size):
    """Rows T1, T2, T3, W of ``powers`` from those of consecutive sources."""
    for row in range(4):
        for q in range(size):
            powers[row, q] = loaded[row, first + q]


@njit(**KERNEL, fastmath={"contract"})
def raise_powers(powers, size, degree):
    """Rows of t1^j, j = 0 … degree."""
    wide()
    for q in range(size):
        powers[POWERS, q] = 1.0
        powers[POWERS + 1, q] = powers[T1, q]
    for row in range(POWERS + 2, POWERS + degree + 1):
        multiply(powers, row - 1, T1, row, size)


@njit(**KERNEL, fastmath={"reassoc", "contract", "nsz"})
def add_products(powers, row, size, out, k, i, j):
    """out[k, i + a, j + b] += Σ of row X + a times row ``row`` + b, for a < 3 and b < 4: twelve sums in registers."""
    wide()
    m00, m01, m02, m03 = 0.0, 0.0, 0.0, 0.0
    m10, m11, m12, m13 = 0.0, 0.0, 0.0, 0.0
    m20, m21, m22, m23 = 0.0, 0.0, 0.0, 0.0
    for q in range(size):
        a, b, c, y = powers[X, q], powers[X + 1, q], powers[X + 2, q], powers[row, q]
        m00 += a * y
        m10 += b * y
        m20 += c * y
        y = powers[row + 1, q]
        m01 += a * y
        m11 += b * y
        m21 += c * y
        y = powers[row + 2, q]
        m02 += a * y
        m12 += b * y
        m22 += c * y
        y = powers[row + 3, q]
        m03 += a * y
        m13 += b * y
        m23 += c * y
    out[k, i, j] += m00
    out[k, i, j + 1] += m01
    out[k, i, j + 2] += m02
    out[k, i, j + 3] += m03
    out[k, i + 1, j] += m10
    out[k, i + 1, j + 1] += m11
    out[k, i + 1, j + 2] += m12
    out[k, i + 1, j + 3] += m13
    out[k, i + 2, j] += m20
    out[k, i + 2, j + 1] += m21
    out[k, i + 2, j + 2] += m22
    out[k, i + 2, j + 3] += m23


@njit(**KERNEL)
def moments(powers, size, degrees, ring, flat, out):
    """out[k, i, j] += Σ w t3^k t2^i t1^j, i + j ≤ degrees[ring, k] (and some more), over loaded sources."""
    for k in range(THIRD_DEGREES):
        degree = degrees[ring, k]
        if degree < 0:
            break
        if k > 0:
            multiply(powers, W, T3, W, size)
        for i in range(0, 1 if flat else degree + 1, 3):
            if i == 0:
                multiply(powers, W, POWERS, X, size)
            else:
                multiply(powers, X + 2, T2, X, size)
            multiply(powers, X, T2, X + 1, size)
            multiply(powers, X + 1, T2, X + 2, size)
            for j in range(0, degree - i + 1, 4):
                add_products(powers, POWERS + j, size, out, k, i, j)


@njit(**KERNEL)
def weigh(found, coefficients, table, binomials, degrees, ring, flat, terms):
    """Moments to coefficients of a3^k a2^i a1^j, added to terms: times binom(i+j, i) q_{i+j} / k!."""
    factorial = 1.0
    for k in range(THIRD_DEGREES):
        degree = degrees[ring, k]
        if degree < 0:
            break
        factorial *= max(k, 1)
        for i in range(1 if flat else degree + 1):
            for j in range(degree - i + 1):
                factor = coefficients[table, degree, i + j] * binomials[i + j, i] / factorial
                terms[k, i, j] += found[k, i, j] * factor


@njit(**KERNEL, fastmath={"contract"})
def plane(scratch, size, terms, k, degree, flat):
    """Horner's rule with both derivatives: S = Σ c_ij a2^i a1^j, S1 = ∂S/∂a1, S2 = ∂S/∂a2."""
    wide()
    for i in range(0 if flat else degree, -1, -1):
        top = ((degree - i) // 4) * 4
        c0, c1, c2, c3 = terms[k, i, top], terms[k, i, top + 1], terms[k, i, top + 2], terms[k, i, top + 3]
        for q in range(size):
            a = scratch[A1 * STRIDE + q]
            scratch[R * STRIDE + q] = ((c3 * a + c2) * a + c1) * a + c0
            scratch[D * STRIDE + q] = (3.0 * c3 * a + 2.0 * c2) * a + c1
        for j in range(top - 4, -1, -4):
            c0, c1, c2, c3 = terms[k, i, j], terms[k, i, j + 1], terms[k, i, j + 2], terms[k, i, j + 3]
            for q in range(size):
                a, r, d = scratch[A1 * STRIDE + q], scratch[R * STRIDE + q], scratch[D * STRIDE + q]
                d = d * a + r
                r = r * a + c3
                d = d * a + r
                r = r * a + c2
                d = d * a + r
                r = r * a + c1
                d = d * a + r
                r = r * a + c0
                scratch[R * STRIDE + q] = r
                scratch[D * STRIDE + q] = d
        if flat or i == degree:
            for q in range(size):
                scratch[S * STRIDE + q] = scratch[R * STRIDE + q]
                scratch[S1 * STRIDE + q] = scratch[D * STRIDE + q]
                scratch[S2 * STRIDE + q] = 0.0
        else:
            for q in range(size):
                b, s = scratch[A2 * STRIDE + q], scratch[S * STRIDE + q]
                scratch[S2 * STRIDE + q] = scratch[S2 * STRIDE + q] * b + s
                scratch[S * STRIDE + q] = s * b + scratch[R * STRIDE + q]
                scratch[S1 * STRIDE + q] = scratch[S1 * STRIDE + q] * b + scratch[D * STRIDE + q]


@njit(**KERNEL, fastmath={"contract"})
def expand(block, first, size, scratch, terms, degrees, flat, exponent, error, c0, c1, c2, p):
    """Add F and ∇F of a group, and their error, relative to e^{exponent + ⟨dz, c⟩}, to ``size`` targets."""
    wide()
    p00, p01, p02 = p[0, 0], p[0, 1], p[0, 2]
    p10, p11, p12 = p[1, 0], p[1, 1], p[1, 2]
    p20, p21, p22 = p[2, 0], p[2, 1], p[2, 2]
    for q in range(size):
        d0 = block[DX * BLOCK_STRIDE + first + q]
        d1 = block[DY * BLOCK_STRIDE + first + q]
        d2 = block[DZ * BLOCK_STRIDE + first + q]
        scratch[A1 * STRIDE + q] = p00 * d0 + p01 * d1 + p02 * d2
        scratch[A2 * STRIDE + q] = p10 * d0 + p11 * d1 + p12 * d2
        scratch[A3 * STRIDE + q] = p20 * d0 + p21 * d1 + p22 * d2
        scratch[E * STRIDE + q] = exponential(
            (exponent - block[SCALE * BLOCK_STRIDE + first + q]) + (c0 * d0 + c1 * d1 + c2 * d2)
        )
    top = 0
    while top + 1 < THIRD_DEGREES and degrees[top + 1] >= 0:
        top += 1
    for q in range(size):
        scratch[P * STRIDE + q] = 0.0
        scratch[P1 * STRIDE + q] = 0.0
        scratch[P2 * STRIDE + q] = 0.0
        scratch[P3 * STRIDE + q] = 0.0
    for k in range(top, -1, -1):
        plane(scratch, size, terms, k, degrees[k], flat)
        for q in range(size):
            a, v = scratch[A3 * STRIDE + q], scratch[P * STRIDE + q]
            scratch[P3 * STRIDE + q] = scratch[P3 * STRIDE + q] * a + v
            scratch[P * STRIDE + q] = v * a + scratch[S * STRIDE + q]
            scratch[P1 * STRIDE + q] = scratch[P1 * STRIDE + q] * a + scratch[S1 * STRIDE + q]
            scratch[P2 * STRIDE + q] = scratch[P2 * STRIDE + q] * a + scratch[S2 * STRIDE + q]
    for q in range(size):
        e, v, g1 = scratch[E * STRIDE + q], scratch[P * STRIDE + q], scratch[P1 * STRIDE + q]
        g2, g3 = scratch[P2 * STRIDE + q], scratch[P3 * STRIDE + q]
        block[TOTAL * BLOCK_STRIDE + first + q] += e * v
        block[ERROR * BLOCK_STRIDE + first + q] += e * error
        block[GX * BLOCK_STRIDE + first + q] += e * (c0 * v + p00 * g1 + p10 * g2 + p20 * g3)
        block[GY * BLOCK_STRIDE + first + q] += e * (c1 * v + p01 * g1 + p11 * g2 + p21 * g3)
        block[GZ * BLOCK_STRIDE + first + q] += e * (c2 * v + p02 * g1 + p12 * g2 + p22 * g3)


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
def weigh_sources(listed, count, lower, loaded):
    """Row W of ``loaded``: m e^{⟨z0, y⟩ − lower} of listed sources."""
    wide()
    for j in range(count):
        loaded[W, j] = exponential(listed[3, j] - lower)


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
