"""`tokensphere check`: the theorem's hypotheses for a configuration, and what follows from them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.config import Config
from tokensphere.config.building import build_attention, build_initial, build_mesh, matrix_of
from tokensphere.config.tables import AttentionTable
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention, SingularError
from tokensphere.report.predictions import initial_function
from tokensphere.validation.hypotheses import Hypothesis, check_hypotheses, hypothesis_one, hypothesis_three
from tokensphere.validation.phases import predict_exit, resolution
from tokensphere.validation.projection import Projection
from tokensphere.validation.terminal import predict_terminal

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Check:
    """One record per hypothesis, and predictions: name → one sentence."""

    hypotheses: list[Hypothesis]
    predictions: dict[str, str]

    @property
    def holds(self) -> bool:
        """Whether every hypothesis holds; undecided is not enough."""
        return all(hypothesis.verdict == "holds" for hypothesis in self.hypotheses)

    def as_dict(self) -> dict[str, Any]:
        """Plain content for JSON."""
        return {"holds": self.holds, "hypotheses": self.hypotheses, "predictions": self.predictions}


def check_configuration(config: Config) -> Check:
    """H1 to H3 and the rates that follow. A singular B is reported as H1 failing, not refused.

    Raises InputError for a joint law, which the theorem does not speak of.
    """
    if config.attention is None:
        raise InputError(
            "the hypotheses are about a density under [attention], but this configuration describes a joint "
            "law; run it instead."
        )
    mesh = build_mesh(config.mesh)
    density = build_initial(config.initial, mesh)
    try:
        attention = build_attention(config.attention, config.dimension)
    except SingularError:
        return _singular(config.attention, config, mesh, density)
    return Check(judge(config, mesh, attention, density), predictions(config, mesh, attention))


def judge(config: Config, mesh: Mesh, attention: Attention, density: Array) -> list[Hypothesis]:
    """H1 to H3, from ρ0 in closed form where there is one, else from its cell averages; undecided where the mesh is too
    coarse to say."""
    start = initial_function(config)
    try:
        return check_hypotheses(mesh, attention, density if start is None else start)
    except InputError as error:
        first = hypothesis_one(attention.value, attention.B)
        return [first, *(Hypothesis(name, "undecided", math.nan, math.nan, str(error)) for name in ("H2", "H3"))]


def predictions(config: Config, mesh: Mesh, attention: Attention) -> dict[str, str]:
    """What theory expects of the three phases, and whether the mesh resolves it."""
    found = {}
    try:
        projection = Projection(attention)
    except InputError as error:
        return {"limit": str(error)}
    if projection.gap == 0:
        return {"limit": "the spectral gap of VBᵀ is 0: nothing is selected."}
    stretch = float(np.linalg.svd(attention.B, compute_uv=False)[0])
    found["angle to E"] = f"tan of the angle to E falls at least like e^(-{projection.gap / stretch:.4g} t) at β = inf."
    leaving = predict_exit(attention)
    found["exit"] = leaving.reason + (f" Expected at t = {leaving.time:.4g}." if math.isfinite(leaving.time) else "")
    if not attention.zero_temperature:
        terminal = predict_terminal(attention.value, attention.B, attention.beta, projection.basis)
        found["terminal state"] = f"{terminal.name}: {terminal.reason}"
        found["mesh"] = resolution(mesh, attention).reason
    return found


def _singular(table: AttentionTable, config: Config, mesh: Mesh, density: Array) -> Check:
    query, key, value = (matrix_of(entries, config.dimension) for entries in (table.query, table.key, table.value))
    first = hypothesis_one(value, query.T @ key)
    second = Hypothesis("H2", "undecided", math.nan, math.nan, "B is singular, so there is no flow to concentrate.")
    start = initial_function(config)
    try:
        third = hypothesis_three(mesh, density if start is None else start)
    except InputError as error:
        third = Hypothesis("H3", "undecided", math.nan, math.nan, str(error))
    return Check([first, second, third], {"limit": "B is singular: the theorem does not apply."})
