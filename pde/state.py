"""What a march advances and what it yields."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tokensphere.meshes.mesh import Floats, Mesh


@dataclass(frozen=True, eq=False)
class Field:
    """Normal speeds (points,) or (labels, points) at the face points, and what to note about how they were found."""

    speeds: Floats
    notes: Mapping[str, float] = field(default_factory=dict)


class Flow(Protocol):
    """What a march advances: a mesh and the speeds that a density gives rise to."""

    @property
    def mesh(self) -> Mesh:
        """The mesh of the content sphere."""

    @property
    def steady(self) -> bool:
        """Whether the speeds do not depend on the density."""

    def field(self, density: Floats) -> Field:
        """The speeds of a density (…, cells): a pure function, so that resuming is bitwise."""


@dataclass(frozen=True, eq=False)
class State:
    """A density at a time, with all that the next step depends on.

    Attributes:
        time: exact when a save time has been reached.
        density: (cells,) or (labels, cells) averages per unit area.
        step: accepted macro steps so far.
        dt: the transport step last used.
        save_index: the first save time not reached yet.
        saved: the index of the save time just reached, or None.
        macro: the extrapolated macro step the controller proposes.
        exact_step: the longest step with exact stages it proposes.
        error: of the last step, in units of its tolerance.
        history_times: (k ≤ 4,) times of the last evaluated fields, newest first.
        history_speeds: (k, …, points) their normal speeds.
        masses: mass of every label at the start.
        evaluations: attention fields evaluated so far.
        substeps: transport steps so far.
        rejected: macro steps repeated with a smaller step.
        notes: what the last field said about itself.
    """

    time: float
    density: Floats
    step: int = 0
    dt: float = 0.0
    save_index: int = 0
    saved: int | None = None
    macro: float = 0.0
    exact_step: float = np.inf
    error: float = 0.0
    history_times: Floats = field(default_factory=lambda: np.empty(0))
    history_speeds: Floats = field(default_factory=lambda: np.empty((0, 0)))
    masses: Floats = field(default_factory=lambda: np.empty(0))
    evaluations: int = 0
    substeps: int = 0
    rejected: int = 0
    notes: Mapping[str, float] = field(default_factory=dict)
