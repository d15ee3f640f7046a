"""A particle code against the density of a run: is it right, and are there enough tokens to tell?"""

import math
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.labels import Labels
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.kernels import Kernel
from tokensphere.validation.dynamics import AttentionDynamics, Dynamics, KernelDynamics
from tokensphere.validation.empirical_transport import transports
from tokensphere.validation.integrators import on_sphere
from tokensphere.validation.nulls import DEGREE, DETUNING, Moments, Reference, simulate
from tokensphere.validation.particle_files import Trajectories, label_indices, load_trajectories
from tokensphere.validation.plain import plain
from tokensphere.validation.replay import Replay, keeps_identity, replay
from tokensphere.validation.statistics import Null, holm
from tokensphere.validation.time_rows import (
    CONSISTENT,
    DEFECT,
    INCONSISTENT,
    POWER,
    TOO_FEW,
    TimeRow,
    fault_power,
    judged,
    time_row,
)

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

LEVEL = 0.01
"""Probability of an alarm over the whole file, all times and statistics together."""

REPLICATES = 160
SMALLEST_REPLICATE, LARGEST_REPLICATE = 400, 4000
LARGEST_REFERENCE = 16384
TOKENS_PER_BETA = 50
"""Replicates hold this many tokens per unit of β, so that a token's neighbours within 1/√β average out."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Verdict on a particle file, a row per time that file and run share, the replay if tokens keep their identity.

    `detectable` is the relative error of β (or of the speed, see `parameter`) that would be found with probability
    POWER.  `skipped` are times of the file at which the run was not saved.
    """

    verdict: str
    reason: str
    tokens: int
    effective_tokens: float
    rows: tuple[TimeRow, ...]
    replay: Replay | None
    parameter: str
    detectable: float
    level: float
    skipped: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and strings, ready for JSON; `lines` is the report for a terminal."""
        content: dict[str, Any] = plain(asdict(self), finite=True)
        if self.replay is not None:
            content["replay"]["verdict"] = self.replay.verdict
        return content | {"lines": self.lines()}

    def _repr_html_(self) -> str:
        return f"<pre>{escape(chr(10).join(self.lines()))}</pre>"

    def lines(self) -> list[str]:
        """The report as lines of text."""
        head = "time      |mean|  density   W2 (n exact samples)  p moments  p energy  defect   verdict"
        lines = [f"{self.tokens} tokens ({self.effective_tokens:.0f} effective), level {self.level:g}", head]
        for row in self.rows:
            w2 = f"{row.w2.value:.3f} ({row.w2.expected:.3f}±{row.w2.deviation:.3f})" if row.w2 else "—"
            lines.append(
                f"{row.time:<8g}  {row.order_parameter:.4f}  {row.order_parameter_expected:.4f}    {w2:<20}  "
                f"{row.moments_p:<9.2g}  {row.energy_p:<8.2g}  {row.sphere_defect:.0e}    {row.verdict}"
            )
        if self.replay is not None:
            worst = float(self.replay.rms.max())
            lines.append(
                f"replay of the first frame: rms distance up to {worst:.2g} (allowed {self.replay.tolerance:g}), "
                f"{self.replay.verdict}"
            )
        lines.append(f"{self.verdict}: {self.reason}")
        return lines


class Judge:
    """Compares particle files with one run: what a correct code may do is simulated once per file size and times."""

    def __init__(
        self,
        mesh: Mesh,
        times: ArrayLike,
        densities: ArrayLike,
        dynamics: Dynamics,
        *,
        moments: Moments | None = None,
        level: float = LEVEL,
        replicates: int = REPLICATES,
        seed: int = 0,
    ) -> None:
        self._mesh, self._dynamics, self._level = mesh, dynamics, level
        self._times = np.asarray(times, dtype=np.float64)
        self._densities = np.asarray(densities, dtype=np.float64)
        self._moments = moments or Moments(mesh, DEGREE)
        self._replicates, self._seed = replicates, seed
        self._references: dict[tuple[tuple[int, ...], int, int], Reference] = {}

    def compare(self, file: Trajectories, *, identity: bool | None = None, transport: bool = True) -> Comparison:
        """The verdict on a file.

        identity: whether row i is the same token in all frames (None: found out); False leaves the replay out.
        Raises InputError where file and run have no time in common, or labels do not fit.
        """
        indices = self._label_indices(file)
        frames, saves = self._shared(file)
        reference = self._reference(saves, file.effective_tokens)
        generator = np.random.default_rng([self._seed, file.tokens])
        replayed = None
        if keeps_identity(file) if identity is None else identity and len(file.times) > 1:
            replayed = replay(file, self._dynamics, indices)
        rows = self._rows(file, frames, saves, indices, reference, generator if transport else None)
        detectable = self._detectable(reference, saves, file.effective_tokens)
        verdict, reason = _verdict(rows, replayed, self._dynamics.parameter, detectable)
        skipped = tuple(float(t) for k, t in enumerate(file.times) if k not in frames)
        return Comparison(
            verdict,
            reason,
            file.tokens,
            file.effective_tokens,
            tuple(rows),
            replayed,
            self._dynamics.parameter,
            detectable,
            self._level,
            skipped,
        )

    def _label_indices(self, file: Trajectories) -> Indices:
        labels = self._moments.labels
        if labels is None:
            return np.zeros(file.tokens, dtype=np.int64)
        if file.labels is None:
            raise InputError("the run has labels, but the particle file has none; add the array labels, one per token.")
        return label_indices(labels, file.labels)

    def _shared(self, file: Trajectories) -> tuple[list[int], list[int]]:
        """Frames of the file and saves of the run at the same times."""
        scale = 1e-9 * max(1.0, float(np.abs(self._times).max()))
        nearest = np.abs(file.times[:, None] - self._times).argmin(axis=1)
        frames = [k for k, s in enumerate(nearest) if abs(file.times[k] - self._times[s]) <= scale]
        if not frames:
            raise InputError(
                f"times[0] is {file.times[0]:g} and no other time of the particle file is one the run was saved "
                f"at ({_some(self._times)}); write the tokens at times of the run."
            )
        return frames, [int(nearest[k]) for k in frames]

    def _reference(self, saves: list[int], effective: float) -> Reference:
        beta = _beta(self._dynamics)
        size = int(np.clip(TOKENS_PER_BETA * beta, SMALLEST_REPLICATE, LARGEST_REPLICATE))
        size = max(2, min(size, int(effective)))
        # Low-discrepancy tokens err like 1/n: a quarter of a large file is plenty, four times a small one.
        most = LARGEST_REFERENCE if self._moments.labels is None else 2048
        many = int(np.clip(max(effective / 4, min(4 * effective, 2048)), 256, most))
        steps = sorted({0, *saves})
        key = (tuple(steps), size, many)
        if key not in self._references:
            self._references[key] = simulate(
                self._moments,
                self._densities[steps],
                self._dynamics,
                self._times[steps],
                size,
                many,
                self._replicates,
                np.random.default_rng(self._seed),
            )
        return self._references[key]

    def _rows(
        self,
        file: Trajectories,
        frames: list[int],
        saves: list[int],
        indices: Indices,
        reference: Reference,
        generator: np.random.Generator | None,
    ) -> list[TimeRow]:
        steps = sorted({0, *saves})
        defects = file.sphere_defect()
        level = self._level / (2 * len(frames))
        rows = []
        for frame, save in zip(frames, saves, strict=True):
            k = steps.index(save)
            positions = on_sphere(file.positions[frame])
            found = self._moments.of_tokens(positions, file.weights, indices)
            null = reference.null(k, file.effective_tokens)
            row = time_row(file.times[frame], self._moments, found, reference.expected[k], null, float(defects[frame]))
            strength = fault_power(self._moments, reference.detuned[:, k], null, level)
            if generator is not None:
                law = self._content(save)
                distances = transports(self._mesh, law, positions, file.weights, generator)
                row = replace(row, w1=distances["w1"], w2=distances["w2"])
            rows.append(replace(row, power=strength if save else math.nan))
        adjusted = holm(np.array([[row.moments_p, row.energy_p] for row in rows]))
        return [judged(row, p, self._level) for row, p in zip(rows, adjusted, strict=True)]

    def _content(self, save: int) -> Array:
        """The law of x alone (cells,)."""
        labels, density = self._moments.labels, self._densities[save]
        return density if labels is None else np.asarray(labels.weights @ density)

    def _detectable(self, reference: Reference, saves: list[int], effective: float) -> float:
        """The relative fault found with probability POWER at the best time: shifts are linear in the fault."""
        level = self._level / (2 * len(saves))
        steps = sorted({0, *saves})
        best = math.inf
        for save in saves:
            k = steps.index(save)
            null = reference.null(k, effective)

            def shortfall(log_size: float, k: int = k, null: Null = null) -> float:
                shifts = math.exp(log_size) * reference.detuned[:, k]
                return fault_power(self._moments, shifts, null, level) - POWER

            if save and shortfall(5.0) > 0 > shortfall(-12.0):
                best = min(best, DETUNING * math.exp(float(brentq(shortfall, -12.0, 5.0, xtol=1e-3))))
        return best


def _verdict(rows: list[TimeRow], replayed: Replay | None, parameter: str, detectable: float) -> tuple[str, str]:
    """Overall verdict with the sentence that explains it."""
    wrong = [row for row in rows if row.verdict == INCONSISTENT]
    if wrong:
        row = wrong[0]
        if row.sphere_defect > DEFECT:
            return INCONSISTENT, (
                f"at time {row.time:g} tokens are off the sphere by {row.sphere_defect:.1e}; "
                "normalise them after every step"
            )
        return INCONSISTENT, (
            f"at time {row.time:g} the law of the tokens differs from the density "
            f"(corrected p-value {row.adjusted.min():.1e})"
        )
    if replayed is not None and replayed.verdict == INCONSISTENT:
        k = int(np.argmax(replayed.rms > replayed.allowed))
        return INCONSISTENT, (
            f"started from the file's first frame the reference is {replayed.rms[k]:.2g} away (rms) at time "
            f"{replayed.times[k]:g}, token {replayed.worst[k]} by {replayed.largest[k]:.2g}"
        )
    if replayed is not None:
        return CONSISTENT, f"law and replay agree (rms distance {replayed.rms.max():.1g})"
    if any(row.verdict == CONSISTENT and row.power >= POWER for row in rows):
        return (
            CONSISTENT,
            f"no test objects, and an error of {100 * detectable:.2g} % in {parameter} would have been found",
        )
    size = (
        f"only an error of {100 * detectable:.2g} % in {parameter} would be found"
        if math.isfinite(detectable)
        else (f"no error in {parameter} would be found")
    )
    return TOO_FEW, f"no test objects, but {size}; give more tokens, later times, or frames that keep the tokens' order"



def _beta(dynamics: Dynamics) -> float:
    """β where tokens interact, 0 where they do not."""
    if isinstance(dynamics, AttentionDynamics):
        return 0.0 if dynamics.attention.zero_temperature else dynamics.attention.beta
    profile = dynamics.kernel.profile if isinstance(dynamics, KernelDynamics) else None
    return float(getattr(profile, "beta", 1.0))


def _some(times: Array) -> str:
    shown = ", ".join(f"{t:g}" for t in times[:4])
    return shown if len(times) <= 4 else f"{shown}, … {times[-1]:g}"


def compare_run(
    mesh: Mesh,
    times: ArrayLike,
    densities: ArrayLike,
    attention: Attention | None,
    particles: str | Path | Trajectories,
    *,
    kernel: Kernel | None = None,
    labels: Labels | None = None,
    particle_times: ArrayLike | None = None,
    identity: bool | None = None,
    level: float = LEVEL,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Comparison:
    """Compare a particle file with a run: densities (times, cells), or (times, labels, cells) with kernel and labels.

    Per time: W1, W2 beside those of n exact samples, Hotelling's test of mean and second moments, the energy distance,
    the sphere defect.  Every p-value is corrected by Holm's method, so that a correct code is refused with probability
    `level` at most; the null holds the fluctuations of n *interacting* tokens and the run's own discretisation error.
    Where tokens keep their identity the first frame is replayed.  `particle_times` are the times of a .npy file.

    Raises InputError for a file that cannot be compared (`load_trajectories`, `trajectories`, `Judge.compare`).
    """
    moments = Moments(mesh, DEGREE)
    dynamics: Dynamics
    if attention is not None:
        dynamics = AttentionDynamics(attention)
    elif kernel is not None and labels is not None:
        moments, dynamics = Moments(mesh, DEGREE, labels, kernel), KernelDynamics(kernel, labels)
    else:
        raise InputError("neither an attention nor a kernel with labels was given; say what moves the tokens.")
    file = (
        particles
        if isinstance(particles, Trajectories)
        else load_trajectories(particles, mesh.dimension, particle_times)
    )
    judge = Judge(mesh, times, densities, dynamics, moments=moments, level=level, replicates=replicates, seed=seed)
    return judge.compare(file, identity=identity)
