"""The march: a generator of states, resumable from any of them.

The attention field is smooth in time, so it is not evaluated at every transport step. A *macro step* of length H
carries the density through several Heun steps with speeds extrapolated by the cubic through the last four evaluated
fields; then the field is evaluated at the end, and the difference from its extrapolation, relative to the largest
speed, is the error that accepts the step and chooses the next H. At the start, and where H would be shorter than one
transport step, both stages evaluate the field.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.errors import StalledStepError
from tokensphere.pde.flux import largest_step, outflow, step_within
from tokensphere.pde.guards import check_density, check_finite, fastest_cell, masses
from tokensphere.pde.state import Field as Field
from tokensphere.pde.state import Flow as Flow
from tokensphere.pde.state import State as State
from tokensphere.pde.stepping import heun
from tokensphere.pde.transport_kernels import weighted_sum

HISTORY = 4
LONGEST_MACRO = 16
EXACT_SHARE = 20.0
# The outflow bound is approached from below, so that a velocity that grows within the step seldom breaks it.
COURANT = 0.95


@dataclass(frozen=True)
class _Trial:
    """A macro step about to be tried: ``parts`` transport steps of equal length, with exact or extrapolated stages."""

    length: float
    parts: int
    exact: bool
    ends_at_save: bool
    time: float


class _TooFastError(Exception):
    """A stage's own speeds break the outflow bound; carries the largest step they allow."""

    def __init__(self, allowed: float) -> None:
        super().__init__(allowed)
        self.allowed = allowed


def march(
    flow: Flow, state: State, save_at: ArrayLike, *, tolerance: float | None = None
) -> Iterator[State]:
    """Advance a density through the save times, yielding a State after every accepted macro step.

    A state without history is a beginning: it is yielded itself first, with its field. Each save time is met exactly
    once and exactly; the last state is the last save time.

    Args:
        flow: mesh and field.
        state: where to start; any state that a march has yielded continues bitwise.
        save_at: (saves,) strictly increasing times, none before ``state.time``.
        tolerance: error allowed in an extrapolated velocity, relative to the largest speed; h²/6 when left out, so
            that it falls with the error in space.

    Raises:
        InputError: for save times that are not finite, not increasing or already past.
        NonFiniteError, NegativeDensityError, MassDefectError, StalledStepError: with time, step and cell; the last
            yielded state is good.
    """
    saves = checked_saves(save_at, state)
    tolerance = velocity_tolerance(flow.mesh) if tolerance is None else tolerance
    if not len(state.history_times):
        state = _begun(flow, state, saves)
        yield state
    while state.save_index < len(saves):
        state = _advance(flow, state, saves, tolerance)
        yield state


def velocity_tolerance(mesh: Mesh) -> float:
    """The default tolerance h²/6."""
    return mesh.width**2 / 6


def checked_saves(save_at: ArrayLike, state: State) -> Floats:
    """Save times as floats, or an InputError: they must be finite, increasing and not before the state's own."""
    saves = np.atleast_1d(np.asarray(save_at, dtype=np.float64))
    if saves.ndim != 1 or not len(saves) or not np.isfinite(saves).all() or (np.diff(saves) <= 0).any():
        raise InputError("the save times must be a list of finite numbers in strictly increasing order.")
    later = saves[state.save_index :]
    if len(later) and later[0] < state.time:
        raise InputError(f"save time {later[0]:g} lies before the starting time {state.time:g}; leave it out.")
    return saves


def _begun(flow: Flow, state: State, saves: Floats) -> State:
    found = flow.field(state.density)
    check_finite(flow.mesh, found.speeds, state, "the velocity")
    hit = state.save_index < len(saves) and saves[state.save_index] == state.time
    return replace(
        state,
        masses=masses(flow.mesh, state.density),
        history_times=np.array([state.time]),
        history_speeds=found.speeds[None],
        evaluations=state.evaluations + 1,
        notes=found.notes,
        saved=state.save_index if hit else None,
        save_index=state.save_index + hit,
    )


def _advance(flow: Flow, state: State, saves: Floats, tolerance: float) -> State:
    """One accepted macro step towards the next save time."""
    target = float(saves[state.save_index])
    transport = COURANT * largest_step(flow.mesh, state.history_speeds[0])
    while True:
        trial = _trial(state, target, transport, flow.steady)
        if trial.length <= 1e-13 * max(1.0, abs(target)) and not trial.ends_at_save:
            raise StalledStepError(
                f"the step has shrunk to {trial.length:.3g}",
                time=state.time,
                step=state.step + 1,
                **fastest_cell(flow.mesh, state),
            )
        try:
            density, predicted = _substeps(flow, state, trial)
        except _TooFastError as failure:
            transport = min(COURANT * failure.allowed, transport / 1.1)
            state = replace(state, rejected=state.rejected + 1)
            continue
        check_density(flow.mesh, density, state, trial.time)
        if flow.steady:
            return _accepted(state, trial, density, Field(state.history_speeds[0], state.notes))
        found = flow.field(density)
        check_finite(flow.mesh, found.speeds, state, "the velocity")
        state = _judged(flow, state, trial, predicted, found.speeds, tolerance)
        if state.error <= 1:
            return _accepted(state, trial, density, found)
        state = replace(state, rejected=state.rejected + 1)


def _trial(state: State, target: float, transport: float, steady: bool) -> _Trial:
    """The next macro step, in equal transport steps; no sliver is left before the target."""
    exact = not steady and (
        len(state.history_times) < HISTORY or state.macro < min(transport, state.exact_step)
    )
    longest = LONGEST_MACRO * transport
    if exact:
        longest = min(transport, state.exact_step)
    elif not steady:
        longest = min(state.macro, longest)
    remaining = target - state.time
    length = longest
    if length >= remaining:
        length = remaining
    elif 2 * length > remaining:
        length = remaining / 2
    parts = 1 if exact else max(1, int(np.ceil(length / transport * (1 - 1e-12))))
    ends_at_save = length == remaining
    return _Trial(length, parts, exact, ends_at_save, target if ends_at_save else state.time + length)


def _substeps(flow: Flow, state: State, trial: _Trial) -> tuple[Floats, Floats]:
    """The density at the end of the trial and the speeds its last stage used; _TooFastError if a stage is."""
    density, first = state.density, state.history_speeds[0]
    dt = trial.length / trial.parts
    if trial.exact:
        used: list[Floats] = [first]

        def bounded(stage: Floats) -> Floats:
            used[0] = flow.field(stage).speeds
            allowed = largest_step(flow.mesh, used[0])
            if dt > allowed:
                raise _TooFastError(allowed)
            return used[0]

        return heun(flow.mesh, density, first, bounded, dt), used[0]
    before = outflow(flow.mesh, first)
    for part in range(trial.parts):
        second = first if flow.steady else _extrapolated(state, state.time + (part + 1) * dt)
        after = before if flow.steady else outflow(flow.mesh, second)
        if dt > step_within(flow.mesh, after):
            raise _TooFastError(step_within(flow.mesh, after))
        density = heun(flow.mesh, density, first, lambda _, speeds=second: speeds, dt, (before, after))  # type: ignore[misc]
        first, before = second, after
    return density, first


def _judged(
    flow: Flow, state: State, trial: _Trial, predicted: Floats, speeds: Floats, tolerance: float
) -> State:
    """The state with the error of the trial in units of its tolerance, and the steps proposed from it.

    The error of a velocity is the largest error of its normal components relative to the largest component. An
    extrapolation is judged by its own miss, O(H^4); a step with exact stages by the difference between the field of its
    last stage and of its result, O(H^2), of which only a small part enters the density.
    """
    known = len(state.history_times)
    extrapolated = _extrapolated(state, trial.time) if trial.exact else predicted
    miss = _distance(flow, extrapolated, speeds) / tolerance
    macro = trial.length * _change(miss, known)
    if miss <= 1 and trial.length < state.macro:  # cut short by a save time, not by the field
        macro = max(macro, state.macro)
    if not trial.exact:
        return replace(state, error=miss, macro=macro, evaluations=state.evaluations + 1)
    error = _distance(flow, predicted, speeds) / (EXACT_SHARE * tolerance)
    exact_step = trial.length * _change(error, 2)
    return replace(state, error=error, macro=macro, exact_step=exact_step, evaluations=state.evaluations + 2)


def _change(error: float, order: int) -> float:
    """The factor by which a step of this error (in units of the tolerance) should change."""
    return 2.0 if error == 0 else min(2.0, max(0.1, 0.9 * error ** (-1 / order)))


def _distance(flow: Flow, predicted: Floats, speeds: Floats) -> float:
    lengths = _lengths(flow.mesh)
    largest = float((np.abs(speeds) / lengths).max())
    return float((np.abs(predicted - speeds) / lengths).max()) / largest if largest > 0 else 0.0


@lru_cache(maxsize=4)
def _lengths(mesh: Mesh) -> Floats:
    """The length of face that every face point stands for."""
    result: Floats = np.linalg.norm(mesh.face_normals, axis=1)
    return result


def _extrapolated(state: State, time: float) -> Floats:
    """The polynomial through the evaluated speeds, at a later time (Lagrange's form)."""
    times = state.history_times
    weights = np.array(
        [np.prod((time - np.delete(times, k)) / (times[k] - np.delete(times, k))) for k in range(len(times))]
    )
    result = np.empty(state.history_speeds.shape[1:])
    weighted_sum(weights, state.history_speeds.reshape(len(times), -1), result.reshape(-1))
    return result


def _accepted(state: State, trial: _Trial, density: Floats, found: Field) -> State:
    times, speeds = np.array([trial.time]), found.speeds[None]
    if found.speeds is not state.history_speeds[0]:
        times = np.concatenate([times, state.history_times[: HISTORY - 1]])
        speeds = np.concatenate([speeds, state.history_speeds[: HISTORY - 1]])
    return replace(
        state,
        time=trial.time,
        density=density,
        step=state.step + 1,
        dt=trial.length / trial.parts,
        saved=state.save_index if trial.ends_at_save else None,
        save_index=state.save_index + trial.ends_at_save,
        history_times=times,
        history_speeds=speeds,
        substeps=state.substeps + trial.parts,
        notes=found.notes,
    )
