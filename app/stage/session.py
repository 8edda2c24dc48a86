"""One visitor's session: a worker thread that owns a Run.

The page sends commands through a queue and hears back through `on_news` and through packed frames (the Streamer); it
never touches the run itself, so nothing needs a lock.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Callable

import numpy as np

from stein_core import METHODS, Frame, Spec, Stepper, compile
from stein_core.contract.recipe import EDITS
from stein_core.runs.cache import start
from stein_core.runs.memory import check_memory
from steinlab.server.background import Threads
from steinlab.server.errors import note
from steinlab.server.streaming import Streamer
from steinlab.stage.contract import LiveSetup, View
from steinlab.stage.kept import Kept
from steinlab.stage.player import Player
from steinlab.stage.run import Run
from steinlab.stage.scene import SideBySide
from steinlab.stage.setup import CAPACITY
from steinlab.stage.waits import timed, waiting_for

log = logging.getLogger(__name__)

# A small run starts on a small program; the largest is compiled behind it, before it is needed.
CAPACITIES = sorted({size for size in (32, 64, 128, 256, 512, 1024, 2048) if size < CAPACITY} | {CAPACITY})
FIRST_CAPACITY = CAPACITIES[0]
MEASURE_EVERY = 0.1  # seconds between measurements while it moves: read-outs change no faster than can be read
MEASURE_SHARE = 0.1  # of the time: of thousands of particles a measurement costs several steps

# Scenes do not wait behind the programs of others.
COMPILERS, AHEAD, SCENES = Threads(2, "compile"), Threads(1, "compile-ahead"), Threads(1, "scene")


class Session(Player):
    """A LiveSetup that runs on a worker thread. wake() starts it, sleep() rests it, close() ends the thread.

    Args:
        setup: what runs.
        streamer: takes the packed frames.
        on_news: called from the worker with a dict of news for the page: setup, scene, knobs, playing, status, alarm,
            starting, step, steps_per_second, history (length, position).
        view: what the stage shows.
        play: whether a setup without steps plays at once.
        kept: a picture of the setup that comes with the app; the run goes on from it.
    """

    def __init__(
        self,
        setup: LiveSetup,
        streamer: Streamer,
        on_news: Callable[[dict], None],
        view: View = SideBySide(),
        play: bool = True,
        kept: Kept | None = None,
    ):
        super().__init__(streamer, on_news)
        self._view = view
        self.metrics: list[dict[str, float]] = []  # the last ones measured, a dict a method
        self._setup, self._begun, self._plays, self._kept = setup, 0, play, kept
        self._deferred: list[tuple[str, Any]] = []
        self._newest: dict[str, Any] = {}  # knobs of the scene that was asked for last

    # ---- commands, from the page

    def reset(self, seed: int | None = None):
        """Go back to step 0 with the knobs as they are, and with another seed if one is given."""
        self._put(lambda: self._choose({} if seed is None else {"seed": seed}))

    def turn(self, name: str, value: Any):
        """Turn one knob. Paused, it changes the forces shown and nothing else."""
        self._put(self._change, name, value)

    def add(self, point):
        """Add a particle at a point of the stage."""
        self._put(self._change, "add", rounded(point))

    def remove(self, index: int):
        """Remove a particle."""
        self._put(self._change, "remove", int(index))

    def move(self, index: int, point):
        """Move a particle to a point of the stage."""
        self._put(self._change, "move", (int(index), *rounded(point)))

    def grab(self, on: bool):
        """Begin a drag, or give it up: what came since it began never happened."""
        self._put(self._grab, on)

    def speed(self, steps_per_frame: int):
        """Take at most so many steps between two frames."""
        self._put(setattr, self, "_speed", int(steps_per_frame))

    def choose(self, **fields):
        """Change other fields of the setup, which need a compile: a fresh start with the knobs carried over."""
        self._put(self._choose, fields)

    def open(self, setup: LiveSetup):
        """Start another setup altogether: a preset or a link."""
        self._put(self._start, setup)

    def redraw(self):
        """Look again: the view has changed."""
        self._put(setattr, self, "_dirty", True)

    def redraw_scene(self):
        """Draw again what stands still: the view has changed."""
        self._put(self._draw_scene)

    def rewind(self, position: int):
        """Show this entry of the history and pause there; going on from it forgets what came later."""
        self._put(self._rewind, position)

    def back(self):
        """Go one frame back."""
        self._put(lambda: self._run and self._rewind(self._run.position - 1))

    # ---- what the page may read

    @property
    def frames(self) -> list[Frame]:
        """The newest frames, one a panel."""
        run = self._run
        return run.frames if run else []

    def shown(self) -> tuple[LiveSetup, int]:
        """Return the setup that repeats what is on screen, its `steps` included, and the capacity it runs at."""
        run = self._run
        if run is None or run.clock < self._goal:
            return self._setup, capacity_of(self._setup)
        return run.present(), run.capacity

    def linked(self) -> LiveSetup:
        """Return what the address bar should say: the frame when paused, else a run that plays."""
        setup, _ = self.shown()
        return replace(setup, steps=0) if self._playing else setup

    # ---- the worker

    def _begin(self):
        self._start(self._setup, None if self._plays else False, self._kept)

    def _failed(self, error: Exception):
        self._deferred = []  # the larger program that they wait for may be what failed
        self._pause(note(log, "session", error))
        # The widgets go back to what there is.
        knobs = self._run.knobs if self._run else self._setup.knobs
        self._notify({"status": "", "setup": self._setup, "knobs": knobs})

    def _frame(self) -> np.ndarray:
        now, moving = time.monotonic(), self._playing or self._catching_up
        measure = self._measurable and (not moving or now > self._next_measure)
        frames = self._run.look(self._view.measured if measure else False)
        if measure:
            self.metrics = [frame.metrics for frame in frames]
            self._next_measure = now + max(MEASURE_EVERY, (time.monotonic() - now) / MEASURE_SHARE)
        return self._packed(self._run, self.metrics)

    def _packed(self, run, metrics: list[dict[str, float]]) -> np.ndarray:
        """It moves before the metrics are compiled."""
        return self._view.pack(
            run, metrics or [dict.fromkeys(self._view.measured, math.nan)] * len(run.frames), self._begun
        )

    # ---- what the commands do

    def _choose(self, fields):
        knobs = self._run.knobs if self._run else self._setup.knobs
        setup = replace(self._setup, knobs=knobs, changes=(), steps=0, **({"dim": None} if "target" in fields else {}))
        self._start(replace(setup, **fields), self._playing)

    def _change(self, name: str, value: Any):
        run = self._run
        if run is None:  # still compiling: it will start with this value
            if name not in EDITS:
                self._kept = None  # it was made with another value
                setup = replace(self._setup, knobs={**self._setup.knobs, name: value})
                if capacity_of(setup) == capacity_of(self._setup):
                    self._setup = setup
                else:
                    self._start(setup, self._playing)
            return
        requested = {"add": run.count + 1, "method.particles": value}.get(name, 1)
        if requested > CAPACITY:
            raise ValueError(f"particles = {requested} is out of range; allowed on this page: 1 to {CAPACITY}.")
        if self._deferred or requested > run.capacity > 1:  # in order, once the larger program is there
            if not self._deferred:
                self._compile(CAPACITY)
            self._deferred.append((name, value))
            return
        self._give_up_goal()
        run.change(name, value)
        if name in EDITS:
            self._notify({"knobs": run.knobs})
        elif run.clock == 0 and name.split(".")[0] in ("init", "guide"):
            self._choose({})  # the start itself has changed
        if name.startswith("target."):
            self._draw_scene()
        self._dirty = True

    def _grab(self, on: bool):
        run = self._run
        if run and on:
            run.grab()
        elif run:
            run.let_go()
            self._dirty = True
            self._notify({"knobs": run.knobs})

    def _rewind(self, position: int):
        if self._run:
            self._playing, self._dirty = False, True
            self._give_up_goal()
            self._run.rewind(position)
            self._notify({"playing": False, "alarm": "", "knobs": self._run.knobs})

    # ---- compiling and starting

    def _start(self, setup: LiveSetup, playing: bool | None = None, kept: Kept | None = None):
        for method in setup.methods:  # what is refused leaves the run that there is
            check_memory(setup.spec(method, capacity_of(setup)))
        if self._begun and still_of(setup) != still_of(self._setup):
            self._notify({"scene": {}})  # the old one would contradict what the page says now
        self._setup, self._deferred = setup, []
        self._run, self._kept = None, kept
        self._begun += 1
        self.metrics, self._measurable, self._next_measure = [], False, 0.0
        self._goal, self._steps, self._reported = setup.steps, 1, (0.0, 0)
        self._playing = setup.steps == 0 if playing is None else playing
        still = {"alarm": "", "step": 0, "steps_per_second": 0.0}
        self._notify({"setup": setup, "knobs": setup.knobs, "playing": self._playing, **still})
        self._notify({"starting": self._begun})
        if kept:
            self._notify({"scene": kept.scene, "step": kept.step, "steps_per_second": 0.0})
            self._streamer.publish(kept.begun(self._begun))
        self._compile(capacity_of(setup))

    def _compile(self, capacity: int):
        specs = [self._setup.spec(method, capacity) for method in self._setup.methods]
        ticket = self._ticket = object()
        self._notify({"status": waiting_for(spec.method for spec in specs)})
        begun = []  # holds their Steppers until they are compiled
        shown = self._kept is not None and self._run is None
        present = dict(self._run.knobs if self._run else self._setup.knobs)

        def scene(deliver):
            if shown:
                return
            deliver(self._notify, {"scene": self._view.scene(specs, present)})
            knobs = [{k: v for k, v in self._setup.knobs.items() if k in spec.knobs()} for spec in specs]
            begun.extend(start(spec, self._setup.seed, own) for spec, own in zip(specs, knobs))
            if all(begun):
                deliver(self._show_start, specs, [frame for _, frame in begun])

        def programs(deliver):
            steppers = []
            for spec in specs:
                if self._waits(ticket):
                    with timed(spec.method):
                        steppers.append(compile(spec, measure=False))
            drawn.result()  # no particle over another target's contours
            begun.clear()
            deliver(self._ready, steppers)
            self._submit(COMPILERS, ticket, metrics)  # behind the first frames of all who wait

        def metrics(deliver):
            for spec in specs:
                if self._waits(ticket):
                    compile(spec, measure=self._view.measured)
            deliver(self._measure)

        drawn = self._submit(SCENES, ticket, scene)
        self._submit(COMPILERS, ticket, programs)

    def _draw_scene(self):
        """Draw what stands still with the present knobs; before there is a run, `_compile` does."""
        if self._run is None:
            return
        specs, knobs = [stepper.spec for stepper in self._run.steppers], dict(self._run.knobs)
        self._newest = knobs

        def draw(deliver):
            if knobs is self._newest:  # a slider moves on faster than scenes are drawn
                deliver(self._notify, {"scene": self._view.scene(specs, knobs)})

        self._submit(SCENES, self._ticket, draw)

    def _show_start(self, specs: list[Spec], frames: list[Frame]):
        """Draw where a run starts while its program compiles."""
        if self._run is None:
            steppers = [SimpleNamespace(spec=spec) for spec in specs]
            still = SimpleNamespace(frames=frames, steppers=steppers, knobs=self._setup.knobs)
            self._streamer.publish(self._packed(still, []))

    def _ready(self, steppers: list[Stepper]):
        self._measurable = False
        if self._run:
            self._run.install(steppers)
        else:
            states = {stepper.spec.method: self._kept.state_of(stepper) for stepper in steppers} if self._kept else {}
            known = self._kept is not None and all(states.values())
            self._run = Run(self._setup, steppers, *([self._kept.step, states] if known else []))
        self._notify({"status": ""})
        self._dirty = True
        deferred, self._deferred = self._deferred, []
        for change in deferred:
            self._change(*change)

    def _measure(self):
        if self._run is None:  # it could not start, and has said why
            return
        self._measurable = self._dirty = True
        grows = any(not METHODS[method].facts.sampler for method in self._setup.methods)
        if grows and self._run.capacity < CAPACITY:  # so that the particle slider finds its program ready
            AHEAD.submit(self._compile_ahead, self._ticket)

    def _compile_ahead(self, ticket: object):
        for method in self._setup.methods:
            if self._waits(ticket):
                compile(self._setup.spec(method, CAPACITY), measure=self._view.measured)


def rounded(point) -> tuple[float, ...]:
    """Return a point with the digits that a link has."""
    return tuple(float(f"{v:.5g}") for v in point)


def still_of(setup: LiveSetup) -> list[tuple]:
    """Return what stands still on the stage of a setup: titles and densities."""
    specs = [setup.spec(method, FIRST_CAPACITY) for method in setup.methods]
    return [(spec.method, spec.target, spec.dim, spec.options_of("target")) for spec in specs]


def capacity_of(setup: LiveSetup) -> int:
    """The capacity that a session of this setup starts at."""
    return next((size for size in CAPACITIES if size >= setup.particles), CAPACITY)
