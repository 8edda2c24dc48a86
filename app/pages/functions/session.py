"""Training on the page "Function space": a worker thread that owns the state of every method, on one clock."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from functools import partial
from typing import Callable

import numpy as np

from app.pages.functions.seen import Line, Ring, exact, look
from app.pages.functions.setup import STEPS, FunctionSetup
from app.pages.functions.stage import pack
from app.server.background import Threads
from app.server.errors import note
from app.server.streaming import Streamer
from app.stage.player import Player
from app.stage.run import MethodRun, Run
from stein_core import METHODS, Spec, State, Stepper, compile

log = logging.getLogger(__name__)

SLICE = 0.008  # seconds of training between two looks at the commands
INTERVAL = {False: 0.025, True: 0.12}  # seconds between two frames
FORCES_EVERY = 0.5  # seconds between two looks at the forces, which cost a step
MORE = 2000  # steps that a change is answered with, once training had ended
COMPILERS = Threads(2, "compile-functions")
Key = tuple[Spec, tuple[int, ...]]  # of a program: its Spec and the rows of its points


@dataclass(frozen=True)
class Snapshot:
    """What is on screen: the step, what each method says and the setup it was computed under."""

    step: int
    setup: FunctionSetup
    methods: dict[str, Line | Ring]


class FunctionRun(Run):
    """A Run whose methods may lag: one that compiles later catches up, and one that diverges stops alone."""

    together = False

    def __init__(self, setup: FunctionSetup):
        super().__init__(setup)
        self.use(setup)

    def use(self, setup: FunctionSetup) -> None:
        """Train by other settings."""
        self.setup, self.knobs = setup, setup.present()

    def start_of(self, stepper: Stepper) -> State:
        return stepper.reset(self.setup.seed, self.setup.knobs_of(stepper.spec.method))


class FunctionSession(Player):
    """A FunctionSetup in training. wake() starts it, sleep() rests it, close() ends the thread.

    Args:
        setup: what is trained.
        streamer: gets every frame, packed.
        on_news: called from the worker with a dict of news: playing, status, alarm, step, steps_per_second.
    """

    advice = "Choose a smaller learning rate, then press Train from scratch."
    patience = 0.02
    ahead = True

    def __init__(self, setup: FunctionSetup, streamer: Streamer, on_news: Callable[[dict], None]):
        super().__init__(streamer, on_news)
        self._setup = setup
        self._playing = self._dirty = True
        self._programs: dict[Key, Stepper] = {}
        self._refused: set[Key] = set()  # would not compile, and are not tried again until the page asks
        self._run = FunctionRun(setup)
        self._stop = STEPS[setup.ring]  # training pauses there
        self._speed = 20
        self._published = self._looking = 0.0  # when the last frame was made, and the seconds that it took
        self._forces: dict[str, tuple[float, tuple[float, float]]] = {}  # when they were measured, and their sizes
        self.snapshot: Snapshot | None = None

    # ---- commands

    def reset(self):
        """Go back to step 0 with the settings as they are."""
        self._put(self._reset)

    def speed(self, steps: int):
        """Take at most so many steps between two frames."""
        self._put(setattr, self, "_speed", int(steps))

    def apply(self, setup: FunctionSetup):
        """Train by other settings. A method goes on from where it is, unless tab, width or seed have changed."""
        self._put(self._apply, setup)

    @property
    def paused_at(self) -> int:
        """The step that a link says: 0 while it plays."""
        return 0 if self._playing else self._run.clock

    # ---- the worker

    def _begin(self):
        self._stop = self._setup.steps or STEPS[self._setup.ring]
        self._request()

    def _failed(self, error: Exception):
        self._pause(note(log, "functions", error))

    def _budget(self) -> tuple[float, float]:
        run = self._run
        if run.lagging:
            return SLICE, math.inf
        return SLICE, min(self._stop, run.shown + min(self._speed, max(1, run.clock // 5))) - run.clock

    def _advance(self, move: Callable[[int], list[str]], steps: int):
        super()._advance(move, steps)
        if all(own.diverged for own in self._run.live.values()):
            self._pause("Every method has diverged. Choose a smaller learning rate, then press Train from scratch.")
        elif self._playing and self._run.clock >= self._stop and not self._run.lagging:
            self._pause()

    def _due(self) -> bool:
        waited = time.monotonic() - self._published
        due = max(INTERVAL[self._setup.ring], 2 * self._looking)
        return not self._playing or self._run.shown is None or waited > due

    def _frame(self) -> np.ndarray:
        started, run, setup, found = time.perf_counter(), self._run, self._setup, {}
        for name, own in run.live.items():
            about = {"step": own.step, "diverged": own.diverged, "rate": 1 / own.seconds if own.seconds else 0.0}
            found[name] = look(own.spec, own.state.particles, setup, name, forces=self._sizes(own), **about)
        self.snapshot = Snapshot(run.clock, setup, found)
        packed = pack(run.clock, found, None if setup.ring else exact(*setup.posterior()))
        self._published, self._looking = time.monotonic(), time.perf_counter() - started
        return packed

    def _sizes(self, own: MethodRun) -> tuple[float, float]:
        """Return the mean length of both forces on a particle, at most half a second old."""
        name, now = own.spec.method, time.monotonic()
        then, sizes = self._forces.get(name, (-math.inf, (math.nan, math.nan)))
        if now - then > FORCES_EVERY:
            frame = own.stepper.look(own.state, self._run.knobs_of(own), False)
            sizes = tuple(float(np.linalg.norm(f, axis=1).mean()) for f in (frame.attract, frame.repulse))
            self._forces[name] = time.monotonic(), sizes
        return sizes

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

    def _reset(self):
        self._run, self._stop, self._dirty = FunctionRun(self._setup), STEPS[self._setup.ring], True
        self._forces, self.snapshot = {}, None
        self._restart_rate()
        self._notify({"alarm": ""})
        self._retry()

    def _apply(self, setup: FunctionSetup):
        old, self._setup = self._setup, setup
        self._dirty, ended = True, self._run.clock >= self._stop
        if (setup.ring, setup.width, setup.seed) != (old.ring, old.width, old.seed):
            self._reset()
            if ended:
                self._play(True)
            return
        self._run.use(setup)
        if setup.present() != old.present() and not self._playing and ended:
            self._stop = self._run.clock + MORE  # curves answer although training had ended
            self._play(True)
        self._retry()

    def _sleep(self, on: bool):
        super()._sleep(on)
        self._request()

    # ---- compiling: one program after the other, so that something moves sooner

    def _retry(self):
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
                self._submit(COMPILERS, self._ticket, partial(self._compile, missing[0], self._setup))
        labels = ", ".join(METHODS[name].label for name in missing)
        self._notify({"status": f"compiling {labels} …" if missing else ""})

    def _keys(self) -> dict[str, Key]:
        """Return the program that each method of the setup needs, what compiles quickly first."""
        setup = self._setup
        return {
            name: (setup.spec(name), setup.rows)
            for name in sorted(setup.methods, key=lambda m: METHODS[m].facts.interacts + METHODS[m].facts.functions)
        }

    def _compile(self, method: str, setup: FunctionSetup, deliver: Callable[..., None]):
        """On a compiler thread: everything that the worker will call, so that it never waits for a compile."""
        try:
            knobs, spec = setup.knobs_of(method), setup.spec(method)
            stepper = compile(spec, measure=False)
            state = stepper.advance(stepper.reset(setup.seed, knobs), knobs, 0)
            stepper.look(state, knobs, False)
            look(spec, state.particles, setup, method, step=0, diverged=False, rate=0.0, forces=(0.0, 0.0))
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
