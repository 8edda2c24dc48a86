"""One network's training on the 1-D wave: a worker thread that owns the state of every method, on one clock."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from functools import partial
from typing import Callable

import numpy as np

from app.pages.wave.measures import Evaluation, evaluate
from app.pages.wave.run import WaveRun, first_step
from app.pages.wave.setup import STEPS, WaveSetup, effort, label_of
from app.pages.wave.stage import pack
from app.server.background import Threads
from app.server.errors import note
from app.server.streaming import Streamer
from app.stage.player import Player
from stein_core import Spec, Stepper, compile

log = logging.getLogger(__name__)

SLICE = 0.05  # seconds of training between two looks at the commands
INTERVAL = 0.12  # seconds between two frames
LONGEST_REST = 0.2  # seconds that one which lets another go first rests at once
MORE = 3000  # steps that a change of the data is answered with, once training had ended

COMPILERS = Threads(2, "compile-wave")
Key = tuple[Spec, int]  # of a program: its Spec and the rows of its data


@dataclass(frozen=True)
class Snapshot:
    """What is on screen: the step, what each method says and the setup it was computed under."""

    step: int
    setup: WaveSetup
    methods: dict[str, Evaluation]


class WaveSession(Player):
    """A WaveSetup in training. The run that ships begins at its last step. wake() starts it, sleep() rests it, close()
    ends the thread.

    Args:
        setup: what is trained.
        streamer: gets every `snapshot`, packed.
        on_news: called from the worker with a dict of news: playing, status, alarm, step, steps_per_second.
        row: of the stage.
        first: another session, which goes first: while that one trains, this one rests half of the time.
    """

    advice = "Choose a smaller learning rate, then press Train from scratch."
    patience = 0.02
    ahead = True

    def __init__(
        self,
        setup: WaveSetup,
        streamer: Streamer,
        on_news: Callable[[dict], None],
        row: int = 0,
        first: WaveSession | None = None,
    ):
        super().__init__(streamer, on_news)
        self._setup, self._row, self._first = setup, row, first
        self._playing = self._dirty = True
        self._programs: dict[Key, Stepper] = {}
        self._refused: set[Key] = set()  # would not compile, and are not tried again until the page asks
        self._run = WaveRun(setup)
        self._stop = STEPS  # training pauses there
        self._speed = 100
        self._published = self._looking = 0.0  # when the last frame was made, and the seconds that it took
        self.snapshot: Snapshot | None = None

    # ---- commands

    def reset(self):
        """Go back to step 0 with the settings as they are, the shipped ones too."""
        self._put(self._reset)

    def speed(self, steps: int):
        """Take at most so many steps between two frames."""
        self._put(setattr, self, "_speed", int(steps))

    def apply(self, setup: WaveSetup):
        """Train by other settings. A method goes on from where it is, unless the width or the seed has changed."""
        self._put(self._apply, setup)

    @property
    def paused_at(self) -> int:
        """The step that a link says: 0 while it plays."""
        return 0 if self._playing else self._run.clock

    @property
    def training(self) -> bool:
        """Whether it computes."""
        return self._awake and self._playing and not self._closed

    # ---- the worker

    def _begin(self):
        self._run = WaveRun(self._setup, first_step(self._setup))
        self._stop = self._setup.steps or STEPS
        if self._run.clock >= self._stop:
            self._pause()
        self._request()

    def _failed(self, error: Exception):
        self._pause(note(log, "wave", error))

    def _budget(self) -> tuple[float, float]:
        run = self._run
        if run.lagging:
            return SLICE, math.inf
        # The first frames are a few steps apart, since most is to be seen at the start; and those that still compile
        # are not left far behind. Where nobody looks it stops soon after the last frame.
        pace = 2 if self._ticket else max(5, run.clock // 10)
        return SLICE, min(self._stop, run.shown + min(self._speed, pace)) - run.clock

    def _advance(self, move: Callable[[int], list[str]], steps: int):
        started = time.monotonic()
        super()._advance(move, steps)
        if all(own.diverged for own in self._run.live.values()):
            self._pause("Every method has diverged. Choose a smaller learning rate, then press Train from scratch.")
        elif self._playing and self._run.clock >= self._stop and not self._run.lagging:
            self._pause()
        if self._first and self._first.training:
            time.sleep(min(time.monotonic() - started, LONGEST_REST))

    def _due(self) -> bool:
        waited = time.monotonic() - self._published
        return not self._playing or self._run.shown is None or waited > max(INTERVAL, 2 * self._looking)

    def _frame(self) -> np.ndarray:
        started, run, setup = time.perf_counter(), self._run, self._setup
        found = {}
        for name, own in run.live.items():
            rate = 1 / own.seconds if own.seconds else 0.0
            found[name] = evaluate(own.spec, own.state.particles, setup, name, own.step, rate, own.diverged)
        self.snapshot = Snapshot(run.clock, setup, found)
        self._published, self._looking = time.monotonic(), time.perf_counter() - started
        return pack(self._row, run.clock, found)

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
        self._run, self._stop, self._dirty = WaveRun(self._setup, step), STEPS, True
        self._restart_rate()
        self._notify({"alarm": ""})
        self._retry()
        if not self._run.live:  # the old one's numbers are another network's
            self.snapshot = None

    def _apply(self, setup: WaveSetup):
        old, self._setup = self._setup, setup
        self._run.use(setup)
        self._dirty = True
        ended = self._run.clock >= self._stop
        if (setup.width, setup.seed) != (old.width, old.seed):
            self._reset(first_step(setup))
            if self._run.clock >= self._stop:
                self._pause()
            elif ended:  # training had ended, not been stopped
                self._play(True)
        elif setup.posterior() != old.posterior() and not self._playing and ended:
            self._stop = self._run.clock + MORE  # the band answers although training had ended
            self._play(True)
        self._retry()

    def _sleep(self, on: bool):
        super()._sleep(on)
        self._request()

    # ---- compiling: one program after the other, so that something moves sooner

    def _retry(self):
        """What was refused, since the page asks for something."""
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
        self._notify({"status": f"compiling {', '.join(map(label_of, missing))} …" if missing else ""})

    def _keys(self) -> dict[str, Key]:
        """The program that each method of the setup needs, what compiles quickly first."""
        setup = self._setup
        return {name: (setup.spec(name), setup.rows) for name in sorted(setup.methods, key=effort)}

    def _compile(self, method: str, setup: WaveSetup, deliver: Callable[..., None]):
        """On a compiler thread: everything that the worker will call, so that it never waits for a compile."""
        try:
            knobs, spec = setup.knobs_of(method), setup.spec(method)
            stepper = compile(spec, look=False)
            state = stepper.advance(stepper.reset(setup.seed, knobs), knobs, 0)
            evaluate(spec, state.particles, setup, method, 0, 0.0, False)
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
