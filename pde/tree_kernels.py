"""Kernels of the tree: moments of a node and evaluation of its expansion, for many sources or targets at once.

With dz = z − z0, dy = y − y0 and vectors p_k, q_k such that Σ p_k q_kᵀ = I, a_k = ⟨p_k, dz⟩, t_k = ⟨q_k, dy⟩:

    Σ_j m_j e^{⟨z, y_j⟩} = e^{⟨z, y0⟩} Σ_j w_j e^{a1 t1 + a2 t2} e^{a3 t3},   w_j = m_j e^{⟨z0, dy_j⟩} ≥ 0.

Targets and sources lie in rows of arrays with fixed strides, so that the loops over them run in vector registers. The
kernels count no references to their arrays: such counts are atomic, and all threads would share them.
"""
# mypy: disable-error-code="no-untyped-def"

import numpy as np
from numba import njit

from tokensphere.pde.vector_kernels import KERNEL, exponential, wide

TILE = 256
STRIDE = 264  # 2112 bytes: rows do not compete for the same cache lines
LARGEST_BLOCK = 4096
BLOCK_STRIDE = 4104
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


@njit(**KERNEL, fastmath={"contract"})
def weigh_sources(listed, count, lower, loaded):
    """Row W of ``loaded``: m e^{⟨z0, y⟩ − lower} of listed sources."""
    wide()
    for j in range(count):
        loaded[W, j] = exponential(listed[3, j] - lower)


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
