"""The march: exact save times, guards, bitwise continuation, and an error-controlled field."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.pde.attention import Attention
from tokensphere.pde.densities import from_function, polynomial, uniform
from tokensphere.pde.errors import MassDefectError, NegativeDensityError, NonFiniteError, StalledStepError
from tokensphere.pde.flux import normal_speeds
from tokensphere.pde.march import Field, State, march
from tokensphere.pde.problem import AttentionFlow

CIRCLE = circle(64)
HEAD = Attention(np.eye(2), np.eye(2), np.diag([1.0, -0.6]), 10.0)
START = polynomial(CIRCLE, 1.0, [0.4, 0.3])


class Given:
    """A flow whose speeds are a function of the density written by the test."""

    def __init__(self, mesh, speeds, steady=False):
        self.mesh, self.steady, self._speeds = mesh, steady, speeds
        self.called = 0

    def field(self, density):
        self.called += 1
        return Field(self._speeds(density, self.called))


def final(flow, density, saves, **options):
    *_, last = march(flow, State(0.0, density), saves, **options)
    return last


def turning(mesh):
    return normal_speeds(mesh, np.stack([-mesh.face_points[:, 1], mesh.face_points[:, 0]], axis=1))


@given(st.lists(st.floats(1e-6, 0.3), min_size=1, max_size=6, unique=True))
@settings(max_examples=25, deadline=None)
def test_every_save_time_is_met_once_and_exactly(gaps):
    """P19, P20: awkward gaps; the last time is the requested float and no step follows it."""
    saves = np.cumsum(gaps)
    for flow in (AttentionFlow(CIRCLE, HEAD), Given(CIRCLE, lambda density, _: turning(CIRCLE), steady=True)):
        states = list(march(flow, State(0.0, START), saves))
        assert [state.time for state in states if state.saved is not None] == saves.tolist()
        assert [state.saved for state in states if state.saved is not None] == list(range(len(saves)))
        assert states[-1].time == saves[-1]
        steps = np.diff([state.time for state in states])
        assert (steps > 0).all()
        # No sliver: a step is shorter than a tenth of its neighbour only where a save time lies that near.
        closest = np.diff(np.concatenate([[0.0], saves])).min()
        assert steps.min() > min(1e-4, closest / 4)


def test_a_save_at_the_start_is_the_initial_density():
    states = list(march(AttentionFlow(CIRCLE, HEAD), State(0.0, START), [0.0, 0.1]))
    assert states[0].saved == 0
    assert states[0].time == 0.0
    np.testing.assert_array_equal(states[0].density, START)


def test_continuing_from_any_state_is_bitwise():
    """P22, the march's part: every state carries all that the next step depends on."""
    flow, saves = AttentionFlow(CIRCLE, HEAD), [0.0, 0.37, 0.8]
    states = list(march(flow, State(0.0, START), saves))
    for state in states[::7]:
        rest = list(march(AttentionFlow(CIRCLE, HEAD), replace(state), saves))
        assert len(rest) == states[-1].step - state.step
        if rest:
            np.testing.assert_array_equal(rest[-1].density, states[-1].density)
            assert rest[-1].evaluations == states[-1].evaluations


@pytest.mark.parametrize("saves", [[], [0.2, 0.1], [0.1, 0.1], [np.nan], [np.inf], [[0.1, 0.2]]])
def test_save_times_must_increase_and_be_finite(saves):
    with pytest.raises(InputError, match="increasing"):
        list(march(AttentionFlow(CIRCLE, HEAD), State(0.0, START), saves))


def test_save_times_must_not_be_past():
    with pytest.raises(InputError, match="before the starting time"):
        list(march(AttentionFlow(CIRCLE, HEAD), State(1.0, START), [0.5]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_field_that_is_not_finite_stops_with_time_step_and_cell(value):
    """P10, P21: the step is rejected, the last state is good, the sentence says where."""
    mesh = healpix(4)

    def speeds(density, called):
        found = normal_speeds(mesh, np.cross([0, 0, 1.0], mesh.face_points))
        if called > 6:
            found[mesh.face_offsets[100]] = value
        return found

    seen = []
    states = march(Given(mesh, speeds), State(0.0, uniform(mesh)), [1.0])
    with pytest.raises(NonFiniteError) as failure:
        seen.extend(states)
    assert re.search(r"time .*, step \d+, cell \d+, longitude", str(failure.value))
    assert failure.value.cell in mesh.face_cells[100]
    assert failure.value.step == seen[-1].step + 1
    assert np.isfinite(seen[-1].density).all()


def test_guards_name_a_negative_density_and_a_leak(monkeypatch):
    flow = Given(CIRCLE, lambda density, _: turning(CIRCLE), steady=True)
    for tampered, error in (
        (lambda density: density - 2 * density[7] * (np.arange(64) == 7), NegativeDensityError),
        (lambda density: density * (1 + 1e-8), MassDefectError),
    ):
        from tokensphere.pde import march as module

        heun = module.heun
        monkeypatch.setattr(module, "heun", lambda *given, heun=heun, change=tampered: change(heun(*given)))
        with pytest.raises(error, match="step 1"):
            final(flow, START, [1.0])
        monkeypatch.undo()


def test_a_speed_without_bound_stalls():
    with pytest.raises(StalledStepError, match="step"):
        final(Given(CIRCLE, lambda density, _: 1e17 * turning(CIRCLE)), START, [1.0])


def test_a_steady_flow_evaluates_its_field_once():
    flow = Given(CIRCLE, lambda density, _: turning(CIRCLE), steady=True)
    assert final(flow, START, [1.0, 2.0]).evaluations == 1
    assert flow.called == 1


@pytest.mark.parametrize("beta", [10.0, 200.0])
def test_sparing_evaluations_does_not_change_the_answer(beta):
    """The density under the default tolerance against one a hundred times tighter, and far fewer fields."""
    mesh = circle(512)
    head = Attention(np.eye(2), np.eye(2), np.diag([1.0, -0.6]), beta)
    start = from_function(mesh, lambda x: 1 + 0.4 * x[..., 0] + 0.3 * x[..., 1])
    spared = final(AttentionFlow(mesh, head), start, [2.0])
    tight = final(AttentionFlow(mesh, head), start, [2.0], tolerance=1e-7)
    assert np.abs(spared.density - tight.density).mean() < 2e-5 * tight.density.mean()
    assert spared.evaluations < 0.5 * 2 * spared.substeps
    assert spared.evaluations < tight.evaluations


def test_a_slow_flow_is_followed_at_its_own_rate():
    """At rest the outflow bound allows any step, but a perturbation grows e-fold per 1/rate: order 2 in that too.

    S¹, V = I, β = 5, degree 2: rate l² I_l(β)/(β I_0(β)).
    """
    from scipy.special import iv

    mesh = circle(512)
    head = Attention(np.eye(2), np.eye(2), np.eye(2), 5.0)
    cosine = np.cos(2 * np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0]))
    start = uniform(mesh) * (1 + 1e-6 * cosine)
    states = [s for s in march(AttentionFlow(mesh, head), State(0.0, start), [0.0, 2.0]) if s.saved is not None]
    rate = np.log((states[1].density @ cosine) / (states[0].density @ cosine)) / 2.0
    assert rate == pytest.approx(4 * iv(2, 5.0) / (5.0 * iv(0, 5.0)), rel=1e-3)


def test_mass_is_kept_over_many_steps():
    """P17 in small (the case ``mass drift`` of ``tokensphere validate --level full`` takes 1e5 steps)."""
    last = final(Given(CIRCLE, lambda density, _: turning(CIRCLE), steady=True), START, [150.0])
    assert last.substeps > 3000
    assert abs(last.density @ CIRCLE.areas - 1) < 1e-13
