"""Joint laws solved: exact solutions, the gauge, the two frames, and what each step conserves."""

import dataclasses
import math

import numpy as np
import pytest
from numpy.typing import NDArray

import tokensphere as ts
from tokensphere.pde.flux import MANY_LABELS, face_fluxes, largest_step, normal_speeds, transport_rate
from tokensphere.pde.joint import (
    content_marginal,
    content_points,
    joint_flow,
    levels_for,
    perturbed,
    product,
    slices_from_function,
)
from tokensphere.pde.march import State, march
from tokensphere.validation.cases.joint import poisson_start
from tokensphere.validation.exact_joint import (
    axisymmetric_colatitudes,
    growth_rate,
    poisson_content,
    poisson_mean,
    poisson_radius,
    ring_colatitude,
)
from tokensphere.validation.order_parameters import order_parameters, slice_means

Array = NDArray[np.float64]
EXPONENTIAL = ts.kernels.Exponential(beta=2.0, factor="1/beta")
ROPE = ts.kernels.rope(frequency=1.0, profile=EXPONENTIAL)


def test_exact_solutions_have_the_values_of_the_theory() -> None:
    """Theory §2.3, facts 5 to 7, to the digits given there."""
    assert np.allclose(poisson_radius(0.3, np.array([1.0, 2.0, 3.0])), [0.5137516269, 0.7403250128, 0.8884900866])
    assert np.allclose(ring_colatitude(EXPONENTIAL, 1.2, np.array([0.5, 1.0])), [1.0017536, 0.54596469])
    slow = ts.kernels.Exponential(1.0, "1/beta")
    assert np.allclose(ring_colatitude(slow, 1.2, np.array([1.0, 2.0])), [0.74747062, 0.10511199])
    for width, means in ((0.05, [1.0033, 0.5504]), (0.1, [1.0081, 0.5635])):
        weights, rings = axisymmetric_colatitudes(EXPONENTIAL, 1.2, width, np.array([0.5, 1.0]), rings=80)
        assert np.allclose(rings @ weights, means, atol=6e-5)
    rates = [growth_rate(ts.kernels.Exponential(2.0), degree) for degree in (1, 2, 3)]
    assert np.allclose(rates, [1.948765, 2.111137, 1.136910], atol=1e-6)
    assert np.allclose(poisson_mean(np.array([0.0099999, 0.0100001])), 4 / 3 * 0.01 - 4 / 15 * 1e-6, atol=2e-7)


def test_poisson_content_is_the_average_over_the_orbit() -> None:
    angles = 2 * np.pi * np.arange(4000) / 4000
    a0, r = 0.8, 0.7
    ring = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    poles = math.sin(a0) * ring + math.cos(a0) * np.array([0, 0, 1])
    x = np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]])
    slices = ((1 - r * r) / (1 - 2 * r * poles @ x.T + r * r)) ** 2 / (4 * np.pi)
    assert np.allclose(slices.mean(axis=0), poisson_content(r, a0, x), rtol=1e-12)


@pytest.mark.parametrize("frame", ["fixed", "co-rotating"])
def test_poisson_slices_under_rope(frame: str) -> None:
    """Fact 6 at t = 1: order 1.8 and better, label masses to 1e−13, energy never falling, E = M²/2 at the start."""
    kernel, labels = ts.kernels.rope(frequency=1.0, profile=ts.kernels.Linear()), ts.labels.circle(8)
    expected, errors = float(poisson_mean(poisson_radius(0.3, np.array([1.0]))[0])), []
    for nside in (8, 16):
        mesh = ts.healpix(nside)
        run = ts.solve_joint(mesh, labels, kernel, poisson_start(mesh, labels, kernel, frame), [0.0, 1.0], frame=frame)
        assert run.frame == frame
        assert run.densities.shape == (2, 8, mesh.cells)
        errors.append(abs(np.linalg.norm(slice_means(mesh, run.densities[1]), axis=1).mean() - expected))
        assert run.records["mass_defect"].max() < 1e-13
        assert run.records["density_min"].min() > 0
        assert (np.diff(run.records["energy"]) > 0).all()
        assert run.records["energy"][0] == pytest.approx(float(poisson_mean(0.3)) ** 2 / 2, rel=2e-2 * 8 / nside)
    assert math.log2(errors[0] / errors[1]) > 1.8
    assert errors[1] < 1e-3


def test_gauge_turns_rope_into_unnormalised_attention() -> None:
    """Fact 1: slices of u move as the density of plain USA, e^{β⟨x,y⟩}/β, which ``ts.solve`` solves on its own."""
    mesh, labels = ts.healpix(8), ts.labels.circle(3)
    start = ts.densities.von_mises_fisher(mesh, [0.3, 0.5, 0.4], 2.0)
    joint = ts.solve_joint(mesh, labels, ROPE, product(labels, start), [0.5, 1.0], frame="co-rotating")
    identity = np.eye(3)
    usa = ts.solve(mesh, ts.Attention(identity, identity, identity, 2.0, normalised=False), start, [0.5, 1.0])
    assert np.abs(joint.densities - usa.densities[:, None]).max() < 1e-10


def test_records_of_the_co_rotating_frame_are_those_of_the_content() -> None:
    mesh, labels = ts.healpix(8), ts.labels.circle(6)
    both = {}
    for frame in ("fixed", "co-rotating"):
        start = poisson_start(mesh, labels, ROPE, frame)
        both[frame] = ts.solve_joint(mesh, labels, ROPE, start, [0.0, 0.3], frame=frame).records
    for name in ("energy", "dissipation", "mean_z", "mean_length", "second_moment_1", "second_moment_3", "entropy"):
        first, second = both["fixed"][name], both["co-rotating"][name]
        assert first[0] == pytest.approx(second[0], rel=0.02, abs=1e-3), name
        assert first[-1] == pytest.approx(second[-1], rel=0.03, abs=3e-3), name


def test_dissipation_is_the_growth_of_energy() -> None:
    mesh, labels = ts.circle(256), ts.labels.circle(5)
    kernel = ts.kernels.toeplitz(profile=EXPONENTIAL, cosines=[(0, 0.5), (1, 1.0)])
    start = perturbed(mesh, product(labels, ts.densities.uniform(mesh)), 0.5, np.random.default_rng(1))
    run = ts.solve_joint(mesh, labels, kernel, start, np.linspace(0, 0.5, 26))
    time, energy, power = (run.records[name] for name in ("time", "energy", "dissipation"))
    worked = np.concatenate([[0], np.cumsum(np.diff(time) * (power[1:] + power[:-1]) / 2)])
    assert energy[-1] - energy[0] == pytest.approx(worked[-1], rel=1e-2)
    assert energy[-1] > 1.01 * energy[0]


def test_a_product_law_on_the_circle_stays_put() -> None:
    """Fact 5: RoPE over a full period from product data on S¹ has velocity 0."""
    mesh, labels = ts.circle(64), ts.labels.circle(32)
    start = product(labels, ts.densities.polynomial(mesh, 1.0, [0.5, 0.2]))
    run = ts.solve_joint(mesh, labels, ROPE, start, [0.0, 5.0])
    assert np.abs(run.densities[1] - start).max() < 1e-10


def test_growth_at_the_uniform_law_on_the_circle() -> None:
    """Fact 7 on S¹: mode cos(lθ)cos(kξ) grows at l²I_l(β)κ̂_k, and co-rotating modes at l²I_l(β)."""
    mesh, labels = ts.circle(256), ts.labels.circle(8)
    profile = ts.kernels.Exponential(1.5)
    angles = np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
    rope, toeplitz = ts.kernels.rope(1.0, profile), ts.kernels.toeplitz(profile, cosines=[(2, 1.0)])
    same, waves = np.tile(np.cos(2 * angles), (8, 1)), np.cos(2 * labels.points)[:, None] * np.cos(angles)
    for kernel, frame, shape, share in [
        (rope, "co-rotating", same, 1.0),
        (rope, "fixed", same, 0.0),
        (toeplitz, "fixed", waves, 0.5),
    ]:
        degree = 2 if share != 0.5 else 1
        start = (1 + 1e-4 * shape) / (2 * np.pi)
        run = ts.solve_joint(mesh, labels, kernel, start, [0.0, 0.5], frame=frame)
        amplitudes = [float(np.sum(shape * density)) for density in run.densities]
        rate = math.log(amplitudes[1] / amplitudes[0]) / 0.5
        assert rate == pytest.approx(share * growth_rate(profile, degree, 2), rel=0.01, abs=1e-3)


def test_joint_steps_are_conservative_face_by_face_and_resume_bitwise() -> None:
    """Pitfalls P16 and P22 on the product mesh."""
    mesh, labels = ts.healpix(4), ts.labels.interval(3)
    kernel = ts.kernels.distance_bias(0.4, EXPONENTIAL)
    start = perturbed(mesh, product(labels, ts.densities.uniform(mesh)), 0.9, np.random.default_rng(2))
    flow = joint_flow(mesh, labels, kernel)
    speeds = normal_speeds(mesh, flow.law.vectors(start, mesh.face_points))
    fluxes = face_fluxes(mesh, start, speeds)
    gained = np.zeros_like(start)
    for label in range(3):
        np.add.at(gained[label], mesh.face_cells[:, 1], fluxes[label])
        np.add.at(gained[label], mesh.face_cells[:, 0], -fluxes[label])
    assert np.abs(gained.sum(axis=1)).max() < 1e-14
    whole = list(march(flow, State(0.0, start), [1.0]))
    half = list(march(flow, whole[len(whole) // 2], [1.0]))
    assert np.array_equal(whole[-1].density, half[-1].density)


@pytest.mark.parametrize("mesh", [ts.circle(32), ts.healpix(4)], ids=["circle", "sphere"])
def test_many_labels_of_one_flow_move_as_each_alone(mesh: ts.Mesh) -> None:
    """The transposed loops against the plain ones, on rough data with voids, and positivity at the bound."""
    random = np.random.default_rng(6)
    density = random.random((MANY_LABELS, mesh.cells)) ** 6 * (random.random((MANY_LABELS, mesh.cells)) > 0.2)
    speeds = normal_speeds(mesh, random.normal(size=mesh.face_points.shape))
    together = transport_rate(mesh, density, speeds)
    alone = np.array([transport_rate(mesh, row, speeds) for row in density])
    assert np.abs(together - alone).max() < 1e-13 * np.abs(alone).max()
    assert np.abs(together @ mesh.areas).max() < 1e-13 * np.abs(alone).max()
    assert (density + largest_step(mesh, speeds) * together).min() >= 0


def test_content_law_of_a_co_rotating_run() -> None:
    """Turned back to x, the marginal keeps its mass exactly and its moments to second order."""
    labels = ts.labels.circle(16)
    kernel = ts.kernels.rope(1.0, ts.kernels.Linear())
    turns = kernel.gauge(labels, 3)
    assert turns is not None
    errors = []
    for nside in (8, 16):
        mesh = ts.healpix(nside)
        start = poisson_start(mesh, labels, kernel, "co-rotating")
        marginal = content_marginal(mesh, labels, start, turns)
        assert float(marginal @ mesh.areas) == pytest.approx(1, abs=1e-13)
        assert marginal.min() > 0
        exact = ts.densities.from_function(
            mesh, lambda x: poisson_content(0.3, 0.8, x.reshape(-1, 3)).reshape(x.shape[:-1])
        )
        errors.append(float(np.abs(marginal - exact) @ mesh.areas))
        points, masses = content_points(mesh, labels, start, turns)
        order = order_parameters(mesh, labels, start, turns)
        assert np.allclose(masses @ points, order.mean, atol=1e-14)
        assert np.allclose(np.linalg.eigvalsh((masses[:, None] * points).T @ points), order.second_moments, atol=1e-13)
    assert math.log2(errors[0] / errors[1]) > 1.5
    fixed = poisson_start(mesh, labels, kernel, "fixed")
    assert np.abs(content_marginal(mesh, labels, fixed) - labels.weights @ fixed).max() == 0


def test_slices_from_a_function_of_point_and_label() -> None:
    mesh, labels = ts.healpix(4), ts.labels.circle(4)
    slices = slices_from_function(mesh, labels, lambda x, angle: 1 + 0.5 * np.cos(angle) * x[..., 0])
    assert np.allclose(slice_means(mesh, slices)[:, 0], np.cos(labels.points) / 6, atol=2e-3)
    turned = slices_from_function(mesh, labels, lambda x, angle: 1 + 0.5 * x[..., 0], ROPE)
    assert np.allclose(slice_means(mesh, turned, ROPE.gauge(labels, 3))[:, 0], 1 / 6, atol=2e-3)


def test_narrow_kernels_are_prolonged() -> None:
    mesh = ts.healpix(8)
    assert [levels_for(mesh, ts.kernels.usa(ts.kernels.Exponential(b, "exp(-beta)/beta"))) for b in (10, 100, 300)] == [
        0,
        1,
        2,
    ]
    kernel = ts.kernels.usa(ts.kernels.Exponential(200.0, "exp(-beta)/beta"))
    labels = ts.labels.finite([1, 1])
    density = product(labels, ts.densities.von_mises_fisher(mesh, [0.0, 0.6, 0.8], 5.0))
    # v = P∇∫g dμ of a von Mises–Fisher law in closed form: g'(1)e^{−β} κ/sinhκ · (sinh w/w)' of w = |βx + κm|.
    x = mesh.face_points[::40]
    w = 200 * x + 5 * np.array([0.0, 0.6, 0.8])
    size = np.linalg.norm(w, axis=1, keepdims=True)
    pull = 5 / np.sinh(5) * np.exp(size - 200) / (2 * size) * (1 - 1 / size) * w / size
    exact = pull - np.sum(pull * x, axis=1, keepdims=True) * x
    found = joint_flow(mesh, labels, kernel).law.vectors(density, x)
    coarse = dataclasses.replace(joint_flow(mesh, labels, kernel, method="spectral").law, levels=0).vectors(density, x)
    scale = np.linalg.norm(exact, axis=1).max()
    assert np.linalg.norm(found - exact, axis=1).max() < 0.3 * np.linalg.norm(coarse - exact, axis=1).max()
    assert np.linalg.norm(found - exact, axis=1).mean() < 0.1 * scale


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"frame": "rotating"}, "fixed, co-rotating"),
        ({"method": "fast"}, "auto, spectral, log-safe"),
        ({"method": "log-safe"}, "co-rotating"),
        ({"mu0": np.ones((2, 192))}, r"\(3, 192\)"),
        ({"mu0": np.full((3, 192), 1.0)}, "mass"),
        ({"save_at": [1.0, 0.5]}, "increasing"),
    ],
)
def test_bad_joint_input_is_refused_in_one_sentence(change: dict[str, object], said: str) -> None:
    mesh, labels = ts.healpix(4), ts.labels.circle(3)
    call = {"mu0": product(labels, ts.densities.uniform(mesh)), "save_at": [0.1]} | change
    with pytest.raises(ts.InputError, match=said):
        ts.solve_joint(mesh, labels, ROPE, **call)  # type: ignore[arg-type]


def test_perturbations_keep_every_mass_and_come_from_the_generator() -> None:
    mesh, labels = ts.healpix(4), ts.labels.circle(3)
    start = product(labels, ts.densities.uniform(mesh))
    first, second = (perturbed(mesh, start, 0.2, np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.allclose(first @ mesh.areas, 1, atol=1e-14)
    assert 0.1 < np.abs(first / start - 1).max() < 0.3
    with pytest.raises(ts.InputError, match="below 1"):
        perturbed(mesh, start, 1.5, np.random.default_rng(0))


@pytest.mark.parametrize("frame", ["co-rotating", "fixed"])
def test_energy_in_a_collapse_falls_by_no_more_than_is_stated(frame: str) -> None:
    """2e−3 h² (docs/joint.md). Clusters within two cells are points; with their cells' width it fell by 3e−2 h²."""
    mesh, labels = ts.healpix(8), ts.labels.circle(4)
    if frame == "co-rotating":
        kernel = ts.kernels.rope(frequency=1.0, profile=ts.kernels.Exponential(1.0, "1/beta"))
        end, most = 20.0, math.e / 2
    else:
        kernel = ts.kernels.toeplitz(ts.kernels.Linear(), cosines=[(0, 0.6), (1, 1.0)])
        end, most = 60.0, 0.3
    start = product(labels, ts.densities.von_mises_fisher(mesh, [0.3, 0.5, 0.4], 2.0))
    energy = ts.solve_joint(mesh, labels, kernel, start, [end], frame=frame).records["energy"]
    assert (np.maximum.accumulate(energy) - energy).max() < 2e-3 * mesh.width**2
    assert energy[-1] == pytest.approx(most, rel=1e-3)
