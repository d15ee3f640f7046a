"""Cells painted on the pixels of a map."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.transforms import Affine2D
from numpy.typing import NDArray

Colours = NDArray[np.uint8]


class MapImage(AxesImage):
    """A picture of cell numbers (rows, columns), lowest row first, each drawn in the colour of its cell, (…, 4).

    Every pixel of the page takes the nearest of the picture. An ordinary image would do the same in floating point for
    four channels.
    """

    def __init__(self, axes: Axes, cells: NDArray[np.int32], colours: Colours, half: tuple[float, float]) -> None:
        extent = (-half[0], half[0], -half[1], half[1])
        super().__init__(axes, interpolation="nearest", origin="lower", extent=extent)
        self.set_data(colours[None])
        self._cells = cells
        self._colours = colours

    def make_image(
        self, renderer: Any, magnification: float = 1.0, unsampled: bool = False
    ) -> tuple[Colours, float, float, Affine2D]:
        """The pixels (rows, columns, 4) with the place of their lower left corner."""
        left, right, bottom, top = self.get_extent()
        corners = self.get_transform().transform([(left, bottom), (right, top)]) * magnification
        (x0, y0), (x1, y1) = corners
        columns = np.arange(round(x0), max(round(x1), round(x0) + 1))
        rows = np.arange(round(y0), max(round(y1), round(y0) + 1))
        across = _nearest((columns + 0.5 - x0) / (x1 - x0), self._cells.shape[1])
        up = _nearest((rows + 0.5 - y0) / (y1 - y0), self._cells.shape[0])
        picture = self._colours[self._cells[np.ix_(up, across)]]
        return picture, columns[0] / magnification, rows[0] / magnification, Affine2D()


def _nearest(fractions: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    return np.clip((fractions * count).astype(np.int64), 0, count - 1)
