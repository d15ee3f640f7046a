"""What a density, or a set of tokens, has reached: clusters, distances to the eigenspaces of V, turning."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from tokensphere.meshes.mesh import Mesh
from tokensphere.validation.terminal import spectrum

Floats = NDArray[np.float64]

SMEARED = 0.2  # β·variance of a cluster above which it counts as smeared: collapse sends it to 0, repulsion to order 1
COMPACT = 0.25  # variance (radians²) below which the heaviest part has a direction that can turn
TURNING = 1e-2  # speed of a cluster centre, in units of |V|, above which it moves


@dataclass(frozen=True)
class Cluster:
    """A connected part of the law: its mass, centre (d,) on the sphere, and variance per tangent direction."""

    mass: float
    center: Floats
    variance: float


@dataclass(frozen=True)
class Reached:
    """State of a law against V.

    clusters: by falling mass. distances: chordal W2 to each real eigenvector line of V, in the order of
    `spectrum(V, B).directions`, with eigenvalues `values` and vectors (k, d). nearest: index of the smallest.
    scaled_variance: β times the mass-weighted variance. speed: |P_c V E_c| of the heaviest cluster centre, E_c the
    attention mean there, relative to |V|.
    name: "one cluster", "two clusters", "several clusters", "smeared" or "rotating" or "moving".
    """

    clusters: tuple[Cluster, ...]
    values: Floats
    vectors: Floats
    distances: Floats
    nearest: int
    scaled_variance: float
    speed: float
    name: str


def find_clusters(points: Floats, masses: Floats, link: float, least: float = 0.01) -> list[Cluster]:
    """Connected parts of weighted points (n, d), two points being linked within the distance `link`.

    Parts of less than `least` of the mass are left out, but the largest stays. By falling mass.
    """
    pairs = cKDTree(points).query_pairs(link, output_type="ndarray")
    graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(points), len(points)))
    count, part = connected_components(graph, directed=False)
    mass = np.bincount(part, masses, minlength=count)
    found: list[Cluster] = []
    for index in np.argsort(-mass):
        if found and mass[index] < least * mass.sum():
            break
        found.append(_cluster(points[part == index], masses[part == index], float(mass.sum())))
    return found


def _cluster(points: Floats, masses: Floats, total: float) -> Cluster:
    mass = float(masses.sum())
    mean = masses @ points / mass
    center = mean / max(float(np.linalg.norm(mean)), np.finfo(float).tiny)
    spread = masses @ np.sum((points - center) ** 2, axis=1) / mass / (points.shape[1] - 1)
    return Cluster(mass / total, center, float(spread))


def mesh_clusters(mesh: Mesh, density: Floats, share: float = 0.98, least: float = 0.01) -> list[Cluster]:
    """Clusters of the smallest superlevel set of a density (cells,) that holds `share` of the mass.

    The rest of the mass then goes to the nearest of them: tails are part of a variance.
    """
    masses = density * mesh.areas
    order = np.argsort(-density, kind="stable")
    held = np.cumsum(masses[order])
    chosen = order[: int(np.searchsorted(held, share * held[-1])) + 1]
    cores = find_clusters(mesh.centers[chosen], masses[chosen], 1.8 * mesh.width, least)
    nearest = np.argmax(mesh.centers @ np.array([core.center for core in cores]).T, axis=1)
    total = float(held[-1])
    parts = [_cluster(mesh.centers[nearest == k], masses[nearest == k], total) for k in range(len(cores))]
    return sorted(parts, key=lambda part: -part.mass)


def describe(
    points: Floats, masses: Floats, clusters: list[Cluster], value: Floats, interaction: Floats, beta: float
) -> Reached:
    """State of the law Σ m_i δ(points_i) with the clusters found in it, against the eigenvectors of V = `value`.

    A centre c is at rest when V applied to the attention mean of the clusters, weights m_j e^{β⟨Bᵀc,c_j⟩}, has no
    tangent part there: one cluster rests on eigenvectors of V only. Source: theory §1.6.
    """
    found = spectrum(value, interaction)
    vectors = np.array([item.vector for item in found.directions]).reshape(-1, points.shape[1])
    values = np.array([item.value for item in found.directions])
    share = masses / masses.sum()
    squares = 2 * (1 - np.minimum(np.abs(points @ vectors.T), 1.0))
    distances = np.sqrt(share @ squares)
    scaled = beta * sum(c.mass * c.variance for c in clusters) / sum(c.mass for c in clusters)
    speed = _speed(clusters, value, interaction, beta)
    if found.rotates and speed > TURNING and clusters[0].variance < COMPACT:
        name = "rotating"
    elif scaled > SMEARED:
        name = "smeared"
    elif speed > TURNING:
        name = "moving"
    else:
        name = {1: "one cluster", 2: "two clusters"}.get(len(clusters), "several clusters")
    nearest = int(np.argmin(distances)) if len(distances) else -1
    return Reached(tuple(clusters), values, vectors, distances, nearest, float(scaled), speed, name)


def _speed(clusters: list[Cluster], value: Floats, interaction: Floats, beta: float) -> float:
    centers = np.array([c.center for c in clusters])
    c = centers[0]
    exponents = beta * (centers @ (interaction.T @ c)) + np.log([part.mass for part in clusters])
    weights = np.exp(exponents - exponents.max())
    pull = value @ (weights @ centers / weights.sum())
    return float(np.linalg.norm(pull - (c @ pull) * c) / np.linalg.norm(value, 2))


def reached_state(mesh: Mesh, density: Floats, value: Floats, interaction: Floats, beta: float) -> Reached:
    """`describe` for cell averages (cells,) on a mesh; value is V, interaction is B."""
    return describe(
        mesh.centers, density * mesh.areas, mesh_clusters(mesh, density), value, interaction, beta
    )


def reached_tokens(points: Floats, value: Floats, interaction: Floats, beta: float, link: float = 0.2) -> Reached:
    """`describe` for equally weighted tokens (n, d); tokens within `link` of each other belong together."""
    masses = np.full(len(points), 1.0 / len(points))
    return describe(points, masses, find_clusters(points, masses, link), value, interaction, beta)


def turned_angle(means: Floats) -> Floats:
    """Angle (saves,) swept by the directions of means (saves, d) since the first save, in radians.

    Steps must turn by less than π. A stationary state stops turning; a complex pair of V keeps its frequency.
    """
    directions = means / np.linalg.norm(means, axis=1, keepdims=True)
    cosines = np.clip(np.sum(directions[1:] * directions[:-1], axis=1), -1.0, 1.0)
    return np.concatenate([[0.0], np.cumsum(np.arccos(cosines))])
