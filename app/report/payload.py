"""The data behind the interactive picture."""

from typing import Any

import numpy as np
from matplotlib import colormaps

from tokensphere.plots.colours import DENSITY_MAP
from tokensphere.plots.sphere import view_centres
from tokensphere.report.clusters import find_clusters
from tokensphere.report.embedding import Embedded
from tokensphere.report.loading import RunData


def payload(run: RunData, embedded: Embedded) -> dict[str, Any]:
    """The data of the interactive picture."""
    mesh, chosen = embedded.mesh, embedded.saves
    weights = np.ones(1) if run.label_weights is None else run.label_weights[embedded.labels]
    points = np.zeros(1) if run.label_points is None else run.label_points[embedded.labels]
    weights = weights / weights.sum()
    highest = float(np.exp(embedded.low + (int(embedded.codes.max()) - 1) * embedded.step))
    clusters = [find_clusters(run.mesh, run.marginal[k]) for k in chosen]
    shades = np.round(255 * np.asarray(colormaps[DENSITY_MAP](np.linspace(0, 1, 256)))[:, :3]).astype(int)
    basis = run.limit_basis
    limit = None if basis is None or basis.shape[1] > 2 else basis.T.tolist()
    centre = [1.0, 0.5, 0.5]
    if run.mesh.dimension == 3 and basis is not None and basis.shape[1] == 1:
        centre = list(view_centres(basis)[0])
    return {
        "kind": mesh.kind,
        "resolution": mesh.resolution,
        "cells": mesh.cells,
        "times": [float(run.times[k]) for k in chosen],
        "first": len(chosen) // 3,
        "labels": points.tolist(),
        "weights": weights.tolist(),
        "low": embedded.low,
        "step": embedded.step,
        "highest": highest,
        "codes": embedded.base64,
        "palette": [f"{red:02x}{green:02x}{blue:02x}" for red, green, blue in shades],
        "unit": run.unit,
        "limit": limit,
        "value_vectors": value_vectors(run),
        "clusters": [
            [{"direction": c.direction, "mass": c.mass, "width": c.width} for c in found] for found in clusters
        ],
        "centre": centre,
    }


def value_vectors(run: RunData) -> list[list[float]]:
    """The eigenvector of V of the largest real part, where that eigenvalue is real and simple; drawn as ±v."""
    if run.attention is None:
        return []
    values, vectors = np.linalg.eig(run.attention.value)
    order = np.argsort(-values.real)
    top = values[order[0]]
    simple = abs(top - values[order[1]]) > 1e-9 * max(1.0, abs(top))
    if abs(top.imag) > 1e-12 or not simple:
        return []
    vector = vectors[:, order[0]].real
    return [(vector / np.linalg.norm(vector) * np.sign(vector[np.argmax(np.abs(vector))])).tolist()]
