"""Labels are quadrature rules of a law on A; their exactness is checked against integrals known in closed form."""

import numpy as np
import pytest

from tokensphere.meshes import labels
from tokensphere.meshes.errors import InputError


def test_weights_sum_to_one_and_are_frozen() -> None:
    for space in (labels.circle(7), labels.interval(5), labels.gauss_interval(4), labels.finite([1, 3, 4])):
        assert space.weights.sum() == pytest.approx(1, abs=1e-15)
        assert space.weights.shape == space.points.shape == (space.count,)
        with pytest.raises(ValueError, match="read-only"):
            space.points[0] = 1.0


def test_circle_integrates_trigonometric_polynomials_exactly() -> None:
    space = labels.circle(9)
    assert space.points[0] == 0
    assert space.points.max() < 2 * np.pi
    for k in range(1, 9):
        assert abs(space.weights @ np.exp(1j * k * space.points)) < 1e-15
    assert space.weights @ np.cos(4 * space.points) ** 2 == pytest.approx(0.5, abs=1e-15)


def test_gauss_rule_is_exact_to_its_degree_and_midpoints_are_second_order() -> None:
    space = labels.gauss_interval(5)
    assert (np.diff(space.points) > 0).all()
    for k in range(10):
        assert space.weights @ space.points**k == pytest.approx(1 / (k + 1), abs=1e-14)
    errors = [abs(labels.interval(n).weights @ np.exp(labels.interval(n).points) - (np.e - 1)) for n in (8, 16, 32)]
    assert np.allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2, atol=0.01)


def test_a_law_weights_the_labels() -> None:
    space = labels.circle(64, law=lambda angle: 1 + 0.5 * np.cos(angle))
    assert space.weights @ np.cos(space.points) == pytest.approx(0.25, abs=1e-14)
    assert labels.finite([1, 3]).weights.tolist() == [0.25, 0.75]


def test_differences_go_the_short_way_round_the_circle() -> None:
    differences = labels.circle(8).differences()
    assert differences[0, 7] == pytest.approx(np.pi / 4)
    assert differences.min() >= -np.pi
    assert labels.interval(4).differences()[3, 0] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: labels.circle(0), "0 labels"),
        (lambda: labels.interval(2.5), "2.5 labels"),
        (lambda: labels.finite([1, -1]), "above 0"),
        (lambda: labels.finite([1, np.nan]), "finite"),
        (lambda: labels.finite("two"), "list of numbers"),
        (lambda: labels.finite([1, 1], points=[0.0]), "one position and one weight"),
        (lambda: labels.Labels("sphere", np.zeros(1), np.ones(1)), "circle, interval and finite"),
    ],
)
def test_bad_labels_are_refused_in_one_sentence(make: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()  # type: ignore[operator]
