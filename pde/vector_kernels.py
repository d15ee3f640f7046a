"""What kernels that fill the vector registers share: their options, a request for the widest registers, and e^x."""
# mypy: disable-error-code="no-untyped-def"

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

KERNEL: dict[str, Any] = {"cache": True, "_nrt": False}
"""Options of a function that neither allocates arrays nor counts references to them."""

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
