"""All that the theorem has to say about one run, as one document of plain numbers and sentences."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.validation.bound import Curve, decay_prefactor, fit_rate, judge_bound, temperature_term
from tokensphere.validation.hypotheses import Density, Hypothesis, check_hypotheses
from tokensphere.validation.lipschitz import follow
from tokensphere.validation.phases import Thresholds, distance_to_eigenspace, predict_exit, read_phases, resolution
from tokensphere.validation.projection import Projection
from tokensphere.validation.reached import turned_angle
from tokensphere.validation.stability import dominant_degree
from tokensphere.validation.stillness import stillness
from tokensphere.validation.terminal import predict_terminal, spectrum

Floats = NDArray[np.float64]


def predictions(attention: Attention) -> dict[str, Any]:
    """What theory says before anything is solved: temperature term, exit, terminal state, spectrum of V."""
    V, B = attention.value, attention.B
    start = None
    try:
        projection = Projection(attention)
        start = projection.basis if projection.gap > 0 else None
    except InputError:
        pass
    found = spectrum(V, B)
    document: dict[str, Any] = {
        "temperature_term": temperature_term(attention.beta),
        "value_spectrum": {
            "kind": found.kind,
            "real": found.values.real.tolist(),
            "imaginary": found.values.imag.tolist(),
            "rotates": found.rotates,
        },
        "terminal": _plain(asdict(predict_terminal(V, B, attention.beta, start))),
    }
    if not math.isinf(attention.beta):
        document["exit"] = _plain(asdict(predict_exit(attention)))
    if np.allclose(B, np.eye(len(B))) and np.allclose(V, B) and not math.isinf(attention.beta) and len(B) in (2, 3):
        document["dominant_degree"] = dominant_degree(len(B), attention.beta)
    return document


def assess_run(
    mesh: Mesh,
    attention: Attention,
    times: Floats,
    densities: Floats,
    rho0: Density | Floats | None = None,
    distances: tuple[Floats, Floats, Floats] | None = None,
    thresholds: Thresholds | None = None,
) -> dict[str, Any]:
    """Hypotheses, regularity along the run, bound, phases, terminal state: plain dicts, lists, floats and strings.

    times (saves,), densities (saves, cells); rho0: the function the run began with, where known (else densities[0]);
    distances: (times, W2 to the limit, error bars) of a recorded curve, where there is one. Parts that do not apply
    carry a "reason" instead of numbers.
    """
    checked = check_hypotheses(mesh, attention, densities[0] if rho0 is None else rho0)
    along = follow(mesh, times, densities)
    return {
        "hypotheses": [_plain(asdict(item)) for item in checked],
        "regularity": {"time": times.tolist(), "minimum": along.minima.tolist(), "lipschitz": along.constants.tolist()},
        "bound": _bound(attention, checked, distances),
        "phases": _phases(mesh, attention, times, densities, thresholds),
        "terminal": _terminal(mesh, attention, times, densities),
        "predictions": predictions(attention),
        "resolution": _plain(asdict(resolution(mesh, attention))),
    }


def _bound(
    attention: Attention, checked: list[Hypothesis], distances: tuple[Floats, Floats, Floats] | None
) -> dict[str, Any]:
    second = checked[1].details
    if distances is None or not second or not math.isfinite(second["moment"]) or second["rate"] <= 0:
        return {"verdict": "undecided", "reason": "no distance to the limit was measured, or no rate follows from H2."}
    times, values, errors = distances
    usable = np.isfinite(values)
    if np.count_nonzero(usable) < 2:
        return {"verdict": "undecided", "reason": "there is no measured distance to the limit."}
    p = min(float(second["p"]), 2.0)
    curve = Curve(attention.beta, times[usable], values[usable], np.nan_to_num(errors[usable]))
    judged = judge_bound([curve], float(second["rate"]), decay_prefactor(p, float(second["moment"])))
    document: dict[str, Any] = _plain(asdict(judged))
    document["predicted_rate_supremum"] = second["rate_supremum"]
    try:
        document["fitted_rate"] = _plain(asdict(fit_rate(curve.times, curve.distances)))
    except InputError as error:
        document["fitted_rate"] = {"reason": str(error)}
    return document


def _phases(
    mesh: Mesh, attention: Attention, times: Floats, densities: Floats, thresholds: Thresholds | None
) -> dict[str, Any]:
    try:
        projection = Projection(attention)
        if projection.gap == 0:
            return {"reason": "the spectral gap of VBᵀ is 0, so there is no E to concentrate on."}
        found = read_phases(times, distance_to_eigenspace(mesh, densities, projection.basis), thresholds)
    except InputError as error:
        return {"reason": str(error)}
    document: dict[str, Any] = _plain(asdict(found))
    return document | {"thresholds": _plain(asdict(thresholds or Thresholds()))}


def _terminal(mesh: Mesh, attention: Attention, times: Floats, densities: Floats) -> dict[str, Any]:
    if math.isinf(attention.beta):
        return {"reason": "beta is inf: the density follows the zero-temperature flow and has no terminal phase."}
    document: dict[str, Any] = _plain(asdict(stillness(mesh, attention, densities[-1])))
    means = densities @ (mesh.areas[:, None] * mesh.centers)
    if np.linalg.norm(means, axis=1).min() > 1e-6:
        document["turned_angle"] = float(turned_angle(means)[-1])
    return document


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, complex):
        return [value.real, value.imag]
    return value
