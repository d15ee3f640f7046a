"""Phases read off curves with known crossings, and the exits that theory predicts."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde.attention import Attention
from tokensphere.validation.cases.terminal import exit_time
from tokensphere.validation.cases.theorem import attention_of
from tokensphere.validation.phases import (
    Thresholds,
    crossing_time,
    decay_at_maximiser,
    distance_to_eigenspace,
    predict_exit,
    read_phases,
    resolution,
)
from tokensphere.validation.projection import Projection

Array = NDArray[np.float64]


def rotation(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def test_crossings_are_exact_for_exponentials() -> None:
    times = np.linspace(0, 10, 41)
    assert crossing_time(times, np.exp(-times), 0.2, rising=False) == pytest.approx(np.log(5))
    assert crossing_time(times, 1e-3 * np.exp(times), 0.2, rising=True) == pytest.approx(np.log(200))
    assert crossing_time(times, np.exp(-times), 1e-9, rising=False) == np.inf
    assert crossing_time(times, np.full(41, 0.1), 0.2, rising=False) == 0.0
    assert crossing_time(times, np.where(times > 5, 1.0, 0.0), 0.5, rising=True) == pytest.approx(5.25)


def curve(times: Array) -> Array:
    """Decay at rate 1, a plateau at .05 and a departure at rate 2 about t = 20."""
    return np.exp(-times) + 0.05 + 0.05 * np.exp(2 * (times - 20))


def test_phases_of_a_curve_in_closed_form() -> None:
    times = np.linspace(0, 22, 2201)
    found = read_phases(times, curve(times))
    assert found.concentration_time == pytest.approx(-np.log(0.15), abs=1e-3)
    assert found.exit_time == pytest.approx(20 + np.log(2.0) / 2, abs=1e-3)
    # the sum of the two exponentials is smallest where e^{−t} = .1 e^{2(t−20)}
    lowest = (40 + np.log(10)) / 3
    assert found.plateau == pytest.approx(float(curve(np.array([lowest]))[0]), rel=1e-4)
    assert found.plateau_begin < lowest < found.plateau_end
    later = read_phases(times, curve(times), Thresholds(concentrated=0.1, inside=0.06, outside=0.3))
    assert later.concentration_time == pytest.approx(-np.log(0.05), abs=1e-3)
    assert later.exit_time == pytest.approx(20 + np.log(5.0) / 2, abs=1e-3)


def test_a_curve_that_still_falls_has_no_plateau_and_no_exit() -> None:
    times = np.linspace(0, 5, 101)
    found = read_phases(times, np.exp(-times))
    assert np.isnan(found.plateau)
    assert found.plateau_begin == found.exit_time == np.inf
    never = read_phases(times, 1 + 0 * times)
    assert never.concentration_time == np.inf


def test_refusals() -> None:
    with pytest.raises(InputError):
        Thresholds(inside=0.3, outside=0.1)
    with pytest.raises(InputError):
        read_phases(np.array([0.0, 1.0, 1.0]), np.ones(3))


def test_distance_to_an_eigenspace_in_closed_form() -> None:
    mesh = healpix(32)
    uniform = np.full(mesh.cells, 1 / (4 * np.pi))
    # ∫2(1−|x1|)dσ = 1 for a line; ∫2(1−√(1−x3²))dσ = 2−π/2 for a plane
    assert distance_to_eigenspace(mesh, uniform, np.eye(3)[:, :1]) == pytest.approx(1.0, abs=1e-3)
    both = distance_to_eigenspace(mesh, np.array([uniform, 2 * uniform]), np.eye(3)[:, :2])
    assert both == pytest.approx(np.sqrt(2 - np.pi / 2), abs=1e-3)


def test_case_a_and_b_and_staying() -> None:
    a = predict_exit(Attention(np.eye(2), np.diag([1.0, 0.1]), np.diag([1.0, 2.0]), 40.0))
    assert (a.case, a.slope) == ("A", pytest.approx(1 / 1.6 + 0.5))
    b = predict_exit(attention_of(np.diag([1.0, -0.6]), rotation(np.pi / 4), 60.0))
    assert b.case == "B"
    assert b.slope == pytest.approx((1 - np.sqrt(0.5)) / 1.6)
    assert b.time == pytest.approx(60 * b.slope)
    stays = predict_exit(attention_of(np.diag([1.0, 0.3]), np.eye(2), 40.0))
    assert (stays.case, stays.time) == ("stays", np.inf)
    smear = predict_exit(Attention(np.eye(2), np.eye(2), np.diag([-1.0, -2.0]), 40.0))
    assert smear.case == "open"
    plane = predict_exit(attention_of(np.diag([1.0, 1.0, 0.3]), np.eye(3), 40.0))
    assert plane.case == "open"
    assert predict_exit(Attention(np.eye(2), np.eye(2), np.array([[1.0, 1.0], [0.0, 1.0]]), 4.0)).case == "open"


def test_on_the_sphere_the_decay_is_not_the_gap() -> None:
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    for values, decay in (((1.0, 0.3, -0.6), 0.7 + 1.8), ((1.0, -0.6, -0.6), 1.6)):
        assert decay_at_maximiser(Projection(np.diag(values)), turn) == pytest.approx(decay)
    # y* in the plane of e1 and e2 never meets e3: then the smallest eigenvalue it has a part in counts
    plane = np.eye(3)
    plane[:2, :2] = rotation(0.5)
    assert decay_at_maximiser(Projection(np.diag([1.0, 0.3, -0.6])), plane.T) == pytest.approx(0.7 - 0.9)


def test_the_decay_is_that_of_the_zero_temperature_density() -> None:
    from tokensphere.validation import exact_zero_temperature as zero

    matrix = np.diag([1.0, 0.3, -0.6])
    transposed = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0] @ np.diag([1.0, 0.7, 1.4])
    target = transposed[:, :1].T / np.linalg.norm(transposed[:, 0])
    late = [
        float(zero.density(matrix, transposed.T, lambda x: np.ones(len(x)), target, t)[0]) for t in (6.0, 9.0)
    ]
    measured = np.log(late[0] / late[1]) / 3
    assert decay_at_maximiser(Projection(matrix), transposed.T) == pytest.approx(measured, rel=1e-2)


def test_resolution_says_when_the_mesh_is_too_coarse() -> None:
    attention = Attention(np.eye(2), np.diag([1.0, 0.1]), np.diag([1.0, 2.0]), 640.0)
    coarse = resolution(circle(1024), attention)
    assert not coarse.fine_enough
    assert coarse.needed == 2048
    assert "2048" in coarse.reason
    assert resolution(circle(2048), attention).fine_enough
    assert resolution(circle(64), Attention(np.eye(2), np.eye(2), np.eye(2), np.inf)).fine_enough


def test_exits_of_both_cases_on_the_circle() -> None:
    # theory §1.5: 2.52 at β = 10 (case A); 4.99 at β = 30 (case B)
    a = Attention(np.eye(2), np.diag([1.0, 0.1]), np.diag([1.0, 2.0]), 10.0)
    assert exit_time(a, 256, 3.0, Thresholds(inside=0.3, outside=0.3)) == pytest.approx(2.52, rel=0.03)
    b = attention_of(np.diag([1.0, -0.6]), rotation(np.pi / 4), 30.0)
    assert exit_time(b, 256, 5.5, Thresholds()) == pytest.approx(4.99, rel=0.03)


def test_mesh_average_of_the_distance_is_second_order() -> None:
    exact = np.sqrt(2 - 4 / np.pi)  # ∫2(1−|cos θ|)dθ/2π
    for cells in (64, 256):
        mesh = circle(cells)
        uniform = cell_averages(mesh, lambda x: 1 + 0 * x[..., 0]) / (2 * np.pi)
        assert abs(distance_to_eigenspace(mesh, uniform, np.eye(2)[:, :1]) - exact) < 3 / cells**2
