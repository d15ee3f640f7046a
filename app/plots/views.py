"""Flat pictures of the sphere: the Mollweide and orthographic maps with their inverses, as pure functions of arrays."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError

Array = NDArray[np.float64]


class View(Hashable, Protocol):
    """A map of the sphere to the plane."""

    @property
    def half_width(self) -> float:
        """Largest |x| of the picture."""

    @property
    def half_height(self) -> float:
        """Largest |y| of the picture."""

    def directions(self, x: Array, y: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Unit vectors (…,3) seen at plane positions, and whether the position lies on the picture of the sphere.

        x and y need only be broadcastable.
        """

    def flatten(self, points: ArrayLike) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Plane positions x, y of unit vectors (…,3), and whether they are visible."""


@dataclass(frozen=True)
class Mollweide:
    """The whole sphere in an ellipse, equal areas: x = (2√2/π)(λ−λ0)cosθ, y = √2 sinθ, 2θ + sin2θ = π sinφ.

    Longitude λ runs from x1 towards x2 and grows to the right, latitude φ towards x3; ``longitude`` is λ0 in radians.
    Source: Snyder, Map Projections: A Working Manual (1987), p. 251.
    """

    longitude: float = 0.0
    half_width: float = 2.0 * np.sqrt(2.0)
    half_height: float = np.sqrt(2.0)

    def directions(self, x: Array, y: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Unit vectors (…,3) at plane positions, and whether they lie inside the ellipse."""
        inside = (x / self.half_width) ** 2 + (y / self.half_height) ** 2 <= 1.0
        sine = np.clip(y / self.half_height, -1.0, 1.0)
        theta = np.arcsin(sine)
        height = np.clip((2.0 * theta + np.sin(2.0 * theta)) / np.pi, -1.0, 1.0)
        cosine = np.maximum(np.cos(theta), 1e-12)
        azimuth = self.longitude + np.clip(np.pi * x / (self.half_width * cosine), -np.pi, np.pi)
        radius = np.sqrt(1.0 - height**2)
        vectors = np.stack(np.broadcast_arrays(radius * np.cos(azimuth), radius * np.sin(azimuth), height), axis=-1)
        return vectors, inside

    def flatten(self, points: ArrayLike) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Plane positions of unit vectors (…,3); all are visible."""
        vectors = np.asarray(points, dtype=float)
        theta = mollweide_angle(np.clip(vectors[..., 2], -1.0, 1.0))
        azimuth = np.arctan2(vectors[..., 1], vectors[..., 0]) - self.longitude
        azimuth = np.mod(azimuth + np.pi, 2.0 * np.pi) - np.pi
        x = self.half_width / np.pi * azimuth * np.cos(theta)
        return x, self.half_height * np.sin(theta), np.ones(x.shape, dtype=bool)


@dataclass(frozen=True)
class Orthographic:
    """The half sphere around ``centre`` seen from far away: x = ⟨p, right⟩, y = ⟨p, up⟩.

    Up is x3 (x2 when looking from ±x3).
    """

    centre: tuple[float, float, float] = (1.0, 0.0, 0.0)
    half_width: float = 1.0
    half_height: float = 1.0

    def frame(self) -> Array:
        """Rows right, up, centre: a right-handed orthonormal frame."""
        centre = np.asarray(self.centre, dtype=float)
        length = np.linalg.norm(centre)
        if not np.isfinite(length) or length == 0.0:
            raise InputError(
                f"The centre of an orthographic view is {self.centre}; it must be a finite non-zero vector."
            )
        centre = centre / length
        pole = np.array([0.0, 0.0, 1.0]) if abs(centre[2]) < 0.999 else np.array([0.0, 1.0, 0.0])
        up = pole - (pole @ centre) * centre
        up /= np.linalg.norm(up)
        return np.stack([np.cross(up, centre), up, centre])

    def directions(self, x: Array, y: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Unit vectors (…,3) at plane positions, and whether they lie inside the disc."""
        square = x**2 + y**2
        depth = np.sqrt(np.maximum(0.0, 1.0 - square))
        shrink = 1.0 / np.maximum(1.0, np.sqrt(square))
        return np.stack([x * shrink, y * shrink, depth], axis=-1) @ self.frame(), square <= 1.0

    def flatten(self, points: ArrayLike) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Plane positions of unit vectors (…,3); those on the far half are not visible."""
        seen = np.asarray(points, dtype=float) @ self.frame().T
        return seen[..., 0], seen[..., 1], seen[..., 2] >= -1e-9


def mollweide_angle(height: Array) -> Array:
    """The auxiliary angle θ with 2θ + sin2θ = π·height, by safeguarded Newton steps; height in [−1, 1]."""
    target = np.pi * np.abs(height)
    theta = np.arcsin(np.abs(height)) * 0.8
    # Near the poles the root is triple and Newton slow: start from 2θ + sin2θ ≈ π − (4/3)(π/2−θ)³ there.
    polar = np.abs(height) > 0.9
    theta = np.where(polar, np.pi / 2 - np.cbrt(0.75 * (np.pi - target)), theta)
    for _ in range(12):
        slope = np.maximum(2.0 + 2.0 * np.cos(2.0 * theta), 1e-12)
        theta = np.clip(theta - (2.0 * theta + np.sin(2.0 * theta) - target) / slope, 0.0, np.pi / 2)
    signed: Array = np.sign(height) * np.where(np.abs(height) >= 1.0, np.pi / 2, theta)
    return signed


def pixel_grid(view: View, width: int) -> tuple[Array, Array]:
    """Plane positions x (1, width), y (rows, 1) of the pixels of a picture ``width`` pixels wide, lowest row first."""
    rows = max(1, round(width * view.half_height / view.half_width))
    x = ((np.arange(width) + 0.5) / width * 2.0 - 1.0) * view.half_width
    y = ((np.arange(rows) + 0.5) / rows * 2.0 - 1.0) * view.half_height
    return x[None, :], y[:, None]


def visible_pieces(view: View, points: ArrayLike) -> Iterator[Array]:
    """Plane polylines (n,2) of a curve of unit vectors (m,3), cut where it is hidden or crosses the edge of the map."""
    x, y, visible = view.flatten(points)
    jump = np.abs(np.diff(x)) > 0.5 * view.half_width
    cuts = np.flatnonzero(jump | (visible[1:] != visible[:-1])) + 1
    for piece in np.split(np.arange(x.size), cuts):
        if piece.size > 1 and visible[piece[0]]:
            yield np.stack([x[piece], y[piece]], axis=-1)


def great_circle(basis: ArrayLike, count: int = 361) -> Array:
    """Closed curve (count,3) of the unit vectors in the plane of the two orthonormal columns of ``basis`` (3,2)."""
    plane = np.asarray(basis, dtype=float)
    angle = np.linspace(0.0, 2.0 * np.pi, count)
    curve: Array = np.stack([np.cos(angle), np.sin(angle)], axis=-1) @ plane.T
    return curve


def outline(view: View, count: int = 361) -> Array:
    """The edge of the map (count,2)."""
    angle = np.linspace(0.0, 2.0 * np.pi, count)
    return np.stack([view.half_width * np.cos(angle), view.half_height * np.sin(angle)], axis=-1)
