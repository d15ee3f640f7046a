"""Modified spherical Bessel functions against their closed form, worked out in long decimal arithmetic."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ive

from tokensphere.pde.bessel import scaled_spherical


def closed_form(r: float, degree: int) -> NDArray[np.float64]:
    """e^{−r} i_l(r) upward from sinh and cosh, which loses digits: 400 of them are enough."""
    with localcontext() as context:
        context.prec = 400
        x = Decimal(r)
        decay = (-2 * x).exp()
        values = [(1 - decay) / (2 * x), (1 + decay) / (2 * x) - (1 - decay) / (2 * x * x)]
        for l in range(1, degree):  # noqa: E741
            values.append(values[l - 1] - (2 * l + 1) / x * values[l])
        return np.array([float(value) for value in values[: degree + 1]])


@pytest.mark.parametrize(("r", "degree"), [(0.01, 40), (1.0, 60), (100.0, 150), (1e3, 300), (1e4, 900), (1e6, 3000)])
def test_scaled_spherical_is_its_closed_form(r: float, degree: int) -> None:
    expected = closed_form(r, degree)
    found = scaled_spherical(np.array([r]), degree)[0]
    seen = expected > 1e-290
    np.testing.assert_allclose(found[seen], expected[seen], rtol=2e-14)


def test_many_radii_at_once_agree_with_scipy() -> None:
    radii = np.geomspace(1e-3, 2e3, 40)
    expected = np.sqrt(np.pi / (2 * radii[:, None])) * ive(np.arange(81) + 0.5, radii[:, None])
    np.testing.assert_allclose(scaled_spherical(radii, 80), expected, rtol=2e-13, atol=1e-290)
    assert scaled_spherical(radii, 0).shape == (40, 1)
