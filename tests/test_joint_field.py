"""The field of labelled tokens against the double sum over labels and cells that defines it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tokensphere.meshes import labels as label_spaces
from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.labels import Labels
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde import kernels
from tokensphere.pde.joint_field import LogSafeField, spectral_field
from tokensphere.pde.kernels import Kernel
from tokensphere.pde.zonal import Harmonics, euler_angles

Array = NDArray[np.float64]
EXPONENTIAL = kernels.Exponential(2.0, "1/beta")
SPACE = label_spaces.finite([1, 2, 1, 3], points=[0.0, 0.2, 0.9, 1.4])


def double_sum(
    mesh: Mesh, space: Labels, kernel: Kernel, density: Array, points: Array, turned: bool = True
) -> tuple[Array, Array, float]:
    """V, v and E by definition: nothing shared with the code but g and the matrices."""
    turns = kernel.gauge(space, mesh.dimension) if turned else None
    turns = np.broadcast_to(np.eye(mesh.dimension), (space.count, *[mesh.dimension] * 2)) if turns is None else turns
    b, masses = kernel.mixing(space), density * mesh.areas
    potential = np.zeros((space.count, len(points)))
    velocity = np.zeros((space.count, *points.shape))
    energy = 0.0
    for i, own in enumerate(turns):
        for j, other in enumerate(turns):
            sources, strength = mesh.centers @ other.T, space.weights[j] * b[i, j]
            cosines = points @ own.T @ sources.T
            potential[i] += strength * kernel.profile.value(cosines) @ masses[j]
            velocity[i] += strength * (kernel.profile.derivative(cosines) * masses[j]) @ sources @ own
            pairs = kernel.profile.value(mesh.centers @ own.T @ sources.T)
            energy += 0.5 * space.weights[i] * strength * masses[i] @ pairs @ masses[j]
        velocity[i] -= np.einsum("nd,nd->n", velocity[i], points)[:, None] * points
    return potential, velocity, energy


def random_slices(mesh: Mesh, space: Labels) -> Array:
    density = np.random.default_rng(3).random((space.count, mesh.cells)) ** 3
    return density / (density @ mesh.areas)[:, None]


def every_kernel(dimension: int) -> list[Kernel]:
    matrices = np.linalg.qr(np.random.default_rng(5).normal(size=(SPACE.count, dimension, dimension)))[0]
    matrices[1::2, :, 0] *= -1  # rotations and reflections
    generator = np.zeros((dimension, dimension))
    generator[0, -1], generator[-1, 0] = 1.3, -1.3
    return [
        kernels.usa(EXPONENTIAL),
        kernels.rope(1.7, EXPONENTIAL),
        kernels.rope(1.7, kernels.Linear()),
        kernels.generalised_rope(EXPONENTIAL, generators=[generator]),
        kernels.prefix(matrices, EXPONENTIAL),
        kernels.distance_bias(0.4, EXPONENTIAL),
        kernels.toeplitz(EXPONENTIAL, cosines=[(0, -0.2), (1, 1.0)]),
        Kernel("both", EXPONENTIAL, mixer=lambda space: np.cos(space.differences()), rotator=lambda *_: matrices),
    ]


@pytest.mark.parametrize("mesh", [circle(32), healpix(4)], ids=["circle", "sphere"])
@pytest.mark.parametrize("index", range(8))
def test_field_is_the_double_sum_in_both_frames(mesh: Mesh, index: int) -> None:
    kernel, density = every_kernel(mesh.dimension)[index], random_slices(mesh, SPACE)
    points = np.concatenate([mesh.face_points[::5], np.eye(mesh.dimension)])
    for fixed in (True, False):
        potential, velocity, energy = double_sum(mesh, SPACE, kernel, density, points, turned=fixed)
        field = spectral_field(mesh, SPACE, kernel, fixed=fixed)
        assert np.allclose(field.vectors(density, points), velocity, atol=1e-13)
        assert np.allclose(field.potential(density, points), potential, atol=1e-13)
        assert field.energy(density) == pytest.approx(energy, rel=1e-13)


def test_one_field_serves_all_slices_in_the_co_rotating_frame() -> None:
    mesh = healpix(4)
    density = random_slices(mesh, SPACE)
    field = spectral_field(mesh, SPACE, kernels.rope(1.7, EXPONENTIAL), fixed=False)
    assert field.vectors(density, mesh.face_points).shape == mesh.face_points.shape


@pytest.mark.parametrize("kernel", [every_kernel(3)[k] for k in (0, 5, 6)], ids=lambda kernel: kernel.name)
def test_log_safe_field_is_the_double_sum(kernel: Kernel) -> None:
    mesh = healpix(4)
    density, points = random_slices(mesh, SPACE), mesh.face_points[::5]
    potential, velocity, energy = double_sum(mesh, SPACE, kernel, density, points)
    field = LogSafeField(mesh, SPACE, kernel)
    assert np.allclose(field.vectors(density, points), velocity, atol=1e-8)
    assert np.allclose(field.potential(density, points), potential, atol=1e-8)
    assert field.energy(density) == pytest.approx(energy, rel=1e-8)


def test_log_safe_field_keeps_relative_accuracy_where_the_spectral_one_is_noise() -> None:
    mesh = healpix(8)
    kernel = kernels.usa(kernels.Exponential(60.0, "exp(-beta)/beta"))
    space = label_spaces.finite([1])
    density = np.zeros((1, mesh.cells))
    density[0, 0] = 1 / mesh.areas[0]
    far = -mesh.centers[:1] + np.array([[0.2, -0.1, 0.05]])
    far /= np.linalg.norm(far)
    source = mesh.centers[0]
    s = float(far[0] @ source)
    exact = np.exp(60 * (s - 1)) * (source - s * far[0])
    assert np.linalg.norm(exact) < 1e-45
    found = LogSafeField(mesh, space, kernel).vectors(density, far)[0]
    assert np.linalg.norm(found - exact) < 1e-7 * np.linalg.norm(exact)
    noise = spectral_field(mesh, space, kernel, fixed=True).vectors(density, far)
    assert np.linalg.norm(noise - exact) < 1e-13


def test_rope_velocity_vanishes_on_the_circle_from_product_data() -> None:
    """Theory §2.3, fact 5: over a full period the u-law of a product law is uniform."""
    mesh, space = circle(128), label_spaces.circle(64)
    density = np.repeat((1 + 0.7 * np.cos(2 * np.arctan2(*mesh.centers.T)))[None], 64, axis=0) / (2 * np.pi)
    field = spectral_field(mesh, space, kernels.rope(1.0, EXPONENTIAL), fixed=True)
    assert np.abs(field.vectors(density, mesh.face_points)).max() < 1e-12


def test_energy_grows_at_the_dissipation_along_a_small_displacement() -> None:
    """dE/dt = ∫|v|²dμ, for moving atoms: E((x + εv)/|·|) − E(x − εv) = 2ε∫|v|²dμ + O(ε³)."""
    mesh = healpix(2)
    kernel = kernels.toeplitz(EXPONENTIAL, cosines=[(1, 1.0)])
    basis = spectral_field(mesh, SPACE, kernel, fixed=True)
    density = random_slices(mesh, SPACE)
    velocity = basis.vectors(density, mesh.centers)

    def energy(epsilon: float) -> float:
        moved = mesh.centers + epsilon * velocity
        moved /= np.linalg.norm(moved, axis=-1, keepdims=True)
        rows = [basis.basis.analyse(x, m[None])[0] for x, m in zip(moved, density * mesh.areas, strict=True)]
        combined = basis.mix.gather(np.array(rows))
        return 0.5 * float(basis.mix.values @ basis.basis.pairing(combined, combined))

    rate = (energy(1e-4) - energy(-1e-4)) / 2e-4
    speeds = np.sum(velocity**2, axis=-1)
    assert rate == pytest.approx(float(SPACE.weights @ (speeds * density) @ mesh.areas), rel=1e-6)


@pytest.mark.parametrize("tilt", [0.0, 1e-14, 1e-9, 1e-5, 1.0, np.pi - 1e-9, np.pi])
def test_euler_angles_rebuild_the_rotation(tilt: float) -> None:
    def about_z(a: float) -> Array:
        return np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1.0]])

    def about_y(a: float) -> Array:
        return np.array([[np.cos(a), 0, np.sin(a)], [0, 1.0, 0], [-np.sin(a), 0, np.cos(a)]])

    rotation = about_z(2.1) @ about_y(tilt) @ about_z(-0.8)
    psi, theta, phi = euler_angles(rotation)
    assert np.allclose(about_z(phi) @ about_y(theta) @ about_z(psi), rotation, atol=1e-12)


def test_turned_coefficients_are_those_of_the_turned_measure() -> None:
    random = np.random.default_rng(8)
    mesh = healpix(2)
    basis = Harmonics(kernels.Exponential(6.0))
    matrices = np.linalg.qr(random.normal(size=(6, 3, 3)))[0]
    matrices[1::2, :, 0] *= -1
    assert {round(float(np.linalg.det(q))) for q in matrices} == {-1, 1}
    masses = random.random((6, mesh.cells))
    turned = basis.turn(basis.analyse(mesh.centers, masses), matrices)
    for row, (matrix, own) in enumerate(zip(matrices, masses, strict=True)):
        assert np.allclose(turned[row], basis.analyse(mesh.centers @ matrix.T, own[None])[0], atol=1e-11)


def test_log_safe_field_needs_the_exponential_profile() -> None:
    with pytest.raises(InputError, match="spectral"):
        LogSafeField(healpix(2), SPACE, kernels.usa(kernels.Linear()))
