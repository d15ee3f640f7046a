"""M = VBᵀ, its eigenvalues with multiplicities, the gap, E and Π."""

import numpy as np
import pytest

from tokensphere.meshes.errors import InputError
from tokensphere.pde.attention import Attention
from tokensphere.validation.projection import Projection, distinct_eigenvalues

RANDOM = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def same_numbers_in_any_order() -> None:
    """Every test draws from the start of the stream, whichever tests ran before it in its process."""
    RANDOM.bit_generator.state = np.random.default_rng(11).bit_generator.state


def frame(d: int) -> np.ndarray:
    return np.linalg.qr(RANDOM.normal(size=(d, d)))[0]


def test_attention_with_general_b_gives_its_m() -> None:
    Q = frame(3)
    M = Q @ np.diag([1.0, 0.3, -0.5]) @ Q.T
    key = RANDOM.normal(size=(3, 3)) + 2 * np.eye(3)
    attention = Attention(query=np.eye(3), key=key, value=M @ np.linalg.inv(key).T, beta=5.0)
    projection = Projection(attention)
    assert np.allclose(projection.matrix, M, atol=1e-12)
    assert [round(each.value, 10) for each in projection.eigenvalues] == [1.0, 0.3, -0.5]
    assert projection.gap == pytest.approx(0.7, abs=1e-12)
    assert projection.multiplicity == 1
    assert abs(projection.basis[:, 0] @ Q[:, 0]) == pytest.approx(1.0, abs=1e-12)


def test_gap_is_between_distinct_eigenvalues() -> None:
    Q = frame(3)
    projection = Projection(Q @ np.diag([1.0, 1.0, -0.25]) @ Q.T)
    assert projection.multiplicity == 2
    assert projection.gap == pytest.approx(1.25)
    assert np.allclose(projection.basis.T @ projection.basis, np.eye(2))
    assert np.allclose(projection.basis.T @ Q[:, 2], 0, atol=1e-12)


def test_tolerance_decides_what_counts_as_one_eigenvalue() -> None:
    near = np.diag([1.0, 1.0 - 1e-6, 0.0])
    assert Projection(near).multiplicity == 1
    assert Projection(near, tolerance=1e-5).multiplicity == 2
    assert [each.multiplicity for each in distinct_eigenvalues(np.array([2.0, 2.0, 1.0, 1.0, 1.0]), 1e-9)] == [2, 3]


def test_no_gap_where_m_is_a_multiple_of_the_identity() -> None:
    projection = Projection(0.7 * np.eye(3))
    assert projection.gap == 0.0
    assert projection.multiplicity == 3
    x = RANDOM.normal(size=(5, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    assert np.allclose(projection.project(x), x)
    assert np.allclose(projection.nearest_distance(x), 0, atol=1e-7)


def test_sign_of_the_basis_does_not_depend_on_the_factorisation() -> None:
    for _ in range(20):
        e = RANDOM.normal(size=3)
        e /= np.linalg.norm(e)
        basis = Projection(np.outer(e, e)).basis[:, 0]
        assert basis[np.argmax(np.abs(basis))] > 0


def test_projection_is_the_nearest_point_of_e() -> None:
    Q = frame(3)
    projection = Projection(Q @ np.diag([2.0, 2.0, 0.0]) @ Q.T)
    x = RANDOM.normal(size=(40, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    angle = np.linspace(0, 2 * np.pi, 4001)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ projection.basis.T
    best = np.linalg.norm(x[:, None] - circle, axis=-1).min(axis=1)
    # The nearest of 4,000 points on the circle is half a step off at most, which enters in squares.
    assert np.allclose(projection.nearest_distance(x) ** 2, best**2, atol=1e-6)
    assert np.allclose(np.linalg.norm(x - projection.project(x), axis=1), projection.nearest_distance(x), atol=1e-12)
    geodesic = projection.nearest_distance(x, "geodesic")
    assert np.allclose(2 * np.sin(geodesic / 2), projection.nearest_distance(x), atol=1e-12)


def test_points_of_the_complement_have_no_projection() -> None:
    projection = Projection(np.diag([1.0, 0.0, 0.0]))
    assert np.isnan(projection.project(np.array([[0.0, 1.0, 0.0]]))).all()
    assert projection.nearest_distance(np.array([[0.0, 1.0, 0.0]]))[0] == pytest.approx(np.sqrt(2))


def test_small_distances_keep_their_digits() -> None:
    projection = Projection(np.diag([1.0, 0.0, 0.0]))
    x = np.array([[np.cos(1e-9), np.sin(1e-9), 0.0]])
    assert projection.nearest_distance(x)[0] == pytest.approx(1e-9, rel=1e-12)


@pytest.mark.parametrize("matrix", [[[1.0, 0.2], [0.0, 1.0]], np.ones((2, 3)), [[np.nan, 0], [0, 1]], [1.0, 2.0]])
def test_refuses_what_has_no_limit(matrix: object) -> None:
    with pytest.raises(InputError, match="VBᵀ"):
        Projection(matrix)
    with pytest.raises(InputError, match="metric"):
        Projection(np.eye(2)).nearest_distance(np.eye(2), "euclidean")
