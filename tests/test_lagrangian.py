"""The Lagrangian oracle against closed forms (theory §1.3) and the finite volumes."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.gradients import gradient
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.locate import locate
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.pde.march import State, march
from tokensphere.pde.problem import AttentionFlow
from tokensphere.validation import exact_zero_temperature, lagrangian, simplices
from tokensphere.validation.lagrangian import (
    advance_parcels,
    deposit,
    distance_to_limit,
    divergence,
    halve,
    mesh_parcels,
    near_separatrix,
    tangent_basis,
)
from tokensphere.validation.projection import Projection

VALUE = np.array([[1, 0.4, 0], [-0.2, 0.3, 0.1], [0, 0.3, -0.5]])
KEY = np.array([[0.8, 0.5, 0], [-0.4, 0.9, 0.2], [0.1, 0, 1.1]])
SYMMETRIC = np.array([[0.7, 0.2, 0.1], [0.2, -0.3, 0.0], [0.1, 0.0, -0.6]])
COLD = Attention(np.eye(3), KEY, SYMMETRIC @ np.linalg.inv(KEY).T, np.inf)


def tilted(x):
    return 1 + x @ np.array([0.1, 0.3, 0.4])


def points(count, d=3):
    rows = np.random.default_rng(0).normal(size=(count, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_tangent_bases_are_orthonormal_and_tangent(d):
    x = np.concatenate([points(20, d), np.eye(d), -np.eye(d)])
    frames = np.concatenate([x[:, None], tangent_basis(x)], axis=1)
    assert np.abs(frames @ frames.transpose(0, 2, 1) - np.eye(d)).max() < 1e-15


def test_the_divergence_by_differences_is_the_closed_form():
    x = points(50)
    field, spread = divergence(lambda y: exact_zero_temperature.velocity(SYMMETRIC, COLD.B, y), x)
    assert np.abs(field - exact_zero_temperature.velocity(SYMMETRIC, COLD.B, x)).max() < 1e-15
    assert np.abs(spread - exact_zero_temperature.divergence(SYMMETRIC, COLD.B, x)).max() < 1e-7


def test_log_densities_follow_the_closed_form_density():
    mesh = healpix(2)
    start = mesh_parcels(mesh, densities.from_function(mesh, tilted), pieces=False, log_densities=True)
    at_centers = np.log(tilted(start.points) / (4 * np.pi))
    (end,) = advance_parcels(COLD, replace(start, log_densities=at_centers), [1.5])
    exact = exact_zero_temperature.density(
        SYMMETRIC, COLD.B, lambda x: tilted(x) / (4 * np.pi), end.points[:, 0], 1.5
    )
    assert np.abs(end.points[:, 0] - exact_zero_temperature.flow(SYMMETRIC, COLD.B, mesh.centers, 1.5)).max() < 1e-7
    assert np.abs(end.log_densities[:, 0] - np.log(exact)).max() < 1e-6
    assert np.ptp(end.log_densities) > 2


def test_quadratic_simplices_reproduce_quadratics_and_halve_exactly():
    for corners in (2, 3):
        places = simplices.node_places(corners)
        coefficients = np.random.default_rng(1).normal(size=(corners, corners))

        def quadratic(x, c=coefficients):
            return np.einsum("...i,ij,...j->...", x, c, x)

        nodes = quadratic(places)
        inner = np.random.default_rng(2).dirichlet(np.ones(corners), size=9)
        assert np.abs(simplices.shape_values(inner) @ nodes - quadratic(inner)).max() < 1e-14
        for edge, (i, j) in enumerate(simplices.edges(corners)):
            first, second = simplices.halving(corners, edge)
            middle = nodes[corners + edge]
            assert (first @ nodes)[j] == pytest.approx(middle)
            assert (second @ nodes)[i] == pytest.approx(middle)
        assert len(simplices.equal_parts(corners, 4)) == 4 ** (corners - 1)
        assert np.abs(simplices.equal_parts(corners, 4).mean(axis=0) - 1 / corners).max() < 1e-15


@pytest.mark.parametrize("mesh", [healpix(4), circle(32)], ids=["sphere", "circle"])
def test_deposit_and_halving_keep_the_masses(mesh):
    density = densities.from_function(mesh, lambda x: 1 + 0.8 * x[..., 0])
    parcels = mesh_parcels(mesh, density, log_densities=True)
    assert np.abs(deposit(mesh, parcels) - density).max() < 1e-14  # not moved: every part lies in its own cell
    halved = halve(parcels, 0.0)
    assert halved.count == 2 * parcels.count
    assert halved.masses.sum() == pytest.approx(1, abs=1e-15)
    assert np.abs(deposit(mesh, halved) - density).max() < 0.02 * density.max()
    (moved,) = advance_parcels(Attention(*[np.eye(mesh.dimension)] * 3, 1.0), parcels, [0.4])
    assert (deposit(mesh, moved) * mesh.areas).sum() == pytest.approx(1, abs=1e-14)


def test_an_empty_cell_stays_empty():
    mesh = circle(16)
    density = np.where(mesh.centers[:, 0] > 0, 1.0, 0.0)
    start = mesh_parcels(mesh, density / (density * mesh.areas).sum(), pieces=False, log_densities=True)
    (end,) = advance_parcels(Attention(*[np.eye(2)] * 3, 2.0), start, [0.5])
    assert (np.isneginf(end.log_densities[:, 0]) == (density == 0)).all()
    assert (end.masses[density == 0] == 0).all()


def test_the_distance_to_the_limit_goes_far_below_the_floor_of_a_mesh():
    # Chordal W2² = 2a/(1+a), a = e^{−γt}, uniform data, k = 1 (theory §1.3(g)); a mesh stops near .8·nside^{−3/4}.
    e = np.array([0.3, 0.5, 0.8]) / np.linalg.norm([0.3, 0.5, 0.8])
    head = Attention(np.eye(3), np.eye(3), 1.5 * np.outer(e, e) - 0.5 * np.eye(3), np.inf)
    exact = np.array([0.2, 0.05, 0.02, 0.01])
    times = -np.log(exact**2 / (2 - exact**2)) / 1.5
    limit, mesh = Projection(head), healpix(8)
    start = mesh_parcels(mesh, densities.uniform(mesh))
    run = advance_parcels(head, start, times, torn=near_separatrix(limit))
    found = np.array([distance_to_limit(parcels, limit) for parcels in run])
    assert np.abs(found[:3] / exact[:3] - 1).max() < 0.03
    assert abs(found[3] / exact[3] - 1) < 0.2
    whole = mesh_parcels(mesh, densities.uniform(mesh), pieces=False)
    *_, stuck = advance_parcels(head, whole, times, tolerance=1e-5)
    assert abs(distance_to_limit(stuck, limit) / exact[3] - 1) > 0.5  # without pieces there is a floor


def test_finite_volumes_and_parcels_approach_each_other_at_second_order():
    head = Attention(np.eye(3), KEY, VALUE, 2.0)
    errors = []
    for nside in (4, 8, 16):
        mesh = healpix(nside)
        start = densities.from_function(mesh, tilted)
        *_, last = march(AttentionFlow(mesh, head), State(0.0, start), [0.5])
        parcels = mesh_parcels(mesh, start, pieces=False, log_densities=True)
        (parcels,) = advance_parcels(head, parcels, [0.5], tolerance=1e-5)
        x = parcels.points[:, 0]
        cells = locate(mesh, x)
        slopes = gradient(mesh, last.density)[cells]
        reconstructed = last.density[cells] + np.sum(slopes * (x - mesh.centers[cells]), axis=1)
        # ∫|ρ_mesh − ρ|dx = ∫|ρ_mesh/ρ − 1|dρ, over the masses of the parcels
        errors.append(parcels.masses @ np.abs(reconstructed / np.exp(parcels.log_densities[:, 0]) - 1))
    assert -np.polyfit(range(3), np.log2(errors), 1)[0] > 1.7
    assert errors[-1] < 0.01


def test_the_oracle_imports_no_flux():
    for module in (lagrangian, simplices):
        tree = ast.parse(Path(module.__file__).read_text())
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not imported & {f"tokensphere.pde.{part}" for part in ("flux", "limiter", "march", "problem")}


def test_a_density_that_cannot_be_carried_is_refused():
    mesh = circle(8)
    with pytest.raises(InputError, match="mass"):
        mesh_parcels(mesh, np.ones(8))
    with pytest.raises(InputError, match="carried"):
        mesh_parcels(mesh, np.ones(7))
