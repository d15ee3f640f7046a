"""Clusters narrower than two cells: where the transport holds them and what the integral makes of them."""

import numpy as np
import pytest

from tokensphere.meshes.circle import circle
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde.attention import Attention
from tokensphere.pde.direct import log_sum_exp
from tokensphere.pde.flux import largest_step, normal_speeds
from tokensphere.pde.peaks import split
from tokensphere.pde.point_kernels import TILE, add_points
from tokensphere.pde.problem import AttentionFlow
from tokensphere.pde.stepping import heun


def gathered(mesh, goal):
    """The density at rest under v(x) = P_x e, which carries all mass to e."""
    points = mesh.face_points
    speeds = normal_speeds(mesh, goal - (points @ goal)[:, None] * points)
    density = cell_averages(mesh, lambda x: 1 + 0.5 * (x @ goal))
    dt = 0.95 * largest_step(mesh, speeds)
    for _ in range(int(20 / dt)):
        density = heun(mesh, density, speeds, lambda _: speeds, dt)
    return density / (density @ mesh.areas)


def unit(vector):
    return np.asarray(vector) / np.linalg.norm(vector)


@pytest.mark.parametrize("angle", [0.3, 1.234, 2.0, 4.71])
def test_a_cluster_on_the_circle_rests_exactly_at_its_goal(angle):
    """The plain upwind scheme stops up to half a cell away, where the flow points inwards on both faces."""
    mesh, goal = circle(64), np.array([np.cos(angle), np.sin(angle)])
    density = gathered(mesh, goal)
    mean = (density * mesh.areas) @ mesh.centers
    assert np.linalg.norm(unit(mean) - goal) < 1e-6 * mesh.width
    assert (density > 1e-3 * density.max()).sum() <= 2
    rest, points, masses = split(mesh, density)
    assert abs(masses.sum() + rest @ mesh.areas - 1) < 1e-13
    assert masses.sum() > 0.99
    assert np.abs(points[masses > 0.01] - goal).max() < 1e-5 * mesh.width


def test_a_cluster_on_the_sphere_rests_within_a_few_hundredths_of_a_cell():
    mesh = healpix(16)
    for seed in range(4):
        goal = unit(np.random.default_rng(seed).normal(size=3))
        density = gathered(mesh, goal)
        mean = (density * mesh.areas) @ mesh.centers
        assert np.linalg.norm(unit(mean) - goal) < 0.1 * mesh.width
        assert 2 * (1 - np.linalg.norm(mean)) < 0.55 * mesh.width**2
        _, points, masses = split(mesh, density)
        assert np.linalg.norm(masses @ points - mean) < 0.02 * mesh.width
        spread = np.linalg.norm(points - unit(mean), axis=1)
        assert masses @ spread**2 < 0.01 * mesh.width**2


@pytest.mark.parametrize("mesh", [circle(64), healpix(16)], ids=repr)
def test_resolved_densities_have_no_sharp_peak(mesh):
    """A Gaussian three cells wide, a band as narrow, and a smooth law stay on the mesh, bitwise."""
    goal = unit(np.arange(1, mesh.dimension + 1))
    concentration = 1 / (3 * mesh.width) ** 2
    for density in (
        cell_averages(mesh, lambda x: np.exp(concentration * (x @ goal - 1))),
        cell_averages(mesh, lambda x: np.exp(-concentration / 2 * (x @ goal) ** 2)),
        cell_averages(mesh, lambda x: 1 + 0.9 * x[..., 0]),
    ):
        rest, points, masses = split(mesh, density)
        assert rest is density or np.array_equal(rest, density)
        assert len(points) == len(masses) == 0 or masses.sum() == 0


@pytest.mark.parametrize("mesh", [circle(64), healpix(4)], ids=repr)
def test_densities_without_mass_or_with_a_hole_in_the_numbers_pass_through(mesh):
    one = np.zeros(mesh.cells)
    assert split(mesh, one)[0] is one
    bad = np.full(mesh.cells, np.nan)
    assert split(mesh, bad)[0] is bad
    one[7] = 3.0
    rest, points, masses = split(mesh, one)
    assert rest.sum() == 0
    np.testing.assert_allclose(points, mesh.centers[7:8], atol=1e-15)
    assert masses == 3.0 * mesh.areas[7]


def test_the_integral_sees_a_cluster_as_the_point_it_stands_for():
    """∇log F of a cluster at rest is its place, up to a twentieth of βh²/4, the error of the cells taken for real."""
    mesh, beta = healpix(16), 60.0
    goal = unit([0.9, 0.3, 0.2])
    density = gathered(mesh, goal)
    flow = AttentionFlow(mesh, Attention(np.eye(3), np.eye(3), np.eye(3), beta))
    speeds = flow.field(density).speeds
    dirac = normal_speeds(mesh, np.broadcast_to(goal, mesh.face_points.shape))
    mean, _ = log_sum_exp(beta * mesh.face_points, mesh.centers, np.log(np.maximum(density * mesh.areas, 1e-300)))
    lengths = np.linalg.norm(mesh.face_normals, axis=1)
    near = mesh.face_points @ goal > 0.5
    as_cells = np.abs(normal_speeds(mesh, mean) - dirac) / lengths
    as_points = np.abs(speeds - dirac) / lengths
    assert as_points[near].max() < 0.15 * as_cells[near].max()
    assert as_points[near].max() < beta * mesh.width**2 / 20


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("beta", [1.0, 100.0, 1e5])
def test_points_are_added_as_the_direct_sum_adds_them(d, beta):
    """Also where F has nothing, where it has all but rounding, and in a last tile that is not full."""
    generator = np.random.default_rng(d)

    def units(count):
        return np.array([unit(row) for row in generator.normal(size=(count, d))])

    tilts, sources, points = beta * units(3 * TILE + 5), units(40), units(7)
    logs, log_masses = generator.uniform(-600, 0, size=40), generator.uniform(-600, 0, size=7)
    mean, log_normaliser = log_sum_exp(tilts, sources, logs)
    mean[:TILE], log_normaliser[:TILE] = 0.0, -np.inf
    add_points(tilts, points, log_masses, mean, log_normaliser)
    alone, both = log_sum_exp(tilts, points, log_masses), log_sum_exp(
        tilts, np.concatenate([sources, points]), np.concatenate([logs, log_masses])
    )
    tolerance = 4e-15 * (1 + beta)
    for first, last, (expected, log_expected) in ((0, TILE, alone), (TILE, None, both)):
        np.testing.assert_allclose(mean[first:last], expected[first:last], atol=max(tolerance, 1e-14))
        np.testing.assert_allclose(log_normaliser[first:last], log_expected[first:last], atol=max(tolerance, 1e-13))


@pytest.mark.parametrize("share", [1e-13, 1e-10])
def test_points_that_hold_little_everywhere_still_count_until_rounding_hides_them(share):
    tilts = np.zeros((TILE, 3))
    mean, log_normaliser = np.tile([1.0, 0.0, 0.0], (TILE, 1)), np.zeros(TILE)
    add_points(tilts, np.array([[0.0, 1.0, 0.0]]), np.array([np.log(share)]), mean, log_normaliser)
    np.testing.assert_allclose(log_normaliser, share, atol=3e-16)
    np.testing.assert_allclose(mean[:, 1], share / (1 + share), rtol=1e-12)
