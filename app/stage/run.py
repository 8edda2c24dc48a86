"""A run: some methods on one clock, with their history. Bookkeeping only: no thread, no widget."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Mapping, NamedTuple, Sequence

import jax
import numpy as np

from stein_core import METHODS, Frame, Spec, State, Stepper
from stein_core.contract.common_knobs import COMMON
from stein_core.contract.recipe import EDITS, Knobs
from stein_core.runs.assembly import Measure

HISTORY_BYTES = 64e6
HISTORY_FRAMES = 600
FADE = 0.8  # of the weight that a time measured keeps at the next one
DEFAULTS = {knob.name: knob.default for knob in COMMON}


class HistoryEntry(NamedTuple):
    """What it takes to go on from a frame of the past. changes: how many entries of `Run.changes` had happened."""

    clock: int
    states: dict[str, State]
    knobs: dict[str, Any]
    changes: int


@dataclass
class MethodRun:
    """One method of a run. stepper: its program; None while it has none. knobs: those of the run that it has, checked.
    diverged: it takes no step any more. spent, taken: recent seconds and steps. looked: seconds of the last look that
    measured nothing, which takes a step for its forces."""

    spec: Spec
    stepper: Stepper | None
    knobs: Knobs
    state: State
    step: int
    spent: float = 0.0
    taken: float = 0.0
    diverged: bool = False
    looked: float = 0.0

    @property
    def seconds(self) -> float:
        """Of one step; 0 before the first."""
        return self.spent / self.taken if self.taken else 0.0

    def put(self, state: State) -> None:
        """Go on from this state."""
        self.state, self.step = state, int(state.step)

    def look(self, measure: Measure) -> Frame:
        """Return the frame of this moment."""
        began = time.perf_counter()
        frame = self.stepper.look(self.state, self.knobs, measure)
        if not measure:
            self.looked = time.perf_counter() - began
        return frame

    def advance(self, goal: int) -> None:
        """Take the steps up to `goal`; fewer when it diverges."""
        started, before = time.perf_counter(), self.step
        self.put(self.stepper.advance(self.state, self.knobs, goal - before))
        self.spent = FADE * self.spent + time.perf_counter() - started
        self.taken = FADE * self.taken + self.step - before


class Run:
    """Methods of one setup, their states, and what was changed on the way.

    setup: a `steinlab.stage.contract.LiveSetup`. methods: by method. knobs: present values over all methods. changes:
    (step, name, value) since the start. pending: changes still to come from a link. history, position: the run so far
    and the entry that is shown. shown: the step of the newest frame; None before the first. given: states by method at
    the first step of `clock`, if that is not 0.
    """

    together = True  # all methods stop where one diverges; else the rest goes on

    def __init__(self, setup: Any, steppers: Sequence[Stepper] = (), clock: int = 0, given: Mapping[str, State] = {}):
        self.setup = setup
        self.knobs = dict(setup.knobs)
        self.given = given
        self.changes: list[tuple] = []
        self.pending = list(setup.changes)
        self.clock, self.shown = clock, None
        self.methods: dict[str, MethodRun] = {}
        self.frames: list[Frame] = []
        self.history: list[HistoryEntry] = []
        self.position = 0
        self.grabbed: tuple[HistoryEntry, list[tuple]] | None = None
        self.install(steppers)

    @property
    def live(self) -> dict[str, MethodRun]:
        """The methods that have a program, in the order of the setup."""
        return {
            name: self.methods[name]
            for name in self.setup.methods
            if name in self.methods and self.methods[name].stepper
        }

    @property
    def lagging(self) -> dict[str, MethodRun]:
        """The methods behind the clock, since they came or were compiled later."""
        return {name: own for name, own in self.live.items() if own.step < self.clock and not own.diverged}

    @property
    def steppers(self) -> list[Stepper]:
        return [own.stepper for own in self.live.values()]

    @property
    def seconds(self) -> float:
        """Of one step of all methods that move next; 0 before the first."""
        return sum(own.seconds for own in (self.lagging or self.live).values())

    @property
    def capacity(self) -> int:
        """Most particles the compiled programs hold."""
        return max(stepper.spec.capacity for stepper in self.steppers)

    @property
    def count(self) -> int:
        """Number of particles of the methods that have more than one."""
        return count_of(self.knobs)

    def install(self, steppers: Sequence[Stepper]) -> None:
        """Give methods their programs. A method that had one of another capacity keeps its particles."""
        for stepper in steppers:
            spec, own = stepper.spec, self.methods.get(stepper.spec.method)
            if own is None or own.spec != spec:
                state = self.start_of(stepper)
                state = resize(own.state, state) if own else state
                knobs = known_to(spec, self.knobs)
                self.methods[spec.method] = MethodRun(spec, stepper, knobs, state, int(state.step))
            else:
                own.stepper, own.knobs = stepper, known_to(spec, self.knobs)

    def start_of(self, stepper: Stepper) -> State:
        """The state in which a method begins."""
        if stepper.spec.method in self.given:
            return self.given[stepper.spec.method]
        knobs = dict(self.setup.knobs)
        if count_of(knobs) > stepper.spec.capacity > 1:  # a smaller program goes on with fewer
            knobs["method.particles"] = stepper.spec.capacity
        return stepper.reset(self.setup.seed, known_to(stepper.spec, knobs))

    def advance(self, steps: int) -> list[str]:
        """Take up to `steps` steps; a pending change may come first. Return the methods that diverged."""
        self._forget_later()
        self._apply_pending()
        if self.pending:
            steps = min(steps, self.pending[0][0] - self.clock)
        moving = {name: own for name, own in self.live.items() if own.step == self.clock and not own.diverged}
        diverged = self._move(moving, self.clock + steps, steps)
        self.clock = min((own.step for own in moving.values() if not own.diverged), default=self.clock)
        self._apply_pending()
        return diverged

    def catch_up(self, steps: int) -> list[str]:
        """Take up to `steps` steps of the methods that lag, at most to the clock. Return those that diverged."""
        return self._move(self.lagging, self.clock, steps)

    def look(self, measure: Measure = True) -> list[Frame]:
        """Return the frames of this moment, with the diagnostics of `measure`, and enter it into the history."""
        self.frames = [own.look(measure) for own in self.live.values()]
        entry = self._entry()
        if not self.history:
            self.history = [entry]
        elif self.position == len(self.history) - 1:
            if self.history[-1].clock == self.clock:
                self.history[-1] = entry
            else:
                self.history.append(entry)
                self._thin()
            self.position = len(self.history) - 1
        return self.frames

    def change(self, name: str, value: Any) -> None:
        """Turn a knob, "add" a particle at a point, "remove" or "move" one, now. It is recorded, so that the run can be
        repeated. Raises ValueError, and changes nothing, for a value that does not fit the rest."""
        checked = None if name in EDITS else self._checked({**self.knobs, name: value})
        self._forget_later()
        self.pending = []
        self._apply(name, value, checked)

    def needs(self, position: int) -> int:
        """Return how many particles an entry of the history has; 0 if there is none."""
        return count_of(self.history[position].knobs) if 0 <= position < len(self.history) else 0

    def rewind(self, position: int) -> None:
        """Go back (or forward) to an entry of the history. Only the particle count of its knobs comes back."""
        if not self.history:
            return
        self.position = min(max(position, 0), len(self.history) - 1)
        entry = self.history[self.position]
        self.clock = entry.clock
        self._take({**self.knobs, "method.particles": count_of(entry.knobs)})
        for name, own in self.live.items():
            own.put(resize(entry.states[name], self.start_of(own.stepper)))

    def grab(self) -> None:
        """Remember this moment: a drag begins."""
        self._forget_later()
        self.grabbed = self._entry(), list(self.changes)

    def let_go(self) -> None:
        """Go back to the moment of the last `grab`: what came since never happened."""
        if self.grabbed is None:
            return
        entry, self.changes = self.grabbed
        earlier = [one for one in self.history if one.clock < entry.clock]
        self.history, self.grabbed = [*earlier, entry, entry], None
        self.rewind(len(earlier))
        self._forget_later()

    def present(self) -> Any:
        """Return the setup that repeats what is shown, and then goes on as a link said."""
        return replace(self.setup, changes=(*self._changes_here(), *self.pending), steps=self.clock)

    def _checked(self, knobs: Mapping[str, Any]) -> dict[str, Knobs]:
        """Return the knobs of each method, checked."""
        return {name: known_to(own.spec, knobs) for name, own in self.live.items()}

    def _take(self, knobs: dict[str, Any], checked: dict[str, Knobs] | None = None) -> None:
        """Make these the present knobs."""
        for name, each in (checked or self._checked(knobs)).items():
            self.methods[name].knobs = each
        self.knobs = knobs

    def _move(self, methods: Mapping[str, MethodRun], goal: int, steps: int) -> list[str]:
        """Up to `steps` steps of these methods towards `goal`; those that diverged."""
        before, diverged = {name: own.state for name, own in methods.items()}, []
        for name, own in methods.items():
            end = min(goal, own.step + steps)
            own.advance(end)
            if own.step < end:
                diverged.append(name)
                own.diverged = not self.together
        if diverged and self.together:
            last = min(own.step for own in methods.values())
            diverged = [name for name in diverged if methods[name].step == last]
            for name, own in methods.items():
                if own.step > last:
                    own.put(before[name])
                    own.advance(last)
        return diverged

    def _states(self) -> dict[str, State]:
        return {name: own.state for name, own in self.live.items()}

    def _entry(self) -> HistoryEntry:
        return HistoryEntry(self.clock, self._states(), dict(self.knobs), len(self.changes))

    def _apply_pending(self) -> None:
        """The pending changes whose step has come."""
        while self.pending and self.pending[0][0] <= self.clock:
            self._apply(*self.pending.pop(0)[1:])

    def _apply(self, name: str, value: Any, checked: dict[str, Knobs] | None = None) -> None:
        if name in EDITS and not self._has_room(name, value):
            return
        if name in EDITS:
            for own in self.live.values():
                own.put(own.stepper.change(own.state, own.knobs, name, value)[0])
            if more := {"add": 1, "remove": -1, "move": 0}[name]:
                self._take({**self.knobs, "method.particles": self.count + more})
            elif self.changes and self.changes[-1][:2] == (self.clock, name) and self.changes[-1][2][0] == value[0]:
                self.changes.pop()  # the same moment of the same particle: one move
        else:
            self._take({**self.knobs, name: value}, checked)
            if self.clock == 0 and not self.changes:
                self.setup = replace(self.setup, knobs=self.knobs)
                return
            if self.changes and self.changes[-1][:2] == (self.clock, name):
                self.changes.pop()
        self.changes.append((self.clock, name, value))

    def _has_room(self, name: str, value: Any) -> bool:
        """Whether there is something that this edit adds to, takes or moves."""
        if all(METHODS[method].facts.sampler for method in self.live):
            return False
        if name == "move":
            return value[0] < (self.count if self.capacity > 1 else 1)
        return self.capacity > 1 and (name == "add" or 1 < self.count > value)

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
        entry = self.history[self.position]
        known = {name: knob.default for own in self.live.values() for name, knob in own.spec.knobs().items()}
        turned = [(self.clock, k, v) for k, v in self.knobs.items() if entry.knobs.get(k, known.get(k)) != v]
        return [*self.changes[: entry.changes], *turned]

    def _thin(self) -> None:
        """Every other entry goes once there are too many: the whole run stays in reach, at a coarser grain."""
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(self._states()))
        if len(self.history) > max(8, min(HISTORY_FRAMES, HISTORY_BYTES / size)):
            self.history = [*self.history[:-1:2], self.history[-1]]


def known_to(spec: Spec, knobs: Mapping[str, Any]) -> Knobs:
    """Return the knobs that a spec has."""
    known = spec.knobs()
    return Knobs(spec, {name: value for name, value in knobs.items() if name in known})


def count_of(knobs: Mapping[str, Any]) -> int:
    """The particle count that these knobs ask for."""
    return knobs.get("method.particles", DEFAULTS["method.particles"])


def resize(state: State, spare: State) -> State:
    """Return `state` in the shapes of `spare`, whose rows stand in for those that `state` has not."""

    def fit(old, new):
        if np.shape(old) == np.shape(new):
            return old
        new, kept = np.array(new), tuple(map(slice, np.minimum(np.shape(old), np.shape(new))))
        new[kept] = np.asarray(old)[kept]
        return new

    return jax.tree.map(fit, state, spare)
