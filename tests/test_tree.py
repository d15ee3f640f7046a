"""The tree against the plain log-sum-exp at any dynamic range, and the bounds it rests on."""

from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import logsumexp

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.pde import threads
from tokensphere.pde.sources import bisect, enclose
from tokensphere.pde.tree import TreePlan
from tokensphere.pde.tree_groups import choose_degrees, frames
from tokensphere.pde.tree_kernels import THIRD_DEGREES
from tokensphere.pde.tree_orders import HIGHEST_DEGREE, exponential_orders
from tokensphere.pde.tree_walk import RADIUS, WIDEST, masses_up, walk
from tokensphere.pde.vector_kernels import exponential, single_exponential

Array = NDArray[np.float64]
AXIS = np.array([0.3, 0.5, -0.8]) / np.linalg.norm([0.3, 0.5, -0.8])
BETAS = [1.0, 10.0, 100.0, 1e3, 1e5]
CONDITIONS = [1.0, 4.0, 30.0]


def unit_vectors(count: int, dimension: int, seed: int) -> Array:
    vectors = np.random.default_rng(seed).normal(size=(count, dimension))
    unit: Array = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def tilted(points: Array, beta: float, condition: float) -> Array:
    """βBᵀx with singular values of B between 1 and 1/condition, in a general position."""
    dimension = points.shape[1]
    left, right = (np.linalg.qr(np.random.default_rng(seed).normal(size=(dimension, dimension)))[0] for seed in (1, 2))
    tilts: Array = beta * points @ (left * np.geomspace(1.0, 1.0 / condition, dimension)) @ right
    return tilts


def log_density(name: str, points: Array) -> Array:
    along = points @ (AXIS[: points.shape[1]] / np.linalg.norm(AXIS[: points.shape[1]]))
    match name:
        case "smooth":
            result = np.log(1.0 + 0.4 * points[:, 0] + 0.3 * points[:, 0] * points[:, 1] + 0.2 * points[:, -1])
        case "ridge":
            result = -60.0 * (1.0 - np.abs(along))
        case "one cell":
            result = np.where(np.arange(len(points)) == len(points) // 3, 0.0, -200.0 * np.log(10.0))
        case _:
            result = np.where(np.abs(along) > 0.95, 0.1 * points[:, 0], -30.0 * np.log(10.0))
    return np.asarray(result, dtype=np.float64)


DENSITIES = ["smooth", "ridge", "one cell", "two clusters"]


def direct(tilts: Array, sources: Array, log_masses: Array) -> tuple[Array, Array]:
    exponents = tilts @ sources.T + log_masses
    log_normaliser = logsumexp(exponents, axis=1)
    return np.exp(exponents - log_normaliser[:, None]) @ sources, log_normaliser


def check(plan: TreePlan, tilts: Array, sources: Array, log_masses: Array, rtol: float, sample: int = 150) -> None:
    mean, log_normaliser = plan(log_masses)
    rows = np.random.default_rng(0).choice(len(tilts), min(sample, len(tilts)), replace=False)
    expected_mean, expected_log = direct(tilts[rows], sources, log_masses)
    rounding = 1e-15 * np.abs(tilts).max()
    assert np.abs(mean[rows] - expected_mean).max() <= rtol + rounding
    assert np.abs(log_normaliser[rows] - expected_log).max() <= rtol + rounding


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_agrees_with_the_direct_sum_on_the_sphere(beta: float, condition: float) -> None:
    sources, tilts = healpix(8).centers, tilted(unit_vectors(3000, 3, 3), beta, condition)
    plan = TreePlan(sources, tilts)
    for name in DENSITIES:
        check(plan, tilts, sources, log_density(name, sources), 1e-8)


@pytest.mark.parametrize(("beta", "condition"), [(100.0, 1.0), (100.0, 30.0), (30.0, 4.0), (1e3, 1.0)])
def test_agrees_on_a_finer_mesh_where_nodes_are_expanded(beta: float, condition: float) -> None:
    sources, tilts = healpix(32).centers, tilted(unit_vectors(12000, 3, 4), beta, condition)
    plan = TreePlan(sources, tilts)
    for name in DENSITIES:
        check(plan, tilts, sources, log_density(name, sources), 1e-8, sample=60)


@pytest.mark.parametrize("rtol", [1e-3, 1e-5, 1e-11])
def test_keeps_other_tolerances(rtol: float) -> None:
    sources, tilts = healpix(16).centers, tilted(unit_vectors(8000, 3, 5), 60.0, 4.0)
    plan = TreePlan(sources, tilts, rtol)
    for name in DENSITIES:
        check(plan, tilts, sources, log_density(name, sources), rtol)


@pytest.mark.parametrize("beta", BETAS)
def test_agrees_on_the_circle(beta: float) -> None:
    sources, tilts = circle(1024).centers, tilted(unit_vectors(3000, 2, 6), beta, 4.0)
    plan = TreePlan(sources, tilts)
    for name in DENSITIES:
        check(plan, tilts, sources, log_density(name, sources), 1e-8)


def test_free_weighted_points_with_repeats_and_empty_ones() -> None:
    rng = np.random.default_rng(7)
    clustered = unit_vectors(3, 3, 8)[rng.integers(0, 3, 3000)] + 0.1 * rng.normal(size=(3000, 3))
    points = np.concatenate([clustered / np.linalg.norm(clustered, axis=1, keepdims=True), unit_vectors(500, 3, 9)])
    points[1000:1100] = points[0]
    log_masses = np.where(rng.random(len(points)) < 0.3, -np.inf, rng.uniform(-700.0, 0.0, len(points)))
    tilts = tilted(unit_vectors(2000, 3, 10), 40.0, 4.0)
    check(TreePlan(points, tilts), tilts, points, log_masses, 1e-8)
    check(TreePlan(points, tilts), tilts, points, log_masses - 1e5, 1e-8)


def test_a_single_source_is_the_mean() -> None:
    tilts = tilted(unit_vectors(50, 3, 11), 100.0, 4.0)
    mean, log_normaliser = TreePlan(AXIS[None], tilts)(np.array([-3.0]))
    np.testing.assert_allclose(mean, np.tile(AXIS, (50, 1)), atol=1e-15)
    np.testing.assert_allclose(log_normaliser, tilts @ AXIS - 3.0, atol=1e-13)


def test_empty_and_undefined_masses() -> None:
    sources = healpix(2).centers
    plan = TreePlan(sources, sources)
    mean, log_normaliser = plan(np.full(len(sources), -np.inf))
    assert (mean == 0.0).all()
    assert (log_normaliser == -np.inf).all()
    for wrong in (np.nan, np.inf):
        masses = np.zeros(len(sources))
        masses[5] = wrong
        assert all(np.isnan(part).all() for part in plan(masses))


def test_serves_chosen_targets_only() -> None:
    sources, tilts = healpix(16).centers, tilted(unit_vectors(4000, 3, 12), 50.0, 4.0)
    plan, log_masses = TreePlan(sources, tilts), log_density("ridge", sources)
    mean, log_normaliser = plan(log_masses)
    mask = tilts[:, 0] > 20.0
    indices = np.random.default_rng(0).permutation(4000)[:700]
    for chosen in (mask, indices, np.concatenate([indices, indices[::7]])):
        some_mean, some_log = plan(log_masses, chosen)
        assert np.abs(some_mean - mean[chosen]).max() <= 2e-8
        assert np.abs(some_log - log_normaliser[chosen]).max() <= 2e-8


def test_threads_and_repeats_change_nothing() -> None:
    sources, tilts = healpix(16).centers, tilted(unit_vectors(6000, 3, 13), 80.0, 4.0)
    plan, log_masses = TreePlan(sources, tilts), log_density("two clusters", sources)
    before = threads.threads()
    try:
        results = []
        for count in (1, 2, 2):
            threads.set_threads(count)
            results.append(plan(log_masses))
    finally:
        threads.set_threads(before)
    for mean, log_normaliser in results[1:]:
        np.testing.assert_array_equal(mean, results[0][0])
        np.testing.assert_array_equal(log_normaliser, results[0][1])


def test_refuses_bad_input() -> None:
    points = unit_vectors(10, 3, 14)
    with pytest.raises(InputError, match="length 2"):
        TreePlan(2.0 * points, points)
    with pytest.raises(InputError, match="not finite in row 3"):
        TreePlan(points, np.where(np.arange(10)[:, None] == 3, np.nan, points))
    with pytest.raises(InputError, match="give the same number"):
        TreePlan(points, points[:, :2])
    with pytest.raises(InputError, match="between 0 and 1"):
        TreePlan(points, points, 0.0)
    with pytest.raises(InputError, match="10 sources"):
        TreePlan(points, points)(np.zeros(9))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 200),
    dynamic=st.sampled_from([0.0, 5.0, 50.0, 700.0]),
    beta=st.sampled_from([0.1, 3.0, 30.0, 1e3, 1e6]),
    relative_reach=st.sampled_from([0.0, 0.02, 0.3]),
)
def test_the_bounds_of_the_walk_hold(
    seed: int, count: int, dynamic: float, beta: float, relative_reach: float
) -> None:
    """L + ⟨dz, ȳ⟩ ≤ log F(z); what the walk leaves out is below its share of F at every target; u_S bounds at z0."""
    rng, omission = np.random.default_rng(seed), 1e-6
    tree = bisect(unit_vectors(count, 3, seed), 4)
    log_masses = rng.uniform(-dynamic, 0.0, count)
    center = beta * unit_vectors(1, 3, seed + 1)[0]
    reach = relative_reach * beta
    tilts = center + reach * unit_vectors(20, 3, seed + 2) * rng.random((20, 1))
    nodes, weights = enclose(tree), np.empty((2 ** (tree.levels + 1) - 1, 4))
    masses_up(np.ascontiguousarray(tree.points.T), log_masses, tree.levels, weights)
    room = 2 ** (tree.levels + 2)
    kept, first, second = (np.empty(room, dtype=np.int64) for _ in range(3))
    upper = np.empty(room)
    found, lower, *middle = walk(
        center, reach, nodes, weights, tree.levels, omission, kept, upper, first, second
    )
    rounding = 1e-14 * (1.0 + beta + dynamic)
    exponents = tilts @ tree.points.T + log_masses
    log_normaliser = logsumexp(exponents, axis=1)
    assert (lower + (tilts - center) @ np.array(middle) <= log_normaliser + rounding).all()
    left_out = np.ones(count, dtype=bool)
    for node, bound in zip(kept[:found], upper[:found], strict=True):
        level = int(np.log2(node + 1))
        start, end = tree.bounds(level)[node + 1 - 2**level :][:2]
        left_out[start:end] = False
        assert logsumexp(tree.points[start:end] @ center + log_masses[start:end]) <= lower + bound + rounding
    if left_out.any():
        assert (logsumexp(exponents[:, left_out], axis=1) <= log_normaliser + np.log(omission) + rounding).all()


def test_nodes_are_balanced_ranges_inside_their_balls() -> None:
    points = unit_vectors(1000, 3, 15)
    tree = bisect(points, 8)
    np.testing.assert_array_equal(tree.points, points[tree.order])
    np.testing.assert_array_equal(np.sort(tree.order), np.arange(1000))
    nodes = enclose(tree)
    for level in range(tree.levels + 1):
        sizes = np.diff(tree.bounds(level))
        assert sizes.max() - sizes.min() <= 1
        rows = np.repeat(nodes[2**level - 1 : 2 ** (level + 1) - 1], sizes, axis=0)
        away = tree.points - rows[:, :3]
        along = np.einsum("nk,nk->n", away, rows[:, 3:6])
        assert (np.linalg.norm(away, axis=1) <= rows[:, 6]).all()
        assert (np.linalg.norm(away - along[:, None] * rows[:, 3:6], axis=1) <= rows[:, 7]).all()
        assert (np.abs(along) <= rows[:, 8]).all()
    # halving keeps nodes compact: 128 nodes of 8 points, each of about the radius of a cap of its area
    assert np.median(nodes[-128:, 6]) < 2.0 * np.arccos(1.0 - 2.0 / 128)


def test_exponential_is_exact_to_its_rounding() -> None:
    values = np.concatenate([np.linspace(-708.0, 700.0, 20001), np.linspace(-1.0, 1.0, 2001)])
    ours = np.array([exponential(x) for x in values])
    assert np.abs(ours / np.exp(values) - 1.0).max() < 3e-14
    assert np.abs(ours / np.exp(values) - 1.0)[-2001:].max() < 1e-15
    assert exponential(-np.inf) < 1e-300
    single = np.linspace(-80.0, 80.0, 4001, dtype=np.float32)
    ours = np.array([single_exponential(x) for x in single], dtype=np.float64)
    assert np.abs(ours / np.exp(single.astype(np.float64)) - 1.0).max() < 1e-5  # |x| round-off errors of 6e-8
    assert np.abs(ours / np.exp(single.astype(np.float64)) - 1.0)[np.abs(single) < 1.0].max() < 4e-7


def test_polynomials_keep_their_error_bounds() -> None:
    orders = exponential_orders()
    for q in range(0, len(orders.ranges), 3):
        x = np.linspace(-1.0, 1.0, 201) * orders.ranges[q]
        for p in range(HIGHEST_DEGREE + 1):
            coefficients = orders.coefficients[q, p]
            value = np.polynomial.polynomial.polyval(x, coefficients)
            slope = np.polynomial.polynomial.polyval(x, np.polynomial.polynomial.polyder(coefficients))
            assert np.abs(value - np.exp(x)).max() <= orders.value_errors[q, p]
            assert np.abs(slope - np.exp(x)).max() <= orders.slope_errors[q, p]
    # and they are not much larger than needed
    x = np.linspace(-1.0, 1.0, 2001) * orders.ranges[20]
    assert np.abs(np.polynomial.polynomial.polyval(x, orders.coefficients[20, 4]) - np.exp(x)).max() > 0.5 * (
        orders.value_errors[20, 4]
    )


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize(("range_", "third"), [(0.05, 0.0), (0.7, 0.01), (2.5, 0.003), (4.0, 0.01)])
def test_chosen_degrees_keep_the_error_they_claim(range_: float, third: float, tolerance: float) -> None:
    """Σ_k P_k(x) u^k/k! against e^{x+u} on |x| ≤ c, |u| ≤ d, with its derivatives in x and in u."""
    orders, degrees = exponential_orders(), np.empty((1, THIRD_DEGREES), dtype=np.int64)
    radius, stretch = 0.3, 0.01
    row, claimed = choose_degrees(
        (orders.value_errors, orders.slope_errors), radius, range_, third, stretch, tolerance, degrees, 0
    )
    assert row >= 0
    assert claimed <= tolerance
    x, u = np.meshgrid(np.linspace(-range_, range_, 101), np.linspace(-third, third, 11))
    error, kept, kept_below = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for k, degree in enumerate(degrees[0][degrees[0] >= 0]):
        power = np.abs(u) ** k / factorial(k)
        below = np.abs(u) ** (k - 1) / factorial(k - 1) if k > 0 else 0.0
        coefficients = orders.coefficients[row, degree]
        value = np.polynomial.polynomial.polyval(x, coefficients) - np.exp(x)
        slope = np.polynomial.polynomial.polyval(x, np.polynomial.polynomial.polyder(coefficients)) - np.exp(x)
        error += (power + stretch * below) * (np.abs(value) + radius * np.abs(slope))
        kept, kept_below = kept + u**k / factorial(k), kept_below + (u ** (k - 1) / factorial(k - 1) if k > 0 else 0.0)
    # what is left out of ∇F is carried by unit vectors, but for the third coordinate
    left_out = (1.0 + stretch) * np.abs(np.exp(u) - kept) + stretch * np.abs(np.exp(u) - kept_below)
    assert (error + left_out * np.exp(x)).max() <= claimed


@pytest.mark.parametrize("axis", [AXIS, np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])])
@pytest.mark.parametrize("normal", [AXIS, -AXIS, np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])])
def test_frames_resolve_the_identity(axis: Array, normal: Array) -> None:
    p, q = np.empty((3, 3)), np.empty((3, 3))
    frames(normal, axis, p, q)
    np.testing.assert_allclose(p.T @ q, np.eye(3), atol=1e-14)


def test_wide_nodes_are_opened_however_small_the_block() -> None:
    """On fine meshes blocks are small: nodes too wide to be expanded were kept, and summed source by source."""
    tree = bisect(healpix(16).centers, 8)
    nodes, weights = enclose(tree), np.empty((2 ** (tree.levels + 1) - 1, 4))
    masses_up(np.ascontiguousarray(tree.points.T), np.zeros(len(tree.points)), tree.levels, weights)
    room = 2 ** (tree.levels + 2)
    kept, first, second = (np.empty(room, dtype=np.int64) for _ in range(3))
    found = walk(10.0 * AXIS, 0.5, nodes, weights, tree.levels, 1e-9, kept, np.empty(room), first, second)[0]
    assert 2**4 < found < 2**tree.levels / 4
    assert nodes[kept[:found], RADIUS].max() <= WIDEST
