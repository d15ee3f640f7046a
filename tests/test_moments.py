"""The moment of hypothesis H2 against closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import beta as beta_function

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.validation.moments import admissible, complement, mesh_density, moment

Array = NDArray[np.float64]
FRAME = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
LINE, PLANE = FRAME[:, :1], FRAME[:, :2]


def uniform(x: Array) -> Array:
    return np.ones(len(x))


def test_uniform_values_of_the_sphere() -> None:
    assert moment(uniform, LINE, 0.5).value == pytest.approx(2.0, abs=1e-6)
    assert moment(uniform, PLANE, 1.0).value == pytest.approx(np.pi / 2, abs=1e-6)
    assert np.isinf(moment(uniform, LINE, 1.0).value)
    assert np.isinf(moment(uniform, PLANE, 2.0).value)


@given(st.floats(0.0, 0.98))
@settings(max_examples=20, deadline=None)
def test_uniform_moment_of_a_line_is_one_over_one_minus_p(p: float) -> None:
    assert moment(uniform, LINE, p).value == pytest.approx(1 / (1 - p), rel=1e-9)


@given(st.floats(0.0, 0.98))
@settings(max_examples=20, deadline=None)
def test_uniform_moment_on_the_circle_is_a_beta_function(p: float) -> None:
    exact = beta_function((1 - p) / 2, 0.5) / np.pi
    assert moment(uniform, np.eye(2)[:, :1], p).value == pytest.approx(exact, rel=1e-9)


def test_a_polynomial_density_in_a_random_frame() -> None:
    def density(x: Array) -> Array:
        u = x @ FRAME
        return 1 + 0.4 * u[:, 0] + 0.3 * u[:, 1] ** 2

    # the average of u2² at given u1 is (1−u1²)/2; the odd part drops out
    exact = quad(lambda s: s**-0.5 * (1 + 0.15 * (1 - s * s)), 0, 1)[0] / 1.1
    found = moment(density, LINE, 0.5)
    assert found.value == pytest.approx(exact, rel=1e-8)
    assert found.error < 1e-9


def test_supremum_rises_where_the_density_vanishes_and_falls_where_it_is_singular() -> None:
    def power(q: float) -> object:
        return lambda x: np.abs(x @ LINE[:, 0]) ** q

    assert admissible(power(2.0), LINE).supremum == pytest.approx(3.0, abs=1e-6)
    assert admissible(power(-0.5), LINE).supremum == pytest.approx(0.5, abs=1e-6)
    assert admissible(lambda x: (x @ LINE[:, 0] > 0.3).astype(float), LINE).supremum == np.inf
    assert admissible(uniform, PLANE).supremum == 2.0
    # ρ ∝ x1²: M_p = 3/(3−p)
    assert moment(power(2.0), LINE, 2.0).value == pytest.approx(3.0, rel=1e-6)
    assert moment(power(2.0), LINE, 2.9).value == pytest.approx(30.0, rel=1e-3)
    assert np.isinf(moment(power(2.0), LINE, 3.0).value)
    assert np.isinf(moment(power(-0.5), LINE, 0.5).value)


def test_everything_is_e_when_nothing_is_left_over() -> None:
    assert admissible(uniform, np.eye(3)).supremum == np.inf
    assert moment(uniform, np.eye(3), 5.0).value == 1.0


def test_mesh_values_give_the_moment_to_the_order_of_the_mesh() -> None:
    def density(x: Array) -> Array:
        return 1 + 0.4 * (x @ FRAME[:, 0]) + 0.3 * (x @ FRAME[:, 1]) ** 2

    exact = moment(lambda x: density(x), LINE, 0.5).value
    errors = []
    for nside in (8, 16):
        mesh = healpix(nside)
        inside = mesh_density(mesh, cell_averages(mesh, density))
        known = admissible(inside, LINE, scale=2 * mesh.width)
        assert known.supremum == pytest.approx(1.0, abs=0.1)
        errors.append(abs(moment(inside, LINE, 0.5, known).value - exact))
    assert errors[1] < 1e-3


def test_complement_and_refusals() -> None:
    rest = complement(LINE)
    assert rest.shape == (3, 2)
    assert np.abs(rest.T @ LINE).max() < 1e-14
    with pytest.raises(InputError):
        moment(uniform, LINE, -1.0)
    with pytest.raises(InputError):
        moment(uniform, np.eye(4)[:, :1], 0.5)
