"""Positivity and the Lipschitz constant of a density by refinement: the measurements behind hypothesis H3."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.levels import coarsen, coarser
from tokensphere.meshes.mesh import Mesh

Floats = NDArray[np.float64]
Density = Callable[[Floats], Floats]

LIPSCHITZ = 0.1  # a growth exponent below this is read as bounded: Hölder exponents above .9 cannot be told from 1
JUMP = 0.95  # above this as a jump
UNSETTLED = 0.25  # exponents that spread more than this over the finest levels decide nothing


@dataclass(frozen=True)
class Regularity:
    """What a ladder of levels says of a density.

    widths, quotients (levels,): cell widths h, coarse to fine, and the largest difference quotient L(h) at each.
    exponents (levels−1,): growth of L per halving of h, log2(L(h/2)/L(h)).
    kind: "Lipschitz" (L converges), "Hölder" (L ~ h^{s−1}), "jump" (L ~ 1/h) or "undecided".
    exponent: s (1 for Lipschitz, 0 for a jump); uncertainty of s; constant: extrapolated L, inf unless Lipschitz;
    constant_error: last change of L.
    """

    widths: Floats
    quotients: Floats
    exponents: Floats
    kind: str
    exponent: float
    uncertainty: float
    constant: float
    constant_error: float


def face_quotients(mesh: Mesh, values: Floats) -> Floats:
    """|ρ_i − ρ_j| / |c_i − c_j| over the faces, (faces,), of values at the cell centres or cell averages."""
    first, second = mesh.face_cells.T
    distance = np.linalg.norm(mesh.centers[first] - mesh.centers[second], axis=-1)
    return np.asarray(np.abs(values[first] - values[second]) / distance)


def lipschitz_constant(mesh: Mesh, values: Floats) -> float:
    """Largest of the difference quotients over faces and of the least-squares gradients of cell values (cells,)."""
    from tokensphere.meshes.gradients import gradient

    slopes = np.linalg.norm(gradient(mesh, values), axis=-1)
    return float(max(face_quotients(mesh, values).max(), slopes.max()))


def zoom_ladder(mesh: Mesh, density: Density, levels: int = 9) -> tuple[Floats, Floats]:
    """Widths and largest difference quotients of a function, zooming in on the worst place of `mesh`, coarse to fine.

    At each level the central differences over the width h in orthogonal tangent directions a, b,
    |(ρ(x+ha/2)−ρ(x−ha/2), ρ(x+hb/2)−ρ(x−hb/2))|/h, are maximised about the worst point of the level before; then h is
    halved. Weaker singularities that the mesh does not show as its steepest place are not seen.
    """
    from tokensphere.meshes.gradients import gradient

    steepness = np.linalg.norm(gradient(mesh, density(mesh.centers)), axis=-1)
    center = mesh.centers[int(np.argmax(steepness))]
    widths = np.asarray(mesh.width * 0.5 ** np.arange(levels), dtype=np.float64)
    quotients = []
    for h in widths:
        center, largest = _steepest(density, center, h)
        quotients.append(largest)
    return widths, _without_noise(widths, quotients, float(np.abs(density(mesh.centers)).max()))


def _without_noise(widths: Floats, quotients: list[float], scale: float) -> Floats:
    """Quotients that are round-off of values of size `scale` become 0: a constant is Lipschitz with constant 0."""
    found = np.array(quotients)
    return np.where(found * widths <= 1e-12 * scale, 0.0, found)


def _steepest(density: Density, center: Floats, h: float) -> tuple[Floats, float]:
    """Point about `center` with the largest difference quotient over h, by finer grids: a kink must be met exactly."""
    frame, _ = np.linalg.qr(np.column_stack([center, np.eye(len(center))]))
    tangents = frame[:, 1 : len(center)].T
    grid = np.stack(np.meshgrid(*[np.arange(-16, 17)] * len(tangents)), axis=-1).reshape(-1, len(tangents))
    largest = 0.0
    for spacing in (h / 8, h / 64, h / 512, h / 4096):
        points = _on_sphere(center + spacing * grid @ tangents)
        squares = sum(
            (density(_on_sphere(points + h / 2 * t)) - density(_on_sphere(points - h / 2 * t))) ** 2 for t in tangents
        )
        best = int(np.argmax(squares))
        center, largest = points[best], float(np.sqrt(np.max(squares)) / h)
    return center, largest


def _on_sphere(points: Floats) -> Floats:
    return np.asarray(points / np.linalg.norm(points, axis=-1, keepdims=True))


def values_ladder(mesh: Mesh, averages: Floats, levels: int = 4) -> tuple[Floats, Floats]:
    """The same for cell averages known on one mesh only: the coarser levels are their averages."""
    lowest, divisor = (1, 1) if mesh.kind == "healpix" else (8, 2)  # what a circle needs
    widths, quotients = [], []
    for step in range(levels - 1, -1, -1):
        if mesh.resolution % (divisor * 2**step) or mesh.resolution // 2**step < lowest:
            continue
        level = coarser(mesh, step) if step else mesh
        widths.append(level.width)
        quotients.append(lipschitz_constant(level, coarsen(mesh, averages, step)))
    return np.array(widths), _without_noise(np.array(widths), quotients, float(np.abs(averages).max()))


def classify(widths: Floats, quotients: Floats) -> Regularity:
    """Lipschitz, Hölder or jump from L(h) on a ladder of widths, coarse to fine.

    The growth exponent is the mean over the two finest halvings, its uncertainty the spread of the three finest (at
    least .02, for the lattice). Raises InputError for fewer than three levels.
    """
    if len(widths) < 3:
        raise InputError(f"a ladder of {len(widths)} levels was given, at least 3 are needed; take a finer mesh.")
    if quotients[-1] == 0:
        return Regularity(widths, quotients, np.zeros(len(widths) - 1), "Lipschitz", 1.0, 0.0, 0.0, 0.0)
    tiny = np.finfo(float).tiny
    exponents = np.diff(np.log(np.maximum(quotients, tiny))) / -np.diff(np.log(widths))
    finest = exponents[-3:]
    growth = float(finest[-2:].mean())
    uncertainty = float(max(finest.std(ddof=1), 0.02))
    error = float(abs(quotients[-1] - quotients[-2]))
    if finest[-1] <= LIPSCHITZ:
        # the quotients of smooth data converge at second order: a third of the last change is left
        constant = float(quotients[-1] + (quotients[-1] - quotients[-2]) / 3)
        return Regularity(widths, quotients, exponents, "Lipschitz", 1.0, uncertainty, constant, error)
    kind = "undecided"
    if uncertainty <= UNSETTLED:
        if min(growth, finest.mean()) >= JUMP:
            kind = "jump"
        elif growth + uncertainty < JUMP and growth - uncertainty > LIPSCHITZ:
            kind = "Hölder"
    exponent = float(np.clip(1.0 - growth, 0.0, 1.0))
    return Regularity(widths, quotients, exponents, kind, exponent, uncertainty, np.inf, error)


def regularity(mesh: Mesh, density: Density | Floats) -> Regularity:
    """Classification of a function of points (n, d), by zooming in, or of cell averages (cells,) on `mesh`."""
    if callable(density):
        return classify(*zoom_ladder(mesh, density))
    return classify(*values_ladder(mesh, np.asarray(density)))


@dataclass(frozen=True)
class Minimum:
    """Smallest value of a density per unit area, the point (d,) where it was found, and how it may be read.

    kind: "positive"; "zero" (0, or falling to 0 within round-off of the point); "falling" (known on a mesh only, and
    the minimum over cells falls with the cell width like a power, as at a zero).
    """

    value: float
    where: Floats
    kind: str


def minimum(mesh: Mesh, density: Density | Floats) -> Minimum:
    """Smallest value of a function, searched beyond the mesh points, or of cell averages."""
    if callable(density):
        return _function_minimum(mesh, density)
    values = np.asarray(density)
    lowest = int(np.argmin(values))
    value = float(values[lowest])
    kind = "zero" if value <= 0 else "falling" if _falls_with_width(mesh, values) else "positive"
    return Minimum(value, mesh.centers[lowest], kind)


def _function_minimum(mesh: Mesh, density: Density) -> Minimum:
    points = np.concatenate([mesh.centers, mesh.face_points])
    point = points[int(np.argmin(density(points)))]
    frame, _ = np.linalg.qr(np.column_stack([point, np.eye(len(point))]))
    tangents = frame[:, 1 : len(point)].T
    grid = np.stack(np.meshgrid(*[np.arange(-8, 9)] * len(tangents)), axis=-1).reshape(-1, len(tangents)) / 8
    for spacing in mesh.width * 0.25 ** np.arange(16):
        points = _on_sphere(point + spacing * grid @ tangents)
        point = points[int(np.argmin(density(points)))]
    value = float(density(point[None])[0])
    # a positive minimum is flat; at a zero the value near by is larger by many powers of ten
    near = float(np.max(density(_on_sphere(point + 1e-6 * tangents))))
    return Minimum(value, point, "zero" if value <= 1e-3 * near else "positive")


def _falls_with_width(mesh: Mesh, averages: Floats) -> bool:
    """Whether the minimum over cells falls like a power of the width on two halvings, and is below 5 % of the mean."""
    divisor = 1 if mesh.kind == "healpix" else 2
    if mesh.resolution % (4 * divisor):
        return False
    minima = [float(coarsen(mesh, averages, step).min()) for step in (2, 1, 0)]
    powers = np.log2(np.maximum(minima[:-1], 1e-300)) - np.log2(np.maximum(minima[1:], 1e-300))
    steady = abs(powers[1] - powers[0]) < 0.25 * abs(powers[1])
    return bool(minima[-1] < 0.05 * averages.mean() and powers.min() > 0.4 and steady)


@dataclass(frozen=True)
class Regularities:
    """min ρ_t and Lip ρ_t along a run, beside the lower bound min ρ_0 · exp(−∫_0^t sup div v) of positivity theory.

    Arrays (saves,). `compression` is sup div v, nan where no velocity was given.
    """

    times: Floats
    minima: Floats
    constants: Floats
    compression: Floats
    lower_bounds: Floats


def follow(mesh: Mesh, times: Floats, densities: Floats, compression: Floats | None = None) -> Regularities:
    """min ρ_t and Lip ρ_t of densities (saves, cells), and the lower bound of positivity theory.

    compression: sup div v of each save (saves,), see `largest_compression`. Along characteristics ρ' = −ρ div v, so
    that min ρ_t ≥ min ρ_0 exp(−∫_0^t max(sup div v, 0) ds) (trapezoidal rule over the saves). Without it the bound is
    nan.
    """
    minima = densities.min(axis=1)
    constants = np.array([lipschitz_constant(mesh, row) for row in densities])
    compression = np.full(len(times), np.nan) if compression is None else np.maximum(compression, 0.0)
    steps = np.diff(times) * (compression[1:] + compression[:-1]) / 2
    lower = minima[0] * np.exp(-np.concatenate([[0.0], np.cumsum(steps)]))
    return Regularities(times, minima, constants, compression, lower)


def largest_compression(mesh: Mesh, speeds: Floats) -> float:
    """sup div v from the outward integrals u·n ds at the face points (points,)."""
    return float(divergence(mesh, speeds).max())


def divergence(mesh: Mesh, speeds: Floats) -> Floats:
    """div v per cell (cells,) from the outward integrals u·n ds at the face points (points,)."""
    faces = np.add.reduceat(speeds, mesh.face_offsets[:-1])
    return np.asarray((faces[mesh.cell_faces] * mesh.cell_signs).sum(axis=1) / mesh.areas)
