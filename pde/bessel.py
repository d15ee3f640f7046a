"""Modified spherical Bessel functions of the first kind, by their ratios."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def scaled_spherical(radii: Array, degree: int) -> Array:
    """e^{−r} i_l(r), (radii, degree + 1), for r > 0, to about a unit of round-off per degree.

    With x_l = (2l+1)/r the recurrence i_{l−1} = i_{l+1} + x_l i_l (Abramowitz and Stegun 10.2.18) makes the ratios
    q_l = i_l/i_{l−1} equal 1/(x_l + q_{l+1}), where an error shrinks by q² a degree: downward from a degree at which
    e^{−35} of the first guess's error is left. Carried is 1 − q_l, small where q is close to 1 and errors shrink
    slowly. i_0 = sinh(r)/r closes the ratios.
    """
    radii = np.asarray(radii, dtype=np.float64)
    first = math.ceil(math.sqrt(degree**2 + 40.0 * float(radii.max()))) + 40
    order = first + 0.5
    length = np.hypot(order, radii)
    fall = (order + order**2 / (length + radii)) / (order + length)  # 1 − r/(order + length): Debye's leading term
    ratios = np.empty((degree + 1, len(radii)))
    for l in range(first - 1, 0, -1):  # noqa: E741
        excess = (2.0 * l + 1.0) / radii - fall
        ratio = 1.0 / (1.0 + excess)
        fall = excess * ratio
        if l <= degree:
            ratios[l] = ratio
    ratios[0] = -np.expm1(-2.0 * radii) / (2.0 * radii)
    return np.ascontiguousarray(np.cumprod(ratios, axis=0).T)
