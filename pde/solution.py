"""What a solve hands back: times, densities and one row of records per step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.dataset import dataset

SHOWN = ("mass", "density_min", "density_max", "energy", "w2_to_limit", "w2_floor")


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """Densities at the save times.

    Attributes:
        mesh: the mesh of the content sphere.
        model: what gave the velocity: an ``Attention``, or a kernel for joint laws.
        times: (saves,) exactly the times asked for.
        densities: (saves, cells), or (saves, labels, cells): cell averages per unit area, nested order.
        records: one array per name with a row for every accepted step (see ``docs/records.md``).
        statistics: steps, transport steps, attention fields evaluated, macro steps rejected, seconds.
        labels: the label space of a joint law, else None.
        frame: "co-rotating" where the densities are those of u = Q(ξ)x, else "fixed" (of x itself).
    """

    mesh: Mesh
    model: Any
    times: Floats
    densities: Floats
    records: Mapping[str, Floats]
    statistics: Mapping[str, float] = field(default_factory=dict)
    labels: Any = None
    frame: str = "fixed"

    @property
    def attention(self) -> Any:
        """The attention head (or kernel) that was solved for."""
        return self.model

    def __repr__(self) -> str:
        steps = int(self.statistics.get("steps", len(self.records.get("time", []))))
        return (
            f"Solution on {self.mesh!r}: {len(self.times)} densities from t = {self.times[0]:g} to {self.times[-1]:g}, "
            f"{steps} steps"
        )

    def _repr_html_(self) -> str:
        facts = [("mesh", repr(self.mesh)), ("model", repr(self.model))]
        facts.append(("densities", f"{self.densities.shape}, t = {self.times[0]:g} to {self.times[-1]:g}"))
        facts += [(name, f"{value:,.6g}") for name, value in self.statistics.items()]
        ends = [(name, column[-1]) for name, column in self.records.items() if name in SHOWN and len(column)]
        facts += [(f"{name} at the end", f"{value:.6g}") for name, value in ends if np.isfinite(value)]
        rows = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in facts)
        return f"<table><caption>Solution</caption>{rows}</table>"

    def to_xarray(self) -> Any:
        """The densities as an xarray.Dataset, with the names and attributes of a run's solution.nc."""
        return dataset(self.mesh, self.times, self.densities, self.labels)

    def at(self, time: float) -> Floats:
        """The saved density nearest to a time."""
        density: Floats = self.densities[int(np.abs(self.times - time).argmin())]
        return density
