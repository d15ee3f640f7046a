"""W_p to the limit against analytic threshold plans, the network simplex and closed forms."""

import numpy as np
import pytest
from scipy.integrate import quad

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.levels import subcells
from tokensphere.meshes.locate import locate
from tokensphere.meshes.mesh import Mesh
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde.limiter import limited_gradient
from tokensphere.validation import exact_zero_temperature as zero
from tokensphere.validation.atom_kernels import limited_slope
from tokensphere.validation.cell_geometry import cell_moments, cell_radii, half_space_mass, pieces
from tokensphere.validation.circular import circular_wasserstein
from tokensphere.validation.distance import Distance
from tokensphere.validation.exact_distances import chordal_squared
from tokensphere.validation.projection import Projection
from tokensphere.validation.two_atoms import TwoAtoms
from tokensphere.validation.wasserstein import DistanceToLimit, cluster_width, w2_floor, wasserstein2_to_limit

E = np.array([0.48, -0.6, 0.64])
POINT = Projection(np.outer(E, E))
RING = Projection(np.eye(3) - np.outer(E, E))


def tilted(slope: float):
    return lambda x: (1 + slope * (x @ E)) / (4 * np.pi)


def analytic(slope: float, start: float, metric: str, p: float) -> float:
    """W_p of (1 + slope·s)/2 on s = ⟨x,e⟩ ∈ [−1, 1] to atoms of the masses of (1 + start·s)/2 on both sides."""
    plus = 0.5 + start / 4
    # ∫_τ^1 (1 + slope s)/2 ds = plus
    a, b, c = slope / 4, 0.5, plus - 0.5 - slope / 4
    tau = -c / b if a == 0 else (-b + np.sqrt(b * b - 4 * a * c)) / (2 * a)

    def distance(s: float) -> float:
        return np.arccos(s) if metric == "geodesic" else np.sqrt(2 - 2 * s)

    upper = quad(lambda s: distance(s) ** p * (1 + slope * s) / 2, tau, 1)[0]
    lower = quad(lambda s: distance(-s) ** p * (1 + slope * s) / 2, -1, tau)[0]
    return float((upper + lower) ** (1 / p))


@pytest.mark.parametrize(("metric", "p"), [("chordal", 2.0), ("geodesic", 2.0), ("chordal", 1.0), ("geodesic", 1.0)])
def test_two_atoms_with_unequal_sides(metric: str, p: float) -> None:
    mesh = healpix(16)
    for slope, start in ((0.0, 0.0), (0.0, 0.8), (0.8, -0.9)):
        distance = DistanceToLimit(mesh, cell_averages(mesh, tilted(start)), POINT, metric, p)
        found = distance(cell_averages(mesh, tilted(slope)))
        exact = analytic(slope, start, metric, p)
        assert float(found) == pytest.approx(exact, abs=0.1 * mesh.width**2)
        assert found.lower <= exact <= found.upper
        assert found.error >= abs(found.value - exact)


def test_error_is_second_order() -> None:
    exact, errors = analytic(0.8, -0.9, "chordal", 2.0), []
    for nside in (4, 8, 16):
        mesh = healpix(nside)
        found = DistanceToLimit(mesh, cell_averages(mesh, tilted(-0.9)), POINT)(cell_averages(mesh, tilted(0.8)))
        errors.append(abs(float(found) - exact))
    assert errors[2] < errors[0] / 10


def test_two_atoms_on_the_circle() -> None:
    mesh, e = circle(200), np.array([0.8, 0.6])
    start = (1 + 0.5 * mesh.centers @ e) / (2 * np.pi)
    found = DistanceToLimit(mesh, start, Projection(np.outer(e, e)), "geodesic", 1.0)(start)
    # ∫_0^π min(θ, π−θ)(1 + .5 cos θ)/π dθ with the own masses on both sides: the plan is the nearest one.
    exact = quad(lambda t: min(t, np.pi - t) * (1 + 0.5 * np.cos(t)) / np.pi, 0, np.pi, points=[np.pi / 2])[0]
    assert float(found) == pytest.approx(exact, abs=mesh.width**2)
    assert DistanceToLimit(mesh, start, Projection(np.outer(e, e)), "geodesic", 1.0).nearest(start) == pytest.approx(
        exact, abs=mesh.width**2
    )


def test_cells_on_the_separatrix_are_shared_not_assigned() -> None:
    mesh = healpix(16)
    axis = np.array([0.6, 0.0, 0.8])
    density = cell_averages(mesh, lambda x: (1 + 0.5 * (x @ axis)) / (4 * np.pi))
    gradient = limited_gradient(mesh, density)
    for e in (E, np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])):
        exact = 0.5 + 0.5 * (axis @ e) / 4
        assert half_space_mass(mesh, density, gradient, e) == pytest.approx(exact, abs=2e-6)
        whole = float(np.sum((density * mesh.areas)[mesh.centers @ e > 0]))
        assert abs(half_space_mass(mesh, density, gradient, e) - exact) <= abs(whole - exact) + 1e-12


def test_pieces_keep_mass_and_sign() -> None:
    mesh = healpix(8)
    density = np.exp(6 * np.random.default_rng(2).normal(size=mesh.cells))
    gradient = limited_gradient(mesh, density)
    masses = pieces(mesh, np.arange(mesh.cells), 2).masses(mesh, density, gradient)
    assert np.allclose(masses.sum(axis=1), density * mesh.areas, rtol=1e-12)
    assert masses.min() >= 0


def test_cell_moments_and_radii() -> None:
    mesh = healpix(4)
    moments = cell_moments(mesh, lambda x: x @ E)
    assert np.allclose(moments.constant, cell_averages(mesh, lambda x: x @ E) * mesh.areas, atol=1e-8)
    corners = subcells(mesh, np.arange(mesh.cells), 6)
    assert np.all(cell_radii(mesh) >= np.linalg.norm(corners - mesh.centers[:, None], axis=-1).max(axis=1))


@pytest.mark.parametrize("k", [1, 2])
def test_closed_forms_of_the_zero_temperature_density(k: int) -> None:
    mesh = healpix(16)
    limit = POINT if k == 1 else RING
    uniform = np.full(mesh.cells, 1 / (4 * np.pi))
    distance = DistanceToLimit(mesh, uniform, limit)
    for t in (0.0, 1.0, 2.0):

        def density(x: np.ndarray, time: float = t) -> np.ndarray:
            flat = x.reshape(-1, 3)
            start = zero.density(limit.matrix, np.eye(3), lambda y: np.full(len(y), 1 / (4 * np.pi)), flat, time)
            return start.reshape(x.shape[:-1])

        found = distance.exact(cell_averages(mesh, density))
        exact = float(chordal_squared(np.exp(-t), 3, k))
        assert float(found) ** 2 == pytest.approx(exact, abs=0.02 * mesh.width**2)
        assert found.lower**2 <= exact <= found.upper**2


def test_ring_with_another_angular_law_against_the_network_simplex() -> None:
    import ot

    mesh = healpix(8)
    across = RING.basis[:, 0]
    start = cell_averages(mesh, lambda x: (1 + 0.9 * (x @ across)) / (4 * np.pi))
    density = cell_averages(mesh, lambda x: (1 - 0.6 * (x @ across) + 0.4 * (x @ E) ** 2) / (4 * np.pi * (1 + 0.4 / 3)))
    for metric in ("chordal", "geodesic"):
        distance = DistanceToLimit(mesh, start, RING, metric)
        quick, found = distance(density), distance.exact(density)
        # Π♯ρ0 has density (1 + .9·(π/4)·cos φ)/2π: the mean of r over the sphere is π/4.
        count = 256
        angle = 2 * np.pi * (np.arange(count) + 0.5) / count
        nu = (1 + 0.9 * np.pi / 4 * np.cos(angle)) / count
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ RING.basis.T
        s = np.clip(mesh.centers @ ring.T, -1, 1)
        cost = 2 - 2 * s if metric == "chordal" else np.arccos(s) ** 2
        masses = density * mesh.areas
        reference = np.sqrt(ot.emd2(masses / masses.sum(), nu / nu.sum(), cost))
        assert float(found) == pytest.approx(reference, abs=4e-3)
        assert found.lower <= reference <= found.upper
        assert distance.nearest(density) - 1e-3 <= float(found) <= float(quick) + 1e-12


def test_floor_is_what_concentrated_densities_show() -> None:
    mesh = healpix(8)
    uniform = np.full(mesh.cells, 1 / (4 * np.pi))
    cells = locate(mesh, np.stack([E, -E]))
    concentrated = np.zeros(mesh.cells)
    concentrated[cells] = 0.5 / mesh.areas[cells]
    distance = DistanceToLimit(mesh, uniform, POINT)
    assert float(distance(concentrated)) == pytest.approx(distance.floor, rel=2e-2)
    assert 0 < w2_floor(mesh, POINT) < cluster_width(mesh)
    ring = DistanceToLimit(mesh, uniform, RING)
    assert 0 < ring.floor < mesh.width
    assert ring.floor < w2_floor(healpix(4), RING)


def test_gap_zero_measures_the_distance_to_the_start() -> None:
    mesh = circle(64)
    start = (1 + 0.5 * mesh.centers[:, 0]) / (2 * np.pi)
    distance = DistanceToLimit(mesh, start, Projection(np.eye(2)), "geodesic")
    assert float(distance(start)) == 0.0
    assert distance.nearest(start) == 0.0
    assert float(distance(np.roll(start, 3))) > 0.01


def test_result_is_a_record_and_metrics_are_ordered() -> None:
    mesh = healpix(4)
    density = cell_averages(mesh, tilted(0.5))
    chordal, geodesic = (
        wasserstein2_to_limit(mesh, density, density, POINT, metric) for metric in ("chordal", "geodesic")
    )
    assert isinstance(chordal, Distance)
    assert float(chordal) == chordal.value
    assert chordal.value < geodesic.value < np.pi / 2 * chordal.value


def test_bad_input_is_refused() -> None:
    mesh = healpix(2)
    good = np.full(mesh.cells, 1 / (4 * np.pi))
    distance = DistanceToLimit(mesh, good, POINT)
    for bad in (good[:-1], -good, good * np.nan, 0 * good):
        with pytest.raises(InputError, match="density"):
            distance(bad)
    with pytest.raises(InputError, match="metric"):
        DistanceToLimit(mesh, good, POINT, "taxi")
    with pytest.raises(InputError, match="p ="):
        DistanceToLimit(mesh, good, POINT, "chordal", 0.5)
    with pytest.raises(InputError, match="d = 2"):
        DistanceToLimit(mesh, good, Projection(np.diag([1.0, 0.0])))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_circular_transport_against_the_network_simplex(p: float) -> None:
    import ot

    random = np.random.default_rng(3)
    a, b = random.random(12), random.random(12) * np.linspace(0, 3, 12)
    a, b = a / a.sum(), b / b.sum()
    fine = 32
    angle = 2 * np.pi * (np.arange(12 * fine) + 0.5) / (12 * fine)
    gap = np.abs(angle[:, None] - angle)
    cost = np.minimum(gap, 2 * np.pi - gap) ** p
    reference = ot.emd2(np.repeat(a / fine, fine), np.repeat(b / fine, fine), cost, numItermax=10**7) ** (1 / p)
    assert circular_wasserstein(a, b, p) == pytest.approx(reference, rel=3e-4)
    assert circular_wasserstein(a, np.roll(a, 0), p) == 0.0
    # Refining the bins of one law changes nothing.
    assert circular_wasserstein(np.repeat(a, 2), b, p) == pytest.approx(circular_wasserstein(a, b, p), rel=1e-9)


def test_circular_shift_goes_the_short_way_round() -> None:
    one, other = np.zeros(64), np.zeros(64)
    one[3] = other[60] = 1.0
    for p in (1.0, 2.0):
        assert circular_wasserstein(one, other, p) == pytest.approx(7 * 2 * np.pi / 64, rel=1e-9)
    with pytest.raises(InputError):
        circular_wasserstein(one, -other)
    with pytest.raises(InputError, match="p ="):
        circular_wasserstein(one, other, 0.0)


@pytest.mark.parametrize("mesh", [healpix(8), circle(64)])
def test_slopes_of_single_cells_are_the_limited_gradient(mesh: Mesh) -> None:
    rng = np.random.default_rng(2)
    uniform = np.full(mesh.cells, 1.0 / mesh.total_area)
    atoms = TwoAtoms(mesh, uniform, np.eye(mesh.dimension)[0], "chordal", 2.0)
    for density in (rng.uniform(size=mesh.cells) ** 4, 1.0 + 0.1 * mesh.centers[:, 0]):  # mostly limited; not limited
        expected = limited_gradient(mesh, density)
        found = np.array([limited_slope(density, i, atoms._geometry) for i in range(mesh.cells)])
        np.testing.assert_allclose(found[:, : mesh.dimension], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("metric", ["chordal", "geodesic"])
def test_value_is_the_distance_whatever_was_asked_before(metric: str) -> None:
    """Pieces of cells that earlier densities cut are kept, and must not show in the result."""
    mesh = healpix(8)
    start = cell_averages(mesh, tilted(0.3))
    densities = [cell_averages(mesh, tilted(slope)) for slope in (-0.9, 0.3, 0.0, 0.8)]
    atoms = TwoAtoms(mesh, start, np.eye(3)[2], metric, 2.0)
    for density in densities:
        fresh = TwoAtoms(mesh, start, np.eye(3)[2], metric, 2.0)
        assert atoms.value(density) == fresh.value(density) == fresh(density).value
