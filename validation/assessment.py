"""All that the theorem has to say about one run, as one document of plain numbers and sentences."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.validation.bound import (
    WINDOW,
    Curve,
    decay_prefactor,
    fit_power,
    fit_rate,
    judge_bound,
    temperature_term,
    without_width,
)
from tokensphere.validation.hypotheses import Hypothesis, check_hypotheses
from tokensphere.validation.lipschitz import follow
from tokensphere.validation.phases import Thresholds, distance_to_eigenspace, predict_exit, read_phases, resolution
from tokensphere.validation.plain import plain
from tokensphere.validation.projection import Projection
from tokensphere.validation.reached import turned_angle
from tokensphere.validation.stability import dominant_degree
from tokensphere.validation.stillness import stillness
from tokensphere.validation.terminal import predict_terminal, spectrum

Floats = NDArray[np.float64]

SOFTMAX_ONLY = "the stability of clusters is known for softmax attention; this one is not normalised."


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
        "terminal": plain(asdict(predict_terminal(V, B, attention.beta, start))),
    }
    if not attention.normalised:
        document["terminal"] = {"reason": SOFTMAX_ONLY}
    if not math.isinf(attention.beta):
        document["exit"] = plain(asdict(predict_exit(attention)))
    if np.allclose(B, np.eye(len(B))) and np.allclose(V, B) and not math.isinf(attention.beta) and len(B) in (2, 3):
        document["dominant_degree"] = dominant_degree(len(B), attention.beta)
    return document


def assess_run(
    mesh: Mesh,
    attention: Attention,
    times: Floats,
    densities: Floats,
    checked: Sequence[Hypothesis] | None = None,
    distances: tuple[Floats, Floats, Floats] | None = None,
    compression: Floats | None = None,
    thresholds: Thresholds | None = None,
    metric: str = "chordal",
) -> dict[str, Any]:
    """Regularity along the run, bound, phases, terminal state and predictions: plain dicts, lists, floats, strings.

    times (saves,), densities (saves, cells) with the start first; checked: records of H1, H2, H3 where they are known
    (else from densities[0]); distances: (times, W2 to the limit, error bars) of a recorded curve in `metric`;
    compression: sup div v at the saves (saves,), for the lower bound of positivity (None: left out). Parts that do not
    apply carry a "reason" instead of numbers.
    """
    hypotheses = check_hypotheses(mesh, attention, densities[0]) if checked is None else list(checked)
    along = follow(mesh, times, densities, compression)
    return {
        "regularity": {
            "time": times.tolist(),
            "minimum": along.minima.tolist(),
            "minimum_lower_bound": along.lower_bounds.tolist(),
            "lipschitz": along.constants.tolist(),
        },
        "bound": _bound(attention, hypotheses, distances, metric),
        "phases": _phases(mesh, attention, times, densities, thresholds),
        "terminal": _terminal(mesh, attention, times, densities),
        "predictions": predictions(attention),
        "resolution": plain(asdict(resolution(mesh, attention))),
    }


def assess_sweep(
    curves: Sequence[Curve],
    c: float,
    D: float,
    widths: Floats | None = None,
    fixed_time: tuple[float, Floats, Floats] | None = None,
) -> dict[str, Any]:
    """The bound over a sweep in β: verdict with constants, and the plateau against β beside √(log(β+1)/β).

    curves: one W2 curve for each β; c, D: rate and prefactor that follow from H2; widths: cluster widths at the
    smallest distances, subtracted in squares where given. The plateau of a curve is its smallest distance.
    fixed_time: (t, β, W2(ρ^β_t, ρ_t)), whose power in β theory says is −1 for smooth data.
    """
    finite = sorted((curve for curve in curves if not math.isinf(curve.beta)), key=lambda curve: curve.beta)
    betas = np.array([curve.beta for curve in finite])
    plateaus = np.array([float(curve.distances.min()) for curve in finite])
    if widths is not None:
        plateaus = without_width(plateaus, widths)
    document: dict[str, Any] = plain(asdict(judge_bound(curves, c, D)))
    document["plateau"] = {
        "beta": betas.tolist(),
        "distance": plateaus.tolist(),
        "temperature_term": [temperature_term(float(beta)) for beta in betas],
    }
    for name, values in (("power", plateaus), ("power_of_temperature_term", document["plateau"]["temperature_term"])):
        try:
            document["plateau"][name] = plain(asdict(fit_power(betas, np.asarray(values))))
        except InputError as error:
            document["plateau"][name] = {"reason": str(error)}
    document["fixed_time_error"] = {"reason": "no distances to the run at beta = inf were given."}
    if fixed_time is not None:
        time, at, errors = fixed_time
        document["fixed_time_error"] = {
            "time": time,
            "beta": at.tolist(),
            "distance": errors.tolist(),
            "power": plain(asdict(fit_power(at, errors))),
        }
    return document


def _bound(
    attention: Attention, checked: Sequence[Hypothesis], distances: tuple[Floats, Floats, Floats] | None, metric: str
) -> dict[str, Any]:
    second = next((dict(item.details) for item in checked if item.name == "H2"), {})
    if distances is None or not second or not math.isfinite(second["moment"]) or second["rate"] <= 0:
        return {"verdict": "undecided", "reason": "no distance to the limit was measured, or no rate follows from H2."}
    times, values, errors = distances
    usable = np.isfinite(values)
    if np.count_nonzero(usable) < 2:
        return {"verdict": "undecided", "reason": "there is no measured distance to the limit."}
    p = min(float(second["p"]), 2.0)
    curve = Curve(attention.beta, times[usable], values[usable], np.nan_to_num(errors[usable]))
    judged = judge_bound([curve], float(second["rate"]), decay_prefactor(p, float(second["moment"]), metric))
    document: dict[str, Any] = plain(asdict(judged))
    document["predicted_rate_supremum"] = second["rate_supremum"]
    try:
        rate = fit_rate(curve.times, curve.distances, window=_window(curve.distances))
        document["fitted_rate"] = plain(asdict(rate))
    except InputError as error:
        document["fitted_rate"] = {"reason": str(error)}
    return document


def _window(distances: Floats) -> tuple[float, float]:
    """The concentration phase: well above the smallest distance, which is the plateau or the mesh floor."""
    low = max(WINDOW[0], 2 * float(distances.min()))
    return low, max(WINDOW[1], 2.5 * low)


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
    document: dict[str, Any] = plain(asdict(found))
    return document | {"thresholds": plain(asdict(thresholds or Thresholds()))}


def _terminal(mesh: Mesh, attention: Attention, times: Floats, densities: Floats) -> dict[str, Any]:
    if math.isinf(attention.beta):
        return {"reason": "beta is inf: the density follows the zero-temperature flow and has no terminal phase."}
    if not attention.normalised:
        return {"reason": SOFTMAX_ONLY}
    document: dict[str, Any] = plain(asdict(stillness(mesh, attention, densities[-1])))
    means = densities @ (mesh.areas[:, None] * mesh.centers)
    if np.linalg.norm(means, axis=1).min() > 1e-6:
        document["turned_angle"] = float(turned_angle(means)[-1])
    return document
