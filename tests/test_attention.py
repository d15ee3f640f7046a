"""The attention head: what it refuses, and on which side its transposes stand."""

import math

import numpy as np
import pytest

from tokensphere.meshes.errors import InputError
from tokensphere.pde.attention import Attention, SingularError
from tokensphere.pde.threads import available_threads, set_threads, threads

EYE = np.eye(3)


def head(**changes: object) -> Attention:
    return Attention(**{"query": EYE, "key": EYE, "value": EYE, "beta": 2.0, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"beta": 0.0}, "beta = 0.0"),
        ({"beta": -1.0}, "beta = -1.0"),
        ({"beta": math.nan}, "beta = nan"),
        ({"beta": "hot"}, "beta = hot"),
        ({"beta": True}, "beta = True"),
        ({"value": np.ones((2, 3))}, "value has shape (2, 3)"),
        ({"value": np.ones(3)}, "value has 1 dimensions"),
        ({"key": np.eye(2)}, "key (2, 2)"),
        ({"query": [[1.0, 2.0], [3.0]]}, "query is not a matrix"),
        ({"value": np.diag([1.0, math.nan, 0.0])}, "row 1, column 1"),
        ({"query": 1e200 * EYE, "key": 1e200 * EYE}, "overflows"),
        ({"normalised": "yes"}, "normalised = 'yes'"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(changes: dict[str, object], named: str) -> None:
    with pytest.raises(InputError) as refusal:
        head(**changes)
    sentence = str(refusal.value)
    assert named in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_singular_interaction_names_its_smallest_singular_value() -> None:
    with pytest.raises(SingularError, match=r"smallest singular value 0, largest 2"):
        head(query=np.diag([1.0, 2.0, 0.0]))
    with pytest.raises(SingularError):  # k < d: QᵀK cannot have full rank
        head(query=np.ones((2, 3)), key=np.ones((2, 3)))


def test_matrices_follow_their_definition() -> None:
    rng = np.random.default_rng(1)
    query, key, value, x, y = (rng.normal(size=shape) for shape in ((4, 3), (4, 3), (3, 3), (3,), (3,)))
    attention = Attention(query, key, value, 7.0)
    logit = 7.0 * (query @ x) @ (key @ y)  # β⟨Qx, Ky⟩
    assert attention.tilts(x[None])[0] @ y == pytest.approx(logit, rel=1e-13)
    image = attention.B.T @ x
    np.testing.assert_allclose(attention.directions(x[None])[0], image / np.linalg.norm(image), rtol=1e-13)
    np.testing.assert_allclose(attention.M @ x, value @ image, rtol=1e-13)
    assert attention.dimension == 3
    assert not attention.zero_temperature
    assert head(beta=math.inf).zero_temperature


def test_attention_cannot_be_changed_from_outside() -> None:
    query = np.eye(3)
    attention = head(query=query)
    query[0, 0] = 5.0
    assert attention.B[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        attention.value[0, 0] = 2.0


def test_one_thread_setting() -> None:
    import numba

    before = threads()
    try:
        set_threads(1)
        assert threads() == 1
        assert numba.get_num_threads() == 1
        set_threads(1000)
        assert threads() == available_threads()
    finally:
        set_threads(before)
    for bad in (0, -2, True, 1.5):
        with pytest.raises(InputError, match="threads"):
            set_threads(bad)  # type: ignore[arg-type]
