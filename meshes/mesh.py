"""The unstructured mesh that circle and HEALPix sphere share."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.int32]
Signs = NDArray[np.int8]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Mesh:
    """Cells and faces of S^{d−1}, enough for finite volumes and nothing more.

    The quadrature points of face f are the rows ``face_offsets[f]:face_offsets[f + 1]`` of ``face_points`` (two on most
    HEALPix faces, three around the poles, one on the circle).

    Attributes:
        kind: "healpix" or "circle".
        resolution: nside, or the number of cells of the circle.
        centers: (cells, d) normalised centroids, nested order.
        areas: (cells,) areas (arc lengths on the circle); they sum to 4π (2π).
        face_cells: (faces, 2) first and second cell of each face.
        face_offsets: (faces + 1,) where the points of each face begin.
        face_points: (points, d) unit vectors.
        face_normals: (points, d) tangent normals, first cell to second, times length and quadrature weight.
        cell_faces: (cells, 4) or (cells, 2) faces of each cell; those m and m + 2 (m and m + 1) lie opposite.
        cell_signs: same shape, +1 where the cell is the first of the face, −1 where it is the second.
        neighbours: (cells, 8) or (cells, 2) cells sharing a face or a vertex, padded with the cell itself; those across
            the faces come first, in the order of ``cell_faces``.
        gradient_weights: (cells, 8 or 2, d): the gradient of cell i is Σ_k w_ik (ρ_k − ρ_i), tangent at its centre.
    """

    kind: str
    resolution: int
    centers: Floats
    areas: Floats
    face_cells: Indices
    face_offsets: Indices
    face_points: Floats
    face_normals: Floats
    cell_faces: Indices
    cell_signs: Signs
    neighbours: Indices
    gradient_weights: Floats
    cells: int = field(init=False)
    dimension: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", self.centers.shape[0])
        object.__setattr__(self, "dimension", self.centers.shape[1])
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def total_area(self) -> float:
        """4π on the sphere, 2π on the circle."""
        return 4 * math.pi if self.kind == "healpix" else 2 * math.pi

    @property
    def width(self) -> float:
        """h: the square root of a cell's area, or the cell's length on the circle."""
        area = self.total_area / self.cells
        return math.sqrt(area) if self.kind == "healpix" else area

    def __repr__(self) -> str:
        return f"{self.kind}({self.resolution}): {self.cells} cells, {len(self.face_cells)} faces, h = {self.width:.4g}"
