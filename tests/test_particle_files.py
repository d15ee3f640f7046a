"""The layout of particle files: what is read, and the one sentence for what is not."""

import numpy as np
import pytest

from tokensphere.meshes import labels as label_spaces
from tokensphere.meshes.errors import InputError
from tokensphere.validation.particle_files import label_indices, load_trajectories, trajectories

RNG = np.random.default_rng(0)
FRAMES = RNG.normal(size=(4, 7, 3))
FRAMES /= np.linalg.norm(FRAMES, axis=-1, keepdims=True)
TIMES = np.array([0, 0.5, 1, 2.0])


def broken(frame, row, value):
    frames = FRAMES.copy()
    frames[frame, row] = value
    return frames


def test_npz_and_npy_files_give_what_was_saved(tmp_path):
    weights = np.arange(1, 8) / 28
    np.savez(tmp_path / "a.npz", positions=FRAMES, times=TIMES, weights=weights, labels=np.arange(7))
    np.save(tmp_path / "b.npy", FRAMES)
    file = load_trajectories(tmp_path / "a.npz", 3)
    assert (file.positions == FRAMES).all()
    assert (file.times == TIMES).all()
    assert np.abs(file.weights - weights).max() < 1e-16
    assert file.labels.tolist() == list(range(7))
    assert file.effective_tokens == pytest.approx(28**2 / np.sum(np.arange(1, 8) ** 2))
    assert (load_trajectories(tmp_path / "b.npy", 3, TIMES).positions == FRAMES).all()


def test_a_single_frame_needs_one_time():
    assert trajectories(FRAMES[0], 1.5, 3).positions.shape == (1, 7, 3)
    with pytest.raises(InputError, match="with 4 times do not fit"):
        trajectories(FRAMES[0], TIMES, 3)


@pytest.mark.parametrize("shape", [(4, 7), (3, 7), (4, 4), (3, 3)])
def test_arrays_n_d_times_are_recognised(shape):
    times, n = shape
    frames = FRAMES[:times, :n] if n <= 7 else FRAMES
    assert (trajectories(frames.transpose(1, 2, 0), TIMES[:times], 3).positions == frames).all()
    assert (trajectories(frames, TIMES[:times], 3).positions == frames).all()


def test_an_array_that_can_be_read_in_two_ways_is_refused():
    identity = np.broadcast_to(np.eye(3), (3, 3, 3))  # rows and columns are unit vectors
    with pytest.raises(InputError, match="two ways"):
        trajectories(identity, TIMES[:3], 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((broken(2, 5, np.nan), TIMES), r"token 5 in frame 2 \(time 1\)"),
        ((broken(3, 0, np.inf), TIMES), "token 0 in frame 3"),
        ((broken(0, 4, [0, 0, 1.00001]), TIMES), "token 4 of the first frame has length 1.00001"),
        ((broken(0, 4, 0.0), TIMES), "token 4 of the first frame has length 0"),
        ((FRAMES, None), "no times"),
        ((FRAMES, TIMES[:3]), r"\(4, 7, 3\) with 3 times"),
        ((FRAMES[..., :2], TIMES), r"shape \(4, 7, 2\)"),
        ((FRAMES, [0, 1, 1, 2]), r"times\[2\] is 1"),
        ((FRAMES, [0, 1, np.nan, 2]), r"times\[2\] is nan"),
        ((FRAMES[:, :0], TIMES), "do not fit"),
        ((FRAMES.astype(complex), TIMES), "not real numbers"),
        ((FRAMES, TIMES, 3, np.full(7, 0.2)), "sum to 1.4"),
        ((FRAMES, TIMES, 3, np.full(6, 1 / 6)), r"shape \(6,\)"),
        ((FRAMES, TIMES, 3, [0.5, 0.6, -0.1, 0, 0, 0, 0]), "token 2 is -0.1"),
        ((FRAMES, TIMES, 3, [np.nan, 1, 0, 0, 0, 0, 0]), "token 0 is nan"),
        ((FRAMES, TIMES, 3, None, np.arange(6)), "one label each"),
        ((FRAMES, TIMES, 3, None, [0, 1, np.nan, 0, 0, 0, 0]), "label of token 2"),
    ],
)
def test_bad_arrays_are_refused_with_the_row(arguments, message):
    positions, times, *rest = arguments
    dimension, *rest = rest or [3]
    with pytest.raises(InputError, match=message) as caught:
        trajectories(positions, times, dimension, *rest)
    assert str(caught.value).count(". ") == 0
    assert "\n" not in str(caught.value)


def test_a_later_frame_off_the_sphere_is_kept_as_a_finding():
    file = trajectories(broken(3, 2, [0, 0, 1.02]), TIMES, 3)
    assert file.sphere_defect()[3] == pytest.approx(0.02)
    assert file.sphere_defect()[:3].max() < 1e-15


def test_single_precision_is_on_the_sphere_and_has_mass_one():
    file = trajectories(FRAMES.astype(np.float32), TIMES, 3, np.full(7, 1 / 7, dtype=np.float32))
    assert file.sphere_defect().max() < 1e-6
    assert file.weights.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("content", [b"", b"positions", b"PK\x03\x04broken"])
def test_files_that_are_not_numpy_are_refused(tmp_path, content):
    (tmp_path / "p.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"p.npz is not a .npz or .npy file"):
        load_trajectories(tmp_path / "p.npz", 3)


def test_missing_files_arrays_and_pickles_are_refused(tmp_path):
    with pytest.raises(InputError, match="no particle file"):
        load_trajectories(tmp_path / "none.npz", 3)
    np.savez(tmp_path / "x.npz", x=FRAMES, times=TIMES)
    with pytest.raises(InputError, match="holds times, x, but the array positions"):
        load_trajectories(tmp_path / "x.npz", 3)
    np.save(tmp_path / "o.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"not a \.npz"):
        load_trajectories(tmp_path / "o.npy", 3, [0])


def test_labels_are_matched_to_those_of_the_run():
    circle = label_spaces.circle(4)
    assert label_indices(circle, np.array([2 * np.pi, np.pi / 2, -np.pi / 2])).tolist() == [0, 1, 3]
    with pytest.raises(InputError, match=r"token 1 has the label 0\.3"):
        label_indices(circle, np.array([0.0, 0.3]))
