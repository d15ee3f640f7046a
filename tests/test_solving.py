"""``ts.solve`` end to end: closed forms at zero temperature, records, refusals."""

import numpy as np
import pytest

import tokensphere as ts

MESH = ts.healpix(8)
START = ts.densities.polynomial(MESH, 1.0, [0.1, 0.3, 0.4])
M = np.diag([1.0, 0.3, -0.5])
IDENTITY = np.eye(3)


def test_the_documented_example_runs():
    attention = ts.Attention(query=IDENTITY, key=IDENTITY, value=M, beta=100.0)
    rho0 = ts.densities.from_function(MESH, lambda x: 1 + 0.5 * x[..., 2])
    run = ts.solve(MESH, attention, rho0, save_at=np.linspace(0, 2, 5))
    np.testing.assert_array_equal(run.times, np.linspace(0, 2, 5))
    assert run.densities.shape == (5, MESH.cells)
    np.testing.assert_array_equal(run.densities[0], rho0)
    assert run.densities.min() >= 0
    records = run.records
    assert len({len(column) for column in records.values()}) == 1
    assert np.abs(records["mass"] - 1).max() < 1e-13
    assert (np.diff(records["time"]) > 0).all()
    np.testing.assert_array_equal(np.diff(records["step"]), 1)
    assert records["density_min"].min() >= 0
    assert (records["spectral_fraction"] + records["tree_fraction"] + records["direct_fraction"]).min() == 1
    # W2 to the limit falls from its start towards the mesh's floor.
    assert records["w2_to_limit"][-1] < 0.6 * records["w2_to_limit"][0]
    assert 0 < records["w2_floor"][0] < records["w2_to_limit"][-1]
    distance = ts.wasserstein2_to_limit(MESH, run.densities[-1], rho0, ts.Projection(attention))
    assert float(distance) == pytest.approx(records["w2_to_limit"][-1], rel=1e-12)
    assert "5 densities" in repr(run)


def test_w2_at_zero_temperature_from_uniform_data():
    """S², k = 1, other eigenvalues equal: W2² = 2a/(1 + a), a = e^{−γt} (theory 1.3 g)."""
    attention = ts.Attention(IDENTITY, IDENTITY, np.diag([1.0, -0.5, -0.5]), np.inf)
    run = ts.solve(MESH, attention, ts.densities.uniform(MESH), [0.0, 0.5, 1.0, 2.0])
    limit = ts.Projection(attention)
    for time, density in zip(run.times, run.densities, strict=True):
        a = np.exp(-1.5 * time)
        found = float(ts.wasserstein2_to_limit(MESH, density, run.densities[0], limit))
        assert abs(found**2 - 2 * a / (1 + a)) < MESH.width**2


def test_energy_grows_for_a_gradient_flow_and_is_absent_elsewhere():
    """V = B symmetric: dE/dt = ∫|v|²Z dρ ≥ 0; V = −B: it falls (theory 1.4)."""
    symmetric = np.diag([1.0, 0.3, 0.6])
    for sign in (1, -1):
        attention = ts.Attention(IDENTITY, symmetric, sign * symmetric, 4.0)
        energy = ts.solve(MESH, attention, START, [0.0, 1.0]).records["energy"]
        assert (sign * np.diff(energy) > 0).all()
    attention = ts.Attention(IDENTITY, IDENTITY, M, 4.0)
    assert np.isnan(ts.solve(MESH, attention, START, [0.1]).records["energy"]).all()


def test_the_energy_of_the_uniform_density():
    """E e^{−β} = (1/2β)(sinh β/β)e^{−β} on S² with B = I."""
    from tokensphere.pde.energy import InteractionEnergy

    beta = 3.0
    mesh = ts.healpix(16)
    energy = InteractionEnergy(mesh, ts.Attention(IDENTITY, IDENTITY, IDENTITY, beta))
    exact = np.sinh(beta) / beta * np.exp(-beta) / (2 * beta)
    assert energy(ts.densities.uniform(mesh)) == pytest.approx(exact, rel=mesh.width**2)


def test_dissipation_is_the_energy_s_rate():
    """dE/dt = ∫|v|² Z dρ along a run, both sides from the density."""
    beta = 2.0
    mesh = ts.healpix(16)
    attention = ts.Attention(IDENTITY, IDENTITY, IDENTITY, beta)
    start = ts.densities.polynomial(mesh, 1.0, [0.1, 0.3, 0.4])
    run = ts.solve(mesh, attention, start, [0.0, 0.02])
    energy = run.records["energy"] * np.exp(beta)
    mean, log_normaliser = ts.attention_mean(mesh, attention, start, mesh.centers)
    velocity = mean - np.einsum("nd,nd->n", mean, mesh.centers)[:, None] * mesh.centers
    rate = (velocity**2).sum(axis=1) * np.exp(log_normaliser) @ (start * mesh.areas)
    assert (energy[-1] - energy[0]) / 0.02 == pytest.approx(rate, rel=2e-2)


def test_no_limit_leaves_its_columns_empty():
    tilted = np.array([[1.0, 0.4, 0], [-0.2, 0.3, 0.1], [0, 0.3, -0.5]])
    for value in (tilted, IDENTITY):
        run = ts.solve(MESH, ts.Attention(IDENTITY, IDENTITY, value, 4.0), START, [0.1])
        assert np.isnan(run.records["w2_to_limit"]).all()
        assert np.abs(run.records["mass"] - 1).max() < 1e-13


def test_further_recorders_and_progress():
    seen = []
    run = ts.solve(
        MESH,
        ts.Attention(IDENTITY, IDENTITY, M, 4.0),
        START,
        [0.0, 0.2],
        recorders={"north": lambda state: state.density[:10].sum()},
        progress=lambda state: seen.append(state.time),
    )
    np.testing.assert_array_equal(run.records["time"], seen)
    assert run.records["north"][0] == START[:10].sum()


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (np.ones(7), "shape"),
        (np.full(MESH.cells, np.nan), "cell 0"),
        (np.where(np.arange(MESH.cells) == 5, -1.0, 1.0), "cell 5"),
        (START * 2, "mass 2"),
        (START * 0, "mass 0"),
    ],
)
def test_a_bad_start_is_refused(start, words):
    with pytest.raises(ts.InputError, match=words):
        ts.solve(MESH, ts.Attention(IDENTITY, IDENTITY, M, 4.0), start, [1.0])


def test_dimensions_must_agree():
    with pytest.raises(ts.InputError, match="d = 2 and a sphere with d = 3"):
        ts.solve(MESH, ts.Attention(np.eye(2), np.eye(2), np.eye(2), 4.0), START, [1.0])


def test_the_same_map_in_either_order_gives_the_same_run():
    """P04: ring and nested."""
    import healpy

    ring = healpy.reorder(START, n2r=True)
    attention = ts.Attention(IDENTITY, IDENTITY, M, 10.0)
    runs = [
        ts.solve(MESH, attention, ts.densities.from_healpix_map(MESH, values, order), [0.2])
        for values, order in ((ring, "ring"), (START, "nested"))
    ]
    np.testing.assert_array_equal(runs[0].densities, runs[1].densities)
