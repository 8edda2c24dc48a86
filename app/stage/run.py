"""A run: one to three methods on one clock, with its history. Bookkeeping only: no thread, no widget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping, NamedTuple

import jax
import numpy as np

from app.stage.setup import Setup, all_knobs
from stein_core import Frame, State, Stepper
from stein_core.recipe import EDITS, check_knobs

HISTORY_BYTES = 64e6
HISTORY_FRAMES = 600


class Past(NamedTuple):
    """One entry of the history: what it takes to go on from there."""

    clock: int
    states: list[State]
    knobs: dict[str, Any]
    changes: int  # how many entries of `changes` had happened


class Run:
    """Steppers of one Setup, their states, and what was changed on the way.

    knobs: the present values over all panels. changes: (step, name, value) since the start. pending: changes still to
    come from a link. history, position: the run so far and the entry that is shown.
    """

    def __init__(self, setup: Setup, steppers: list[Stepper]):
        self.setup, self.steppers = setup, steppers
        self._known = [set(stepper.spec.knobs()) for stepper in steppers]  # asked for at every frame
        self.knobs = dict(setup.knobs)
        self.changes: list[tuple] = []
        self.pending = list(setup.changes)
        self.clock = 0
        self.states = self._spare()
        self.frames: list[Frame] = []
        self.history: list[Past] = []
        self.position = 0

    @property
    def capacity(self) -> int:
        """Most particles the compiled programs hold."""
        return max(stepper.spec.capacity for stepper in self.steppers)

    @property
    def count(self) -> int:
        """Number of particles of the methods that have more than one."""
        return count_of(self.knobs)

    def advance(self, steps: int) -> Stepper | None:
        """Up to `steps` steps on (a pending change may come first); the stepper that diverged, if one did."""
        self._forget_later()
        self._catch_up()
        if self.pending:
            steps = min(steps, self.pending[0][0] - self.clock)
        before, goal = self.states, self.clock + steps
        self.states = self._advanced(before, steps)
        reached = [int(state.step) for state in self.states]
        if min(reached) < goal:  # the others stop where the first one had to
            self.states = self._advanced(before, min(reached) - self.clock)
        self.clock = min(reached)
        self._catch_up()
        return None if self.clock == goal else self.steppers[reached.index(self.clock)]

    def look(self, measure: bool = True) -> list[Frame]:
        """The frames of this moment, which also enters the history; without `measure` they have no metrics."""
        each = zip(self.steppers, self.states, self._knobs())
        self.frames = [stepper.look(state, knobs, measure) for stepper, state, knobs in each]
        past = Past(self.clock, self.states, dict(self.knobs), len(self.changes))
        if not self.history:
            self.history = [past]
        elif self.position == len(self.history) - 1:
            if self.history[-1].clock == self.clock:
                self.history[-1] = past
            else:
                self.history.append(past)
                self._thin()
            self.position = len(self.history) - 1
        return self.frames

    def change(self, name: str, value: Any) -> None:
        """Turn a knob, "add" a particle at a point or "remove" one, now; recorded, so that the run can be repeated.
        Raises ValueError, and changes nothing, for a value that does not fit the others."""
        if name not in EDITS:
            for stepper, knobs in zip(self.steppers, self._knobs({**self.knobs, name: value})):
                check_knobs(stepper.spec, knobs)
        self._forget_later()
        self.pending = []
        self._apply(name, value)

    def rewind(self, position: int) -> None:
        """Back (or forward) to an entry of the history. Knobs stay as they are, but for the particle count."""
        if not self.history:
            return
        self.position = min(max(position, 0), len(self.history) - 1)
        past = self.history[self.position]
        self.clock = past.clock
        self.knobs = {**self.knobs, "method.particles": count_of(past.knobs)}
        self.states = [padded(state, spare) for state, spare in zip(past.states, self._spare())]

    def grow(self, steppers: list[Stepper]) -> None:
        """Go on with the same programs of a larger capacity."""
        self.steppers = steppers
        self.states = [padded(state, spare) for state, spare in zip(self.states, self._spare())]

    def present(self) -> Setup:
        """The Setup that repeats what is shown, and then goes on as a link said."""
        return replace(self.setup, changes=(*self._changes_here(), *self.pending), steps=self.clock)

    def _advanced(self, states: list[State], steps: int) -> list[State]:
        return [s.advance(state, knobs, steps) for s, state, knobs in zip(self.steppers, states, self._knobs())]

    def _catch_up(self) -> None:
        """The pending changes whose step has come."""
        while self.pending and self.pending[0][0] <= self.clock:
            self._apply(*self.pending.pop(0)[1:])

    def _apply(self, name: str, value: Any) -> None:
        if name in EDITS and self.capacity == 1 or name == "remove" and not (value < self.count and self.count > 1):
            return  # nothing to add to, or to take from
        each = zip(self.steppers, self.states, self._knobs())
        results = [stepper.change(state, knobs, name, value) for stepper, state, knobs in each]
        self.states = [state for state, _ in results]
        if name in EDITS:
            self.knobs = {**self.knobs, "method.particles": self.count + (1 if name == "add" else -1)}
        else:
            self.knobs = {**self.knobs, name: value}
            if self.clock == 0 and not self.changes:
                self.setup = replace(self.setup, knobs=self.knobs)
                return
            if self.changes and self.changes[-1][:2] == (self.clock, name):
                self.changes.pop()
        self.changes.append((self.clock, name, value))

    def _forget_later(self) -> None:
        """Going on from a frame of the past: what came after it never happened."""
        if self.position >= len(self.history) - 1:
            return
        self.changes = self._changes_here()
        del self.history[self.position + 1 :]
        self.pending = []

    def _changes_here(self) -> list[tuple]:
        """The changes up to the entry that is shown; knobs that were turned later keep their present value."""
        if self.position >= len(self.history) - 1:
            return self.changes
        past = self.history[self.position]
        turned = [(self.clock, k, v) for k, v in self.knobs.items() if past.knobs.get(k, all_knobs()[k].default) != v]
        return [*self.changes[: past.changes], *turned]

    def _thin(self) -> None:
        """Every other entry goes once there are too many: the whole run stays in reach, at a coarser grain."""
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(self.states))
        if len(self.history) > max(8, min(HISTORY_FRAMES, HISTORY_BYTES / size)):
            self.history = [*self.history[:-1:2], self.history[-1]]

    def _spare(self) -> list[State]:
        return [s.reset(self.setup.seed, knobs) for s, knobs in zip(self.steppers, self._knobs(self.setup.knobs))]

    def _knobs(self, knobs: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Of `knobs`, or the present ones, those that each method has."""
        knobs = self.knobs if knobs is None else knobs
        return [{name: value for name, value in knobs.items() if name in known} for known in self._known]


def count_of(knobs: Mapping[str, Any]) -> int:
    """The particle count that these knobs ask for."""
    return knobs.get("method.particles", all_knobs()["method.particles"].default)


def padded(small: State, spare: State) -> State:
    """`small` in the capacity of `spare`, whose rows stand in for those that `small` has not."""

    def grow(old, new):
        if np.shape(old) == np.shape(new):
            return old
        new = np.array(new)
        new[tuple(slice(size) for size in np.shape(old))] = old
        return new

    return jax.tree.map(grow, small, spare)
