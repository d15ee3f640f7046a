"""Replay: a file's own first frame advanced by the reference particles and compared token by token."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.validation.dynamics import Dynamics
from tokensphere.validation.integrators import on_sphere
from tokensphere.validation.particle_files import Trajectories

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

TOLERANCE = 5e-3
"""Root mean square distance (chord) beyond which a replay disagrees; a step error of most codes is far below it."""

SHARE, LEAST = 0.01, 1e-4
"""Nor may it exceed this share of the distance travelled, so that a short file hides no fault; but always LEAST."""

ACCURACY = 1e-8
"""Local error of a step of the reference."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Distance between the file's tokens and the reference started from its first frame.

    rms, largest (times,): chord, weighted root mean square and maximum. travelled (times,): rms distance the reference
    went. worst (times,): the token farthest off. tolerance: what rms may reach.
    """

    times: Array
    rms: Array
    largest: Array
    travelled: Array
    worst: Indices
    tolerance: float

    @property
    def allowed(self) -> Array:
        """What rms may be (times,): the tolerance, and at most SHARE of the distance travelled."""
        return np.asarray(np.maximum(np.minimum(self.tolerance, SHARE * self.travelled), LEAST))

    @property
    def verdict(self) -> str:
        """Whether the file agrees: "consistent" or "inconsistent"."""
        return "consistent" if bool((self.rms <= self.allowed).all()) else "inconsistent"


def keeps_identity(file: Trajectories) -> bool:
    """Whether row i is the same token in all frames: it then moves less than from a random row to another.

    Compared with the same frame shifted by one row among rows sorted at random; files of one frame keep nothing.
    """
    if len(file.times) < 2 or file.tokens < 2:
        return len(file.times) > 1
    first, second = on_sphere(file.positions[0]), on_sphere(file.positions[1])
    order = np.random.default_rng(0).permutation(file.tokens)
    own = np.linalg.norm(second - first, axis=1).mean()
    other = np.linalg.norm(second[np.roll(order, 1)] - first[order], axis=1).mean()
    return bool(own < 0.7 * other)


def replay(file: Trajectories, dynamics: Dynamics, indices: Indices, tolerance: float = TOLERANCE) -> Replay:
    """Advance the first frame of a file through its times and measure the distance to its tokens."""
    start = on_sphere(file.positions[0])
    frames = dynamics.advance(start, file.weights, indices, file.times, ACCURACY)
    apart = np.linalg.norm(file.positions - frames, axis=-1)
    travelled = np.linalg.norm(frames - start, axis=-1)
    return Replay(
        file.times,
        np.sqrt(apart**2 @ file.weights),
        apart.max(axis=1),
        np.sqrt(travelled**2 @ file.weights),
        apart.argmax(axis=1),
        tolerance,
    )
