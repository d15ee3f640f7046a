"""Everything a report may show, read from a run folder; what is missing stays None or empty."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.config import Config, load
from tokensphere.config.building import build_attention, build_mesh
from tokensphere.folder import RunFolder
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.records import read_records
from tokensphere.store import read_saves
from tokensphere.validation.projection import Projection

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RunData:
    """A run as its folder tells it.

    densities: (saves, cells), or (saves, labels, cells) with label_points and label_weights (labels,). projection is
    None for a joint law and where VBᵀ is not symmetric; summary is empty for a run that did not finish.
    """

    name: str
    config: Config
    configuration: str
    mesh: Mesh
    times: Array
    densities: Array
    label_points: Array | None
    label_weights: Array | None
    records: dict[str, Array]
    summary: dict[str, Any]
    attention: Attention | None
    projection: Projection | None

    @property
    def marginal(self) -> Array:
        """The density of the content alone, (saves, cells)."""
        if self.label_weights is None:
            return self.densities
        return np.asarray(np.einsum("l,slc->sc", self.label_weights, self.densities))

    @property
    def limit_basis(self) -> Array | None:
        """Basis (d, k) of E where a limit Π♯ρ0 exists."""
        return self.projection.basis if self.projection is not None and self.projection.gap > 0 else None

    @property
    def unit(self) -> str:
        """What a density is per."""
        return "per steradian" if self.mesh.dimension == 3 else "per radian"

    @property
    def title(self) -> str:
        """One line: mesh and temperature or kernel."""
        where = f"nside {self.mesh.resolution}" if self.mesh.dimension == 3 else f"circle of {self.mesh.cells} cells"
        if self.attention is not None:
            return f"β = {self.attention.beta:g}".replace("inf", "∞") + f", {where}"
        kernel = self.config.kernel.kind if self.config.kernel is not None else "joint law"
        return f"{kernel.replace('_', ' ')} kernel, {where}"


def load_run(path: str | Path) -> RunData:
    """Read a run folder, finished or not. Raises InputError where there is no configuration or no solution."""
    folder = RunFolder(Path(path))
    if not folder.configuration.exists():
        raise InputError(f"{folder.path} holds no config.toml; give the folder of a run.")
    config = load(folder.configuration)
    attention = None if config.attention is None else build_attention(config.attention, config.dimension)
    saves = read_saves(folder.solution)
    return RunData(
        name=folder.path.resolve().name,
        config=config,
        configuration=folder.configuration.read_text(encoding="utf-8"),
        mesh=build_mesh(config.mesh),
        times=saves.times,
        densities=saves.densities,
        label_points=saves.label_points,
        label_weights=saves.label_weights,
        records=read_records(folder.records),
        summary=_summary(folder.summary),
        attention=attention,
        projection=_projection(attention),
    )


def _summary(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}); remove it and write the report again.") from None
    return document if isinstance(document, dict) else {}


def _projection(attention: Attention | None) -> Projection | None:
    if attention is None:
        return None
    try:
        return Projection(attention)
    except InputError:
        return None
