"""Samples from a density against its exact averages."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import iv

from tokensphere.meshes import labels as label_spaces
from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.locate import locate
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde import densities
from tokensphere.validation.sampling import (
    SAMPLERS,
    independent_uniforms,
    low_discrepancy_uniforms,
    sample_density,
    sample_joint,
    stratified_uniforms,
)

TILT = np.array([1.2, -0.5, 0.8])


def tilted(mesh):
    return densities.from_function(mesh, lambda x: np.exp(x @ TILT[: mesh.dimension]))


def exact_mean(mesh):
    """∫x e^{⟨z,x⟩} / ∫e^{⟨z,x⟩}: A_d(|z|) z/|z|."""
    z = TILT[: mesh.dimension]
    r = np.linalg.norm(z)
    length = 1 / np.tanh(r) - 1 / r if mesh.dimension == 3 else iv(1, r) / iv(0, r)
    return length * z / r


    return iv(1, r) / iv(0, r)


@pytest.mark.parametrize("mesh", [healpix(8), circle(64)], ids=["sphere", "circle"])
def test_independent_samples_have_the_masses_of_the_cells(mesh):
    density = tilted(mesh)
    points = sample_density(mesh, density, 40_000, np.random.default_rng(1))
    counts = np.bincount(locate(mesh, points), minlength=mesh.cells)
    assert np.abs(np.linalg.norm(points, axis=1) - 1).max() < 1e-15
    assert stats.chisquare(counts, 40_000 * density * mesh.areas).pvalue > 0.001


@pytest.mark.parametrize("name", sorted(SAMPLERS))
@pytest.mark.parametrize("mesh", [healpix(16), circle(128)], ids=["sphere", "circle"])
def test_every_sampler_is_unbiased(mesh, name):
    rng, density = np.random.default_rng(2), tilted(mesh)
    means = np.array([sample_density(mesh, density, 500, rng, SAMPLERS[name]).mean(axis=0) for _ in range(60)])
    error = means.mean(axis=0) - exact_mean(mesh)
    # h² of the reconstruction and curvature inside cells comes on top of the noise
    assert (np.abs(error) < 4 * means.std(axis=0, ddof=1) / np.sqrt(60) + 0.1 * mesh.width**2).all()


def test_even_samples_err_less_than_independent_ones():
    mesh, rng = healpix(16), np.random.default_rng(3)
    density, exact = tilted(healpix(16)), exact_mean(healpix(16))

    def error(uniforms):
        means = [sample_density(mesh, density, 2000, rng, uniforms).mean(axis=0) for _ in range(12)]
        return np.sqrt(np.mean((np.array(means) - exact) ** 2))

    independent = error(independent_uniforms)
    assert error(stratified_uniforms) < independent / 5
    assert error(low_discrepancy_uniforms) < independent / 10


def test_inside_a_cell_the_density_is_linear():
    mesh = circle(12)
    density = densities.from_function(mesh, lambda x: 1 + 0.9 * x[..., 1])
    points = sample_density(mesh, density, 200_000, np.random.default_rng(4))
    angle = np.arctan2(points[:, 1], points[:, 0]) % (2 * np.pi)
    inside = angle[(angle >= 0) & (angle < np.pi / 6)] / (np.pi / 6)
    exact = cell_averages(circle(24), lambda x: 1 + 0.9 * x[..., 1])[:2]
    share = exact[1] / exact.sum()
    assert abs((inside > 0.5).mean() - share) < 4 * 0.5 / np.sqrt(len(inside)) + 2e-3
    assert share > 0.53  # a flat cell would give .5


def test_empty_cells_stay_empty_and_equal_generators_give_equal_tokens():
    mesh = healpix(4)
    density = np.where(mesh.centers[:, 2] > 0.3, 1.0, 0.0)
    density /= (density * mesh.areas).sum()
    for uniforms in SAMPLERS.values():
        cells = locate(mesh, sample_density(mesh, density, 3000, np.random.default_rng(5), uniforms))
        assert density[cells].min() > 0
        again = [sample_density(mesh, density, 9, np.random.default_rng(6), uniforms) for _ in range(2)]
        assert (again[0] == again[1]).all()


def test_joint_samples_follow_labels_and_slices():
    mesh, labels = circle(64), label_spaces.finite([0.2, 0.8])
    slices = np.stack([tilted(mesh), densities.uniform(mesh)])
    for uniforms in SAMPLERS.values():
        points, indices = sample_joint(mesh, labels, slices, 4000, np.random.default_rng(7), uniforms)
        assert abs((indices == 0).mean() - 0.2) < 4 * np.sqrt(0.16 / 4000)
        assert np.abs(points[indices == 0].mean(axis=0) - exact_mean(mesh)).max() < 4 / np.sqrt(800)


@pytest.mark.parametrize("count", [0, -1, 2.5, True])
def test_a_count_that_is_no_count_is_refused(count):
    with pytest.raises(InputError, match="whole number"):
        sample_density(circle(8), densities.uniform(circle(8)), count, np.random.default_rng())


def test_a_density_that_is_none_is_refused():
    with pytest.raises(InputError, match="cannot be sampled"):
        sample_density(circle(8), np.array([1.0, -1.0] * 4), 3, np.random.default_rng())
