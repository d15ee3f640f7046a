"""The attention integral by a tree: relative accuracy over any dynamic range at a cost nearly linear in the sources."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.pde.sources import bisect, enclose, padded
from tokensphere.pde.threads import threads
from tokensphere.pde.tree_blocks import serve_task
from tokensphere.pde.tree_orders import exponential_orders
from tokensphere.pde.tree_targets import target_blocks
from tokensphere.pde.tree_walk import masses_up

Array = NDArray[np.float64]
Selection = NDArray[np.int64] | NDArray[np.bool_]

LARGEST_LEAF = 8
SMALLEST_PART = 16
TASKS = 32
"""Parts of the work, dealt out to threads: their number is fixed, so that results do not depend on the threads."""
OMISSION, TRUNCATION = 0.04, 0.36
"""Parts of rtol for nodes and for sources left out of F each, and for the error of all expansions."""
MINOR_SHARE = 1000.0
"""Sources that hold this many rtol of F together are summed in single precision, with errors of 5e-5 at most: another
0.05 rtol. In all log F is off by at most rtol/2 and the mean by at most twice that."""


class TreePlan:
    """log F(z) and ∇ log F(z) of F(z) = Σ_j m_j e^{⟨z, y_j⟩} for fixed sources y_j and targets z, and changing masses.

    sources (m, d) unit vectors and tilts (n, d), z = βBᵀx, d = 2 or 3, in any order: both are sorted into compact
    blocks here, once. Errors of log F and of the mean are at most rtol, by rigorous bounds and relative to F at that
    very target, for masses of any dynamic range; round-off adds that of the exponents, about 2e-16 |z|. Memory is
    O(m + n), and results are bitwise independent of the number of threads.

    Raises InputError unless the arrays are finite, of one dimension d, and 0 < rtol < 1.
    """

    def __init__(self, sources: Array, tilts: Array, rtol: float = 1e-8) -> None:
        if not 0.0 < rtol < 1.0:
            raise InputError(f"rtol = {rtol} was given, but the relative tolerance must lie between 0 and 1.")
        source_points, target_points = padded(sources, "sources"), padded(tilts, "tilts")
        self._dimension = np.shape(sources)[1]
        if np.shape(tilts)[1] != self._dimension:
            raise InputError(
                f"sources have {self._dimension} coordinates and tilts {np.shape(tilts)[1]}; give the same number."
            )
        lengths = np.linalg.norm(source_points, axis=1)
        if abs(lengths - 1.0).max() > 1e-6:
            row = int(np.argmax(abs(lengths - 1.0)))
            raise InputError(f"source {row} has length {lengths[row]:.9g}; give unit vectors.")
        flat = self._dimension == 2
        tree = bisect(source_points, LARGEST_LEAF)
        self._source_order, self._levels, self._nodes = tree.order, tree.levels, enclose(tree)
        self._columns = np.ascontiguousarray(tree.points.T)
        targets = bisect(target_points, SMALLEST_PART)
        self._tilts = np.ascontiguousarray(targets.points.T)
        self._places = np.empty_like(targets.order)
        self._places[targets.order] = np.arange(len(targets.order))
        self._blocks = target_blocks(targets, flat)
        orders = exponential_orders()
        tables = (orders.value_errors, orders.slope_errors)
        expansion = (tables, orders.coefficients, orders.binomials)
        tolerances = (OMISSION * rtol, TRUNCATION * rtol, MINOR_SHARE * rtol)
        self._settings = (expansion, tolerances, flat)

    def __call__(self, log_masses: Array, targets: Selection | None = None) -> tuple[Array, Array]:
        """Mean ∇ log F (n, d) and log F (n,) for log m_j (m,), where −inf is an empty source.

        ``targets``, indices or a boolean mask, asks for these rows only (in this order). If every source is empty,
        log F is −inf and the mean 0; a NaN or +inf among the log masses makes everything NaN. Raises InputError for a
        wrong number of masses.
        """
        masses = np.asarray(log_masses, dtype=np.float64)
        count = len(self._source_order)
        if masses.shape != (count,):
            raise InputError(f"log_masses has shape {masses.shape}, but there are {count} sources; give one each.")
        places = self._places if targets is None else self._places[targets]
        shape = (len(places), self._dimension)
        if not (masses < np.inf).all():
            return np.full(shape, np.nan), np.full(len(places), np.nan)
        if masses.max() == -np.inf:
            return np.zeros(shape), np.full(len(places), -np.inf)
        return self._serve(masses[self._source_order], places)

    def _serve(self, log_masses: Array, places: NDArray[np.int64]) -> tuple[Array, Array]:
        """The mean and log F of the sorted targets at these places."""
        asked = np.full(self._tilts.shape[1], -1, dtype=np.int32)
        asked[places] = np.arange(len(places))
        if np.count_nonzero(asked >= 0) < len(places):  # some place is asked for twice
            places, back = np.unique(places, return_inverse=True)
            mean, log_normaliser = self._serve(log_masses, places)
            return mean[back], log_normaliser[back]
        weights = np.empty((len(self._nodes), 4))
        masses_up(self._columns, log_masses, self._levels, weights)
        mean, log_normaliser = np.empty((len(places), self._dimension)), np.empty(len(places))
        sources = (self._columns, log_masses, self._nodes, weights)

        def task(number: int) -> None:
            serve_task(number, TASKS, self._tilts, asked, self._blocks, sources, self._levels, *self._settings, mean,
                       log_normaliser)  # fmt: skip

        run_tasks(task)
        return mean, log_normaliser


def run_tasks(task: Callable[[int], None]) -> None:
    """Run tasks 0 … TASKS−1, which release the interpreter lock, on all threads allowed."""
    if threads() == 1:
        for number in range(TASKS):
            task(number)
        return
    with ThreadPoolExecutor(threads()) as pool:
        for done in [pool.submit(task, number) for number in range(TASKS)]:
            done.result()
