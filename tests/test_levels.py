"""Transfer between levels and between orders keeps every value and all mass."""

import healpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.levels import coarsen, coarser, finer, refine, subcells
from tokensphere.meshes.locate import locate
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.meshes.rings import from_nested, to_nested
from tokensphere.pde.limiter import prolong

MESHES = [healpix(4), circle(32)]


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_coarsen_undoes_refine_bitwise(seed, levels):
    for mesh in MESHES:
        values = np.random.default_rng(seed).lognormal(sigma=20, size=(2, mesh.cells))
        np.testing.assert_array_equal(coarsen(finer(mesh, levels), refine(mesh, values, levels), levels), values)


@pytest.mark.parametrize("mesh", MESHES, ids=repr)
def test_levels_nest(mesh):
    fine = finer(mesh, 2)
    parents = refine(mesh, np.arange(mesh.cells), 2)
    np.testing.assert_array_equal(locate(mesh, fine.centers), parents)
    assert coarser(fine, 2) is mesh
    inside = locate(mesh, subcells(mesh, np.arange(mesh.cells), 3).reshape(-1, mesh.dimension))
    np.testing.assert_array_equal(inside, np.repeat(np.arange(mesh.cells), inside.size // mesh.cells))


def test_coarsening_averages_what_quadrature_averages():
    mesh = healpix(4)

    def function(x):
        return np.exp(x[..., 0] - x[..., 2])

    averages = coarsen(finer(mesh), cell_averages(finer(mesh), function, 15))
    np.testing.assert_allclose(averages, cell_averages(mesh, function, 15), rtol=1e-9)


@pytest.mark.parametrize("mesh", MESHES, ids=repr)
@pytest.mark.parametrize("levels", [1, 2])
def test_prolongation_keeps_mass_sign_and_order(mesh, levels):
    rough = np.random.default_rng(3).lognormal(sigma=8, size=mesh.cells)
    fine = prolong(mesh, rough, levels)
    assert fine.min() >= 0
    np.testing.assert_allclose(coarsen(finer(mesh, levels), fine, levels), rough, rtol=1e-12)

    def function(x):
        return 2 + x[..., 0] + x[..., 1] ** 2

    errors = []
    for parent in (finer(mesh), finer(mesh, 2)):
        exact = cell_averages(finer(parent, levels), function)
        errors.append(np.abs(prolong(parent, cell_averages(parent, function), levels) - exact).mean())
    assert np.log2(errors[0] / errors[1]) > 1.7


def test_there_is_no_level_above_the_base():
    with pytest.raises(InputError, match="cannot be coarsened"):
        coarser(healpix(2), 2)


def test_ring_and_nested_orders_against_healpy():
    values = np.random.default_rng(0).normal(size=12 * 64)
    np.testing.assert_array_equal(to_nested(values, 8, "ring"), healpy.reorder(values, r2n=True))
    np.testing.assert_array_equal(from_nested(values, 8, "ring"), healpy.reorder(values, n2r=True))
    np.testing.assert_array_equal(to_nested(from_nested(values, 8, "ring"), 8, "ring"), values)
    np.testing.assert_array_equal(to_nested(values, 8, "nested"), values)


@pytest.mark.parametrize("order", ["nest", "RING", "", None])
def test_a_misspelt_order_is_refused(order):
    with pytest.raises(InputError, match='"ring" or "nested"'):
        to_nested(np.ones(12), 1, order)
    with pytest.raises(InputError, match='"ring" or "nested"'):
        from_nested(np.ones(12), 1, order)
