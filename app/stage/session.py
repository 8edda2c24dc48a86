"""One visitor's session: a worker thread that owns a Run.

The page sends commands through a queue and hears back through `tell` and through packed frames (the Streamer); it
never touches the run itself, so nothing needs a lock.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Callable

from app.server.background import Threads
from app.server.errors import note
from app.server.streaming import SHARE, Streamer
from app.stage.run import Run
from app.stage.scene import SideBySide
from app.stage.setup import CAPACITY, Setup, all_knobs
from app.stage.wire import pack
from app.stage.worker import Pace, Worker
from stein_core import DIAGNOSTICS, METHODS, Frame, Spec, Stepper, compile
from stein_core.machine import check_memory
from stein_core.steppers import start

log = logging.getLogger(__name__)

# A small run starts on a small program; the largest is compiled behind it, before it is needed.
CAPACITIES = sorted({size for size in (32, 64, 128, 256, 512, 1024, 2048) if size < CAPACITY} | {CAPACITY})
FIRST_CAPACITY = CAPACITIES[0]
LONGEST_ADVANCE = 0.03  # seconds of stepping between two frames: a slider must not wait for a slow method
LONGEST_CATCH_UP = 0.25  # the same while a link is run up to its step
TELL_EVERY = 0.5  # seconds between reports of what changes all the time
MEASURE_EVERY = 0.1  # seconds between measurements while it moves: read-outs change no faster than can be read
MEASURE_SHARE = 0.1  # of the time: of thousands of particles a measurement costs several steps

# Scenes do not wait behind the programs of others.
COMPILERS, AHEAD, SCENES = Threads(2, "compile"), Threads(1, "compile-ahead"), Threads(1, "scene")


class Session(Worker):
    """A Setup that runs on a worker thread.

    streamer: takes the packed frames. tell: called from the worker with a dict of news for the page: setup, scene,
    knobs, playing, status, alarm, step, steps_per_second, history (length, position). view: what the stage shows, see
    `app.stage.scene.SideBySide`. play: whether a setup without steps plays at once. wake() starts it, sleep() rests it, close() ends the thread.
    """

    def __init__(
        self, setup: Setup, streamer: Streamer, tell: Callable[[dict], None], view=SideBySide(), play: bool = True
    ):
        super().__init__(streamer, tell)
        self._view = view
        self.metrics: list[dict[str, float]] = []  # the last ones measured, a dict a method
        self._speed, self._told, self._pace = 1, (0.0, 0), Pace()
        self._setup, self._run, self._begun, self._plays = setup, None, 0, play

    # ---- commands, from the page

    def reset(self, seed: int | None = None):
        """Back to step 0 with the knobs as they are, and with another seed if one is given."""
        self._put(lambda: self._choose({} if seed is None else {"seed": seed}))

    def turn(self, name: str, value: Any):
        """One knob. Paused, it changes the forces shown and nothing else."""
        self._put(self._change, name, value)

    def add(self, point):
        """A particle more, at a point of the stage."""
        self._put(self._change, "add", tuple(float(f"{v:.5g}") for v in point))

    def remove(self, index: int):
        self._put(self._change, "remove", int(index))

    def speed(self, steps_per_frame: int):
        self._put(setattr, self, "_speed", int(steps_per_frame))

    def choose(self, **fields):
        """Other fields of the Setup that need a compile: a fresh start with the knobs carried over."""
        self._put(self._choose, fields)

    def open(self, setup: Setup):
        """Another Setup altogether: a preset or a link."""
        self._put(self._start, setup)

    def redraw(self):
        """Look again: the view has changed."""
        self._put(setattr, self, "_dirty", True)

    def rewind(self, position: int):
        """Show this entry of the history and pause there; going on from it forgets what came later."""
        self._put(self._rewind, position)

    def back(self):
        """One frame back."""
        self._put(lambda: self._run and self._rewind(self._run.position - 1))

    # ---- what the page may read

    @property
    def frames(self) -> list[Frame]:
        """The newest frames, one a panel."""
        run = self._run
        return run.frames if run else []

    def shown(self) -> tuple[Setup, int]:
        """The Setup that repeats what is on screen, its `steps` included, and the capacity it runs at."""
        run = self._run
        if run is None or run.clock < self._goal:
            return self._setup, capacity_of(self._setup)
        return run.present(), run.capacity

    def linked(self) -> Setup:
        """What the address bar should say: the picture when paused, else a run that plays."""
        setup, _ = self.shown()
        return replace(setup, steps=0) if self._playing else setup

    # ---- the worker

    def _begin(self):
        self._start(self._setup, None if self._plays else False)

    def _busy(self) -> bool:
        return self._run is not None and (self._playing or self._dirty or self._run.clock < self._goal)

    def _failed(self, error: Exception):
        self._deferred = []  # the larger program that they wait for may be what failed
        self._stop(note(log, "session", error))
        # The widgets go back to what there is.
        self._tell({"setup": self._setup, "knobs": self._run.knobs if self._run else self._setup.knobs})

    def _turn(self):
        """One frame: on by some steps if there is anything to do, then look."""
        if not self._streamer.wait_slot(0.05):
            return
        run, catching_up = self._run, self._run.clock < self._goal
        if run.history and (self._playing or catching_up):  # step 0 is shown first, so that rewinding reaches it
            longest, wanted = (
                (LONGEST_CATCH_UP, self._goal - run.clock) if catching_up else (LONGEST_ADVANCE, self._speed)
            )
            affordable = int(longest / self._seconds_per_step) if self._seconds_per_step else 1
            # Twice as many as before at most: the first one may have cost nothing, since `look` had taken it.
            if steps := self._pace.grant(max(1, min(affordable, wanted, 2 * self._steps))):
                self._steps = steps
                self._advance(steps)
        self._look()
        if catching_up:
            left = self._goal - run.clock
            self._tell({"status": f"running to step {self._goal}: {left} to go" if left > 0 else ""})

    def _advance(self, steps: int):
        run, before, started = self._run, self._run.clock, time.perf_counter()
        knobs = run.knobs
        diverged = run.advance(steps)
        seconds = (time.perf_counter() - started) / max(run.clock - before, 1)
        self._seconds_per_step += (seconds - self._seconds_per_step) * (0.5 if self._seconds_per_step else 1.0)
        if run.knobs is not knobs:  # a change that came with a link
            self._tell({"knobs": run.knobs})
        if diverged:
            name = METHODS[diverged.spec.method].label
            self._stop(f"{name} diverged at step {run.clock + 1}: try a smaller step size, then Reset (R).")

    def _stop(self, alarm: str):
        self._playing, self._goal = False, 0
        self._tell({"playing": False, "status": "", "alarm": alarm})

    def _look(self):
        run, self._dirty = self._run, False
        now, (then, step) = time.monotonic(), self._told
        moving = self._playing or run.clock < self._goal
        measure = self._measurable and (not moving or now > self._next_measure)
        frames = run.look(measure)
        if measure:
            self.metrics = [frame.metrics for frame in frames]
            self._next_measure = now + max(MEASURE_EVERY, (time.monotonic() - now) / MEASURE_SHARE)
        metrics = self.metrics or [dict.fromkeys(DIAGNOSTICS, math.nan)] * len(
            frames
        )  # it moves before they are compiled
        self._streamer.publish(pack(self._view.panels(run, metrics), self._begun))
        if not moving or now - then > TELL_EVERY * SHARE.crowding():
            rate = (run.clock - step) / (now - then) if self._playing else 0.0
            self._told = now, run.clock
            history = len(run.history), run.position
            self._tell({"step": run.clock, "steps_per_second": max(rate, 0.0), "history": history})

    # ---- what the commands do

    def _play(self, on: bool):
        self._playing, self._told = on, (time.monotonic(), self._run.clock if self._run else 0)
        self._dirty = self._dirty or not on  # what is shown at rest is measured at this very step
        self._give_up_goal()
        self._tell({"playing": on, "alarm": ""})

    def _sleep(self, on: bool):
        super()._sleep(on)
        self._told = time.monotonic(), self._run.clock if self._run else 0

    def _give_up_goal(self):
        if self._goal and self._run:
            self._goal = 0
            self._tell({"status": ""})

    def _one_step(self):
        self._play(False)
        if self._run:
            self._advance(1)
            self._look()

    def _choose(self, fields):
        knobs = self._run.knobs if self._run else self._setup.knobs
        setup = replace(self._setup, knobs=knobs, changes=(), steps=0, **({"dim": None} if "target" in fields else {}))
        self._start(replace(setup, **fields), self._playing)

    def _change(self, name: str, value: Any):
        run = self._run
        if run is None:  # still compiling: it will start with this value
            if name in all_knobs():
                setup = replace(self._setup, knobs={**self._setup.knobs, name: value})
                if capacity_of(setup) == capacity_of(self._setup):
                    self._setup = setup
                else:
                    self._start(setup, self._playing)
            return
        wanted = {"add": run.count + 1, "method.particles": value}.get(name, 1)
        if wanted > CAPACITY:
            raise ValueError(f"{CAPACITY} particles are the most that this page shows.")
        if self._deferred or wanted > run.capacity > 1:  # in order, once the larger program is there
            if not self._deferred:
                self._compile(CAPACITY)
            self._deferred.append((name, value))
            return
        self._give_up_goal()
        run.change(name, value)
        if name in ("add", "remove"):
            self._tell({"knobs": run.knobs})
        elif run.clock == 0 and name.split(".")[0] in ("init", "guide"):
            self._choose({})  # the start itself has changed
        self._dirty = True

    def _rewind(self, position: int):
        if self._run:
            self._playing, self._dirty = False, True
            self._give_up_goal()
            self._run.rewind(position)
            self._tell({"playing": False, "alarm": "", "knobs": self._run.knobs})

    # ---- compiling and starting

    def _start(self, setup: Setup, playing: bool | None = None):
        for method in setup.methods:  # what is refused leaves the run that there is
            check_memory(setup.spec(method, capacity_of(setup)))
        self._setup, self._deferred = setup, []
        self._run: Run | None = None
        self._begun += 1
        self.metrics, self._measurable = [], False
        self._goal = setup.steps
        self._playing = setup.steps == 0 if playing is None else playing
        self._seconds_per_step = self._next_measure = 0.0
        self._steps = 1
        self._told = 0.0, 0
        self._tell(
            {
                "setup": setup,
                "knobs": setup.knobs,
                "playing": self._playing,
                "alarm": "",
                "step": 0,
                "steps_per_second": 0.0,
            }
        )
        self._tell({"starting": self._begun})
        self._compile(capacity_of(setup))

    def _compile(self, capacity: int):
        specs = [self._setup.spec(method, capacity) for method in self._setup.methods]
        ticket = self._ticket = object()
        self._tell({"status": f"compiling {', '.join(METHODS[spec.method].label for spec in specs)} …"})

        def deliver(receive, *arguments):
            def unless_late():
                if self._waits(ticket):
                    receive(*arguments)

            self._put(unless_late)

        def submit(act, threads=COMPILERS):
            def work():
                try:
                    act()
                except Exception as error:  # the worker shows it, as any other
                    deliver(_raise, error)

            return threads.submit(work)

        begun = []  # holds their Steppers until they are compiled

        def scene():
            if not self._waits(ticket):
                return
            deliver(self._tell, {"scene": self._view.scene(specs)})
            knobs = [{k: v for k, v in self._setup.knobs.items() if k in spec.knobs()} for spec in specs]
            begun.extend(start(spec, self._setup.seed, own) for spec, own in zip(specs, knobs))
            if all(begun):
                deliver(self._show_start, specs, [frame for _, frame in begun])

        def picture():
            steppers = [compile(spec, measure=False) for spec in specs if self._waits(ticket)]
            drawn.result()  # no particle over another target's contours
            begun.clear()
            deliver(self._ready, steppers)
            submit(metrics)  # behind the first pictures of all who wait

        def metrics():
            for spec in specs:
                if self._waits(ticket):
                    compile(spec)
            deliver(self._measure)

        drawn = submit(scene, SCENES)
        submit(picture)

    def _show_start(self, specs: list[Spec], frames: list[Frame]):
        """Draw where a run starts while its program compiles."""
        if self._run is None:
            still = SimpleNamespace(
                frames=frames, steppers=[SimpleNamespace(spec=spec) for spec in specs], knobs=self._setup.knobs
            )
            unknown = [dict.fromkeys(DIAGNOSTICS, math.nan)] * len(frames)
            self._streamer.publish(pack(self._view.panels(still, unknown), self._begun))

    def _measure(self):
        if self._run is None:  # it could not start, and has said why
            return
        self._measurable = self._dirty = True
        if self._run.capacity < CAPACITY:  # so that the particle slider finds its program ready
            AHEAD.submit(self._compile_ahead, self._ticket)

    def _ready(self, steppers: list[Stepper]):
        self._measurable = False
        if self._run:
            self._run.grow(steppers)
        else:
            self._run = Run(self._setup, steppers)
        self._tell({"status": ""})
        self._dirty = True
        deferred, self._deferred = self._deferred, []
        for change in deferred:
            self._change(*change)

    def _compile_ahead(self, ticket: object):
        for method in self._setup.methods:
            if self._waits(ticket):
                compile(self._setup.spec(method, CAPACITY))

    def _waits(self, ticket: object) -> bool:
        """Whether what was asked for with this ticket is still wanted: another choice may have been made meanwhile."""
        return ticket is self._ticket and not self._closed


def capacity_of(setup: Setup) -> int:
    """The capacity that a session of this Setup starts at."""
    return next((size for size in CAPACITIES if size >= setup.particles), CAPACITY)


def _raise(error: Exception):
    raise error
