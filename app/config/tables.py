"""The tables of a configuration and what must hold between them."""

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from tokensphere.config.base import Matrix, Positive, Table
from tokensphere.config.initial import InitialTable
from tokensphere.config.joint import KernelTable, LabelsTable

LARGEST_NSIDE = 512


def _nside(value: int) -> int:
    if not 1 <= value <= LARGEST_NSIDE or value & (value - 1):
        raise ValueError(f"it must be a power of two from 1 to {LARGEST_NSIDE}")
    return value


def _cells(value: int) -> int:
    if not 8 <= value <= 10_000_000 or value % 2:
        raise ValueError("it must be an even whole number from 8 to 10000000")
    return value


def _beta(value: float) -> float:
    if not value > 0:
        raise ValueError("it must be a number above 0, or inf for zero temperature")
    return value


def _saves(value: int) -> int:
    if not 1 <= value <= 1_000_000:
        raise ValueError("it must be a whole number from 1 to 1000000")
    return value


def _tolerance(value: float) -> float:
    if not 0 < value < 1:
        raise ValueError("it must lie between 0 and 1")
    return value


class HealpixMesh(Table):
    """The sphere S² in 12·nside² equal cells."""

    kind: Literal["healpix"]
    nside: Annotated[int, AfterValidator(_nside)]

    @property
    def coarsest(self) -> bool:
        """Whether there is no coarser level."""
        return self.nside == 1


class CircleMesh(Table):
    """The circle S¹ in equal cells."""

    kind: Literal["circle"]
    cells: Annotated[int, AfterValidator(_cells)]

    @property
    def coarsest(self) -> bool:
        """Whether there is no coarser level."""
        return self.cells % 4 != 0 or self.cells < 16


MeshTable = Annotated[HealpixMesh | CircleMesh, Field(discriminator="kind")]


class AttentionTable(Table):
    """The attention head: Q, K, V and the inverse temperature."""

    beta: Annotated[float, AfterValidator(_beta)]
    value: Matrix
    query: Matrix = "identity"
    key: Matrix = "identity"
    normalised: bool = True


class TimeTable(Table):
    """Saves at k·end/saves, k = 0…saves."""

    end: Positive
    saves: Annotated[int, AfterValidator(_saves)] = 20


class SolverTable(Table):
    """How the attention integral and the distance are computed; "log-safe" is for joint laws, "direct" and "tree" are
    for a density alone."""

    method: Literal["auto", "direct", "spectral", "tree", "log-safe"] = "auto"
    rtol: Annotated[float, AfterValidator(_tolerance)] = 1e-8
    metric: Literal["chordal", "geodesic"] = "chordal"


class OutputTable(Table):
    """What is written besides the density: seconds of wall time between checkpoints, the figures, and, by a second run
    one level coarser, every reported number with its discretisation error."""

    checkpoint_every: Positive = 30.0
    figures: bool = True
    refine: bool = False


class SweepTable(Table):
    """Parameters of `tokensphere sweep`: dotted keys with their values, combined in a product or, zipped, in step; and
    the distances to E at which a density counts as concentrated, and as having left E after being inside."""

    over: dict[str, list[Any]] = Field(default_factory=dict)
    zip: bool = False
    concentrated: Positive = 0.2
    inside: Positive = 0.12
    outside: Positive = 0.15


class Config(Table):
    """One run. Either [attention] stands alone, or [labels] and [kernel] describe a joint law."""

    mesh: MeshTable
    attention: AttentionTable | None = None
    labels: LabelsTable | None = None
    kernel: KernelTable | None = None
    initial: InitialTable
    time: TimeTable
    solver: SolverTable = SolverTable()
    output: OutputTable = OutputTable()
    sweep: SweepTable | None = None

    @property
    def dimension(self) -> int:
        """d: 3 on the sphere, 2 on the circle."""
        return 3 if self.mesh.kind == "healpix" else 2

    @property
    def joint(self) -> bool:
        """Whether the run is about a joint law of tokens and labels."""
        return self.kernel is not None

    @property
    def save_times(self) -> list[float]:
        """k·end/saves, the last one equal to `time.end` to the bit."""
        end, saves = self.time.end, self.time.saves
        return [end * k / saves for k in range(saves)] + [end]

    @model_validator(mode="after")
    def _tables_fit_together(self) -> "Config":
        if self.kernel is not None and self.attention is not None:
            raise ValueError(
                "[attention] and [kernel] were both given, but a run has one of them; a joint law needs "
                "[labels] and [kernel] alone"
            )
        if (self.labels is None) != (self.kernel is None):
            given, lacking = ("[kernel]", "[labels]") if self.labels is None else ("[labels]", "[kernel]")
            raise ValueError(f"{given} was given without {lacking}, but a joint law needs both")
        if self.kernel is None and self.attention is None:
            raise ValueError(
                "[attention] is missing; give it beta and value, or describe a joint law by [labels] and [kernel]"
            )
        if self.output.refine and (self.kernel is not None or self.mesh.coarsest):
            raise ValueError("output.refine = true needs [attention] and a mesh that has a coarser level; leave it out")
        if self.kernel is None and self.initial.perturbation:
            raise ValueError("initial.perturbation was given, but only a joint law (with [labels] and [kernel]) has it")
        methods = ("auto", "spectral", "log-safe") if self.joint else ("auto", "direct", "spectral", "tree")
        if self.solver.method not in methods:
            about = "a joint law" if self.joint else "a density"
            raise ValueError(
                f'solver.method = "{self.solver.method}" was given, but for {about} it must be one of '
                f"{', '.join(methods)}"
            )
        _check_dimensions(self)
        if not math.isfinite(self.time.end) or any(
            b <= a for a, b in zip(self.save_times, self.save_times[1:], strict=False)
        ):
            raise ValueError("time.end and time.saves give save times that do not increase; use fewer saves")
        return self


def _check_dimensions(config: Config) -> None:
    d, mesh = config.dimension, f'mesh.kind = "{config.mesh.kind}"'
    for key, matrix in _matrices(config):
        if key in ("attention.query", "attention.key"):
            if matrix != "identity" and len(matrix[0]) != d:
                raise ValueError(f"{key} has shape {len(matrix)}x{len(matrix[0])}, but {mesh} needs {d} columns")
        elif matrix != "identity" and (len(matrix), len(matrix[0])) != (d, d):
            raise ValueError(f"{key} has shape {len(matrix)}x{len(matrix[0])}, but {mesh} needs {d}x{d}")
    if config.attention is not None:
        rows = {d if m == "identity" else len(m) for m in (config.attention.query, config.attention.key)}
        if len(rows) != 1:
            raise ValueError("attention.query and attention.key have different numbers of rows, but they must share it")
    for key, vector in _vectors(config):
        if len(vector) != d:
            raise ValueError(f"{key} has {len(vector)} entries, but {mesh} needs {d}")
    if config.kernel is not None and config.kernel.kind == "prefix" and config.labels is not None:
        matrices = len(config.kernel.matrices)
        labels = len(config.labels.weights) if config.labels.kind == "finite" else config.labels.count
        if matrices != labels:
            raise ValueError(
                f"kernel.matrices holds {matrices} matrices, but [labels] has {labels} labels; give one "
                "matrix for each label"
            )


def _starts(config: Config) -> list[tuple[str, Any]]:
    if config.initial.kind == "mixture":
        return [(f"initial.components[{i}]", part) for i, part in enumerate(config.initial.components)]
    return [("initial", config.initial)]


def _matrices(config: Config) -> list[tuple[str, Any]]:
    named: list[tuple[str, Any]] = []
    if config.attention is not None:
        named += [(f"attention.{name}", getattr(config.attention, name)) for name in ("value", "query", "key")]
    named += [
        (f"{key}.quadratic", start.quadratic)
        for key, start in _starts(config)
        if start.kind == "polynomial" and start.quadratic is not None
    ]
    if config.kernel is not None and config.kernel.kind in ("generalised_rope", "prefix"):
        name = "matrices" if config.kernel.kind == "prefix" else "generators"
        named += [(f"kernel.{name}[{i}]", matrix) for i, matrix in enumerate(getattr(config.kernel, name))]
    return named


def _vectors(config: Config) -> list[tuple[str, Any]]:
    named = [
        (f"{key}.linear", start.linear)
        for key, start in _starts(config)
        if start.kind == "polynomial" and start.linear is not None
    ]
    return named + [(f"{key}.mean", start.mean) for key, start in _starts(config) if start.kind == "von_mises_fisher"]
