"""Densities as 16-bit logarithms in base64, small enough for one page."""

import base64
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.levels import coarsen, coarser
from tokensphere.meshes.mesh import Mesh

Array = NDArray[np.float64]

LEVELS = 65534
BUDGET = 7_500_000  # bytes before base64: the page stays under 11 MB
FINEST = 64


@dataclass(frozen=True, eq=False)
class Embedded:
    """Codes (saves, labels, cells): 0 where ρ ≤ 0, else ρ = exp(low + (code − 1)·step), right within exp(step/2) − 1.

    mesh is the mesh they live on, saves and labels the chosen indices, notes what was left out, in words.
    """

    codes: NDArray[np.uint16]
    low: float
    step: float
    mesh: Mesh
    saves: list[int]
    labels: list[int]
    notes: list[str]

    @property
    def base64(self) -> str:
        """Little-endian 16-bit codes."""
        return base64.b64encode(self.codes.astype("<u2").tobytes()).decode("ascii")

    @property
    def relative_error(self) -> float:
        """Largest relative error of a decoded density."""
        return float(np.expm1(self.step / 2))


def embed(mesh: Mesh, densities: Array, budget: int = BUDGET, finest: int = FINEST) -> Embedded:
    """Encode densities (saves, labels, cells), coarsened and thinned until they fit ``budget`` bytes.

    Meshes finer than nside ``finest`` are coarsened first (circles: 64·finest cells); then saves are thinned to no
    fewer than 11, labels to no fewer than 16, and last the mesh is coarsened further.
    """
    saves, labels = list(range(densities.shape[0])), list(range(densities.shape[1]))
    notes: list[str] = []
    levels = 0
    limit = finest if mesh.kind == "healpix" else 64 * finest
    factor = 4 if mesh.kind == "healpix" else 2
    while mesh.resolution // 2**levels > limit and mesh.resolution % 2 ** (levels + 1) == 0:
        levels += 1

    def size() -> int:
        return 2 * len(saves) * len(labels) * mesh.cells // int(factor**levels)

    saves = _thin(saves, max(11, len(saves) * budget // max(size(), 1)))
    labels = _thin(labels, max(16, len(labels) * budget // max(size(), 1)))
    while size() > budget and mesh.resolution % 2 ** (levels + 1) == 0 and mesh.resolution // 2**levels > 1:
        levels += 1
    shown = coarser(mesh, levels) if levels else mesh
    values = coarsen(mesh, densities[np.ix_(saves, labels)], levels) if levels else densities[np.ix_(saves, labels)]
    if levels:
        word = "nside" if mesh.kind == "healpix" else "cells"
        notes.append(f"shown on averages over {word} {shown.resolution}, computed at {mesh.resolution}")
    if len(saves) < densities.shape[0]:
        notes.append(f"{len(saves)} of {densities.shape[0]} saved times")
    if len(labels) < densities.shape[1]:
        notes.append(f"{len(labels)} of {densities.shape[1]} labels")
    codes, low, step = encode(values)
    return Embedded(codes, low, step, shown, saves, labels, notes)


def encode(values: Array) -> tuple[NDArray[np.uint16], float, float]:
    """Codes, low and step of the logarithms of ``values``; 0 codes what is not positive."""
    positive = values > 0.0
    if not positive.any():
        return np.zeros(values.shape, dtype=np.uint16), 0.0, 1.0
    logs = np.log(values, where=positive, out=np.zeros(values.shape))
    low, high = float(logs[positive].min()), float(logs[positive].max())
    step = max(high - low, 1e-12) / (LEVELS - 1)
    codes = np.where(positive, np.round((logs - low) / step) + 1, 0)
    return codes.astype(np.uint16), low, step


def _thin(indices: list[int], wanted: int) -> list[int]:
    if len(indices) <= wanted:
        return indices
    return sorted({indices[round(float(place))] for place in np.linspace(0, len(indices) - 1, wanted)})
