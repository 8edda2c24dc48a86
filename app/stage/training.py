"""What the sessions that train networks share: programs one after the other, a step at which training pauses."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from stein_core import Spec, State, Stepper
from steinlab.server.background import Threads
from steinlab.server.errors import note
from steinlab.server.streaming import Streamer
from steinlab.stage.parts import Part, joined
from steinlab.stage.player import Player
from steinlab.stage.run import MethodRun, Run
from steinlab.stage.trained import Trained
from steinlab.stage.waits import timed, waiting_for

log = logging.getLogger(__name__)

LONGEST_REST = 0.2  # seconds that a session which lets another go first rests at once

Key = tuple[Spec, Hashable]  # of a program: its Spec and the rows of its data


@dataclass(frozen=True)
class Snapshot:
    """What is on screen: the step, what each method says and the setup it was computed under.

    particles: (m, p) of each method, those of spare rows included.
    """

    step: int
    setup: Any
    methods: dict[str, Any]
    particles: Mapping[str, Any] = field(default_factory=dict)


class TrainingRun(Run):
    """A Run whose methods may lag: one that compiles later catches up, and one that diverges stops alone."""

    together = False

    def __init__(self, setup, clock: int = 0):
        super().__init__(setup, clock=clock)
        self.use(setup)

    def use(self, setup) -> None:
        """Train by other settings."""
        self.setup, self.knobs = setup, setup.present()

    def start_of(self, stepper: Stepper) -> State:
        return stepper.reset(self.setup.seed, self.setup.knobs_of(stepper.spec.method))


class ShippedRun(TrainingRun):
    """A TrainingRun of a page that ships its default run: a method that ships begins at the last step.

    Attributes:
        shipped: of the class, since all sessions share it and a page that ends empties its own objects.
    """

    shipped: ClassVar[Trained]

    def start_of(self, stepper: Stepper) -> State:
        method, shipped = stepper.spec.method, self.shipped
        there = method not in self.methods and self.clock >= shipped.steps and method in shipped.plain.methods
        if there and shipped.is_shipped(self.setup):
            return shipped.state(stepper, method)
        return super().start_of(stepper)


class Training(Player):
    """A setup in training. wake() starts it, sleep() rests it, close() ends the thread.

    A subclass gives `_new_run`, `_end`, `_most`, `_interval`, `_seen`, `_parts`, `_effort`, `prepared`,
    `_is_another` and `_asks`, and may have another `_first_step`.

    Args:
        setup: what is trained: methods, steps, rows, spec(method) and what the run reads.
        streamer: gets every frame, packed.
        on_news: called from the worker with a dict of news: playing, status, alarm, step, steps_per_second.
        row: of the stage.
        first: another session, which goes first: while that one trains, this one rests half of the time.
    """

    advice = "Choose a smaller learning rate, then press Train from scratch."
    patience = 0.02
    ahead = True
    compilers: Threads
    slice = 0.05  # seconds of training between two looks at the commands
    more = 3000  # steps that a change is answered with, once training had ended
    first_speed = 20  # steps between two frames, at most, until the page says another number

    def __init__(
        self,
        setup,
        streamer: Streamer,
        on_news: Callable[[dict], None],
        row: int = 0,
        first: Training | None = None,
    ):
        super().__init__(streamer, on_news)
        self._setup, self._row, self._first = setup, row, first
        self._playing = self._dirty = True
        self._programs: dict[Key, Stepper] = {}
        self._refused: set[Key] = set()  # would not compile, and are not tried again until the page asks
        self._run = self._new_run(0)
        self._stop, self._speed = self._end(), self.first_speed  # training pauses at `_stop`
        self._published = self._looking = 0.0  # when the last frame was made, and the seconds that it took
        self.snapshot: Snapshot | None = None

    # ---- what a subclass says

    def _new_run(self, step: int) -> Run:
        """Return a run of the setup from this step on."""
        return TrainingRun(self._setup, step)

    def _end(self) -> int:
        """Return the step at which training pauses."""
        raise NotImplementedError

    def _known(self) -> dict[str, Any]:
        """Return what is to be seen of a run that has just begun, before any program is compiled; {} if nothing is."""
        return {}

    def _first_step(self) -> int:
        """Return the step at which the setup begins."""
        return 0

    def _most(self) -> int:
        """Return the most steps to the next frame, whatever the page allows."""
        raise NotImplementedError

    def _interval(self) -> float:
        """Return the least seconds between two frames."""
        raise NotImplementedError

    def _seen(self, own: MethodRun) -> Any:
        """Return what is to be seen of a method."""
        raise NotImplementedError

    def _parts(self, seen: dict[str, Any]) -> list[Part]:
        """Return the parts of the frame of what is seen of every method."""
        raise NotImplementedError

    def _effort(self, method: str) -> Any:
        """Return a key that sorts what compiles quickly first."""
        raise NotImplementedError

    @staticmethod
    def prepared(spec: Spec, setup, method: str) -> Stepper:
        """Compile all that the worker will call, so that it never waits. On a compiler thread."""
        raise NotImplementedError

    def _is_another(self, old, new) -> bool:
        """Whether another setup starts from scratch."""
        raise NotImplementedError

    def _asks(self, old, new) -> bool:
        """Whether another setup is answered by some more steps, if training had ended."""
        raise NotImplementedError

    # ---- commands

    def reset(self):
        """Go back to step 0 with the settings as they are."""
        self._put(self._reset)

    def speed(self, steps: int):
        """Take at most so many steps between two frames."""
        self._put(setattr, self, "_speed", int(steps))

    def apply(self, setup):
        """Train by other settings. A method goes on from where it is, unless `_is_another` says no."""
        self._put(self._apply, setup)

    @property
    def training(self) -> bool:
        """Whether it computes."""
        return self._awake and self._playing and not self._closed

    @property
    def paused_at(self) -> int:
        """The step that a link says: 0 while it plays."""
        return 0 if self._playing else self._run.clock

    # ---- the worker

    def _begin(self):
        self._run = self._new_run(self._first_step())
        self._stop = self._setup.steps or self._end()
        if self._run.clock >= self._stop:
            self._pause()
        self._show_known()
        self._request()

    def _show_known(self):
        """Draw what is known of a run before its programs are compiled."""
        if known := self._known():
            self.snapshot = Snapshot(self._run.clock, self._setup, known)
            self._streamer.publish(joined(self._parts(known)))

    def _failed(self, error: Exception):
        self._pause(note(log, type(self).__name__, error))

    def _budget(self) -> tuple[float, float]:
        run = self._run
        if run.lagging:
            return self.slice, math.inf
        return self.slice, min(self._stop, run.shown + min(self._speed, self._most())) - run.clock

    def _advance(self, move: Callable[[int], list[str]], steps: int):
        started = time.monotonic()
        super()._advance(move, steps)
        if self._first and self._first.training:
            time.sleep(min(time.monotonic() - started, LONGEST_REST))
        if all(own.diverged for own in self._run.live.values()):
            self._pause(f"Every method has diverged. {self.advice}")
        elif self._playing and self._run.clock >= self._stop and not self._run.lagging:
            self._pause()

    def _due(self) -> bool:
        waited = time.monotonic() - self._published
        return not self._playing or self._run.shown is None or waited > max(self._interval(), 2 * self._looking)

    def _frame(self) -> np.ndarray:
        started, run = time.perf_counter(), self._run
        known = self._known() if len(run.live) < len(self._setup.methods) else {}
        live = {name: self._seen(own) for name, own in run.live.items()}
        seen = {name: (known | live)[name] for name in self._setup.methods if name in {*known, *live}}
        there = {name: own.state.particles for name, own in run.live.items()}
        self.snapshot = Snapshot(run.clock, self._setup, seen, there)
        packed = joined(self._parts(seen))
        self._published, self._looking = time.monotonic(), time.perf_counter() - started
        return packed

    # ---- what the commands do

    def _play(self, on: bool):
        if on and self._run.clock >= self._stop:
            self._stop = 2**31 - 1  # the user wants more than the paper
        super()._play(on)
        if on:
            self._retry()

    def _one_step(self):
        self._stop = max(self._stop, self._run.clock + 1)
        super()._one_step()

    def _reset(self, step: int = 0):
        self._run, self._stop, self._dirty = self._new_run(step), self._end(), True
        self._restart_rate()
        self._notify({"alarm": ""})
        self._retry()
        if not self._run.live:  # the old one's numbers are another network's
            self.snapshot = None
        self._show_known()

    def _apply(self, setup):
        old, self._setup = self._setup, setup
        self._dirty, ended = True, self._run.clock >= self._stop
        if self._is_another(old, setup):
            self._reset(self._first_step())
            if self._run.clock >= self._stop:
                self._pause()
            elif ended:  # training had ended, not been stopped
                self._play(True)
        else:
            self._run.use(setup)
            if self._asks(old, setup) and not self._playing and ended:
                self._stop = self._run.clock + self.more  # the picture answers although training had ended
                self._play(True)
        self._retry()

    def _sleep(self, on: bool):
        super()._sleep(on)
        self._request()

    # ---- a recording, on the calling thread

    @property
    def end(self) -> int:
        """The step at which training pauses."""
        return self._end()

    def begin_here(self) -> None:
        """Compile every program, and go to the start."""
        setup = self._setup
        self._run = self._new_run(0)
        self._run.install([self.prepared(setup.spec(name), setup, name) for name in setup.methods])

    def look_at(self, step: int) -> list[Part]:
        """Train up to a step, and return the parts of its frame."""
        run = self._run
        while run.clock < step and len(self.diverged) < len(run.live):
            run.advance(step - run.clock)
        return self._parts({name: self._seen(own) for name, own in run.live.items()})

    @property
    def diverged(self) -> dict[str, int]:
        """The methods that have diverged, with the last step of each."""
        return {name: own.step for name, own in self._run.methods.items() if own.diverged}

    # ---- compiling: one program after the other, so that something moves sooner

    def _retry(self):
        """Try what was refused again, since the page asks for something."""
        self._refused.clear()
        self._request()

    def _request(self):
        """Let those that have a program train, and have the next one compiled that the setup needs."""
        keys = self._keys()
        self._programs = {key: program for key, program in self._programs.items() if key in keys.values()}
        for name, own in self._run.methods.items():
            if keys.get(name) not in self._programs:
                own.stepper = None
        self._run.install([self._programs[key] for key in keys.values() if key in self._programs])
        missing = [name for name, key in keys.items() if key not in {*self._programs, *self._refused}]
        if self._ticket not in [keys[name] for name in missing]:  # what it compiles may not be wanted any more
            self._ticket = None
            if missing and self._awake:
                self._ticket = keys[missing[0]]
                self._submit(self.compilers, self._ticket, partial(self._compile, missing[0], self._setup))
        self._notify({"status": waiting_for(missing)})

    def _keys(self) -> dict[str, Key]:
        """Return the program that each method of the setup needs, what compiles quickly first."""
        setup = self._setup
        return {name: (setup.spec(name), setup.rows) for name in sorted(setup.methods, key=self._effort)}

    def _compile(self, method: str, setup, deliver: Callable[..., None]):
        try:
            with timed(method):
                stepper = self.prepared(setup.spec(method), setup, method)
        except Exception as error:
            deliver(self._compiled, None, note(log, "compile", error))
        else:
            deliver(self._compiled, stepper, "")

    def _compiled(self, stepper: Stepper | None, problem: str):
        key, self._ticket = self._ticket, None
        if stepper:
            self._programs[key] = stepper
        else:
            self._refused.add(key)
            self._notify({"alarm": problem})
            if self._refused.issuperset(self._keys().values()):  # else the rest trains
                self._pause()
        self._dirty = True
        self._request()
