"""The ways to compute the attention mean that are timed against each other, all with one signature."""

from collections.abc import Callable

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.integral import AttentionIntegral
from tokensphere.pde.threads import threads

Array = NDArray[np.float64]
Contender = Callable[[Array], Array]  # density (cells,) → attention mean (points, 3)

BLOCK = 512


def planned(method: str, mesh: Mesh, attention: Attention, points: Array) -> Contender:
    """One of the package's own methods, geometry planned outside the clock."""
    integral = AttentionIntegral(mesh, attention, points, method=method)
    return lambda density: integral(density)[0]


@njit(parallel=True)
def _plain(tilts, centers, log_masses, result):  # type: ignore[no-untyped-def]
    for i in prange(len(tilts)):
        largest = -np.inf
        for j in range(len(centers)):
            x = log_masses[j]
            for k in range(3):
                x += tilts[i, k] * centers[j, k]
            largest = max(largest, x)
        total, moments = 0.0, np.zeros(3)
        for j in range(len(centers)):
            x = log_masses[j]
            for k in range(3):
                x += tilts[i, k] * centers[j, k]
            weight = np.exp(x - largest)
            total += weight
            for k in range(3):
                moments[k] += weight * centers[j, k]
        result[i] = moments / total


def numba_plain(mesh: Mesh, attention: Attention, points: Array) -> Contender:
    """The log-sum-exp anyone would write: two loops over the cells, the library's exponential, all cores."""
    tilts = attention.tilts(points)

    def mean(density: Array) -> Array:
        result = np.empty_like(points)
        _plain(tilts, mesh.centers, np.log(density * mesh.areas), result)
        return result

    return mean


def numpy_blocked(mesh: Mesh, attention: Attention, points: Array) -> Contender:
    """Softmax in blocks of targets with numpy and BLAS."""
    tilts = attention.tilts(points)

    def mean(density: Array) -> Array:
        bias, result = np.log(density * mesh.areas), np.empty_like(points)
        for start in range(0, len(points), BLOCK):
            logits = tilts[start : start + BLOCK] @ mesh.centers.T + bias
            logits -= logits.max(axis=1, keepdims=True)
            np.exp(logits, out=logits)
            result[start : start + BLOCK] = logits @ mesh.centers / logits.sum(axis=1, keepdims=True)
        return result

    return mean


def torch_attention(precision: str, mesh: Mesh, attention: Attention, points: Array) -> Contender:
    """torch's scaled_dot_product_attention, the log masses as one more coordinate of query and key.

    Raises ImportError where torch is not installed.
    """
    import torch

    torch.set_num_threads(threads())
    kind = getattr(torch, precision)
    query = torch.tensor(np.column_stack([attention.tilts(points), np.ones(len(points))]), dtype=kind)[None, None]
    value = torch.tensor(mesh.centers, dtype=kind)[None, None]

    def mean(density: Array) -> Array:
        rows = np.column_stack([mesh.centers, np.log(density * mesh.areas)])
        key = torch.tensor(rows, dtype=kind)[None, None]
        padded = torch.nn.functional.pad(value, (0, 1))  # the fused kernel wants equal widths
        result = torch.nn.functional.scaled_dot_product_attention(query, key, padded, scale=1.0)
        return np.asarray(result[0, 0, :, :3].numpy(), dtype=np.float64)

    return mean
