"""One visitor's session: a worker thread that owns a Run.

The page sends commands through a queue and hears back through `on_news` and through packed frames (the Streamer); it
never touches the run itself, so nothing needs a lock.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Callable

import numpy as np

from stein_core import METHODS, Frame, Spec, Stepper
from stein_core.contract.recipe import EDITS
from stein_core.runs.rest import Rest
from steinlab.server.background import Threads
from steinlab.server.errors import note
from steinlab.server.streaming import Streamer
from steinlab.stage.contract import LiveSetup, View
from steinlab.stage.deferred import Deferred
from steinlab.stage.kept import Kept
from steinlab.stage.player import Player
from steinlab.stage.programs import Programs, capacity_of, still_of
from steinlab.stage.run import Run
from steinlab.stage.scene import SideBySide
from steinlab.stage.setup import CAPACITY, room_for

log = logging.getLogger(__name__)

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
            starting, step, steps_per_second, history (length, position), rest, many (what `costs.offers` returns).
        view: what the stage shows.
        play: whether a setup without steps plays at once.
        kept: a picture of the setup that comes with the app; the run goes on from it.
        most: particles that the page allows. Beyond CAPACITY each size is a program that is compiled when it is asked
            for, and given up for a smaller one when it is no longer needed.
    """

    def __init__(
        self,
        setup: LiveSetup,
        streamer: Streamer,
        on_news: Callable[[dict], None],
        view: View = SideBySide(),
        play: bool = True,
        kept: Kept | None = None,
        most: int = CAPACITY,
    ):
        super().__init__(streamer, on_news)
        self._view, self._most = view, most
        self.metrics: list[dict[str, float]] = []  # the last ones measured, a dict a method
        self._setup, self._begun, self._plays, self._kept = setup, 0, play, kept
        self._deferred = Deferred()
        self._newest: dict[str, Any] = {}  # knobs of the scene that was asked for last
        self._rests: dict[str, Rest] = {}
        self._still: dict[str, int | None] = {}

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
        setup = run.present()
        return setup, max(run.capacity, capacity_of(setup) if setup.particles > CAPACITY else 0)

    def linked(self) -> LiveSetup:
        """Return what the address bar should say: the frame when paused, else a run that plays."""
        setup, _ = self.shown()
        return replace(setup, steps=0) if self._playing else setup

    # ---- the worker

    def _begin(self):
        self._start(self._setup, None if self._plays else False, self._kept)

    def _failed(self, error: Exception):
        self._deferred.take()  # the larger program that they wait for may be what failed
        self._pause(note(log, "session", error))
        # The widgets go back to what there is.
        knobs = self._run.knobs if self._run else self._setup.knobs
        self._notify({"status": "", "setup": self._setup, "knobs": knobs})

    def _frame(self) -> np.ndarray:
        now, moving = time.monotonic(), self._playing or self._catching_up
        measure = self._measurable and (not moving or now > self._next_measure)
        frames = self._run.look(self._programs(self._run.capacity).affordable if measure else False)
        if measure:
            undefined = dict.fromkeys(self._view.measured, math.nan)
            self.metrics = [undefined | frame.metrics for frame in frames]
            self._next_measure = now + max(MEASURE_EVERY, (time.monotonic() - now) / MEASURE_SHARE)
            self._watch(frames)
        return self._packed(self._run, self.metrics)

    def _programs(self, capacity: int) -> Programs:
        return Programs(self._setup, capacity, self._view.measured)

    def _watch(self, frames: list[Frame]):
        """Tell the page which methods have come to rest, or move again."""
        for own, frame in zip(self._run.live.values(), frames):
            rest = self._rests.setdefault(own.spec.method, Rest(own.spec))
            rest.add(frame, own.knobs, len(self._run.changes))
        still = {method: rest.since for method, rest in self._rests.items()}
        if still != self._still:
            self._still = still
            self._notify({"rest": still})

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
        if requested > self._most:
            raise ValueError(f"particles = {requested} is out of range; allowed on this page: 1 to {self._most}.")
        if self._deferred or requested > run.capacity > 1:  # in order, once the larger program is there
            self._defer(name, value, requested)
            return
        self._programs(run.capacity).check_turn(name, value, run.knobs)
        self._give_up_goal()
        run.change(name, value)
        if name == "method.particles" and room_for(value) < run.capacity and not run.pending:
            self._compile(room_for(value))  # what ran so far costs as much as before
        if name in EDITS:
            self._notify({"knobs": run.knobs})
        elif run.clock == 0 and name.split(".")[0] in ("init", "guide"):
            self._choose({})  # the start itself has changed
        if name.startswith("target."):
            self._draw_scene()
        self._dirty = True

    def _defer(self, name: str, value: Any, requested: int):
        """Do this once a program with room for so many particles is there."""
        if self._deferred.add(name, value, room_for(requested)):
            self._compile(self._deferred.room)

    def _grab(self, on: bool):
        run = self._run
        if run and on:
            run.grab()
        elif run:
            run.let_go()
            self._dirty = True
            self._notify({"knobs": run.knobs})

    def _rewind(self, position: int):
        if self._run and self._run.needs(position) > self._run.capacity > 1:
            self._defer("rewind", position, self._run.needs(position))
        elif self._run:
            self._playing, self._dirty = False, True
            self._give_up_goal()
            self._run.rewind(position)
            self._notify({"playing": False, "alarm": "", "knobs": self._run.knobs})

    # ---- compiling and starting

    def _start(self, setup: LiveSetup, playing: bool | None = None, kept: Kept | None = None):
        Programs(setup, capacity_of(setup)).check()  # what is refused leaves the run that there is
        if self._begun and still_of(setup) != still_of(self._setup):
            self._notify({"scene": {}})  # the old one would contradict what the page says now
        self._deferred.take()
        self._setup, self._run, self._kept = setup, None, kept
        self._begun += 1
        self.metrics, self._measurable, self._next_measure = [], False, 0.0
        self._rests, self._still = {}, {}
        self._goal, self._steps, self._reported = setup.steps, 1, (0.0, 0)
        self._playing = setup.steps == 0 if playing is None else playing
        still = {"alarm": "", "step": 0, "steps_per_second": 0.0}
        self._notify({"setup": setup, "knobs": setup.knobs, "playing": self._playing, "rest": {}, **still})
        self._notify({"starting": self._begun})
        if kept:
            self._notify({"scene": kept.scene, "step": kept.step, "steps_per_second": 0.0})
            self._streamer.publish(kept.begun(self._begun))
        self._compile(capacity_of(setup))

    def _compile(self, capacity: int):
        programs, ticket = self._programs(capacity), object()
        self._ticket = ticket
        self._notify({"status": programs.said})
        begun = []  # holds their Steppers until they are compiled
        shown = self._kept is not None and self._run is None
        present = dict(self._run.knobs if self._run else self._setup.knobs)
        wanted = partial(self._waits, ticket)

        def scene(deliver):
            if shown:
                return
            deliver(self._notify, {"scene": self._view.scene(programs.specs, present)})
            begun.extend(programs.begin())
            if all(begun):
                deliver(self._show_start, programs.specs, [frame for _, frame in begun])

        def compiled(deliver):
            steppers = programs.compile(wanted)
            drawn.result()  # no particle over another target's contours
            begun.clear()
            deliver(self._ready, steppers)
            self._submit(COMPILERS, ticket, metrics)  # behind the first frames of all who wait

        def metrics(deliver):
            programs.compile_metrics(wanted)
            deliver(self._measure)

        drawn = self._submit(SCENES, ticket, scene)
        self._submit(COMPILERS, ticket, compiled)

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
            if max(stepper.spec.capacity for stepper in steppers) >= self._run.count:  # else it grew meanwhile
                self._run.install(steppers)
        else:
            states = {stepper.spec.method: self._kept.state_of(stepper) for stepper in steppers} if self._kept else {}
            known = self._kept is not None and all(states.values())
            self._run = Run(self._setup, steppers, *([self._kept.step, states] if known else []))
        self._notify({"status": ""})
        self._dirty = True
        for name, value in self._deferred.take():
            if name == "rewind":
                self._rewind(value)
            else:
                self._change(name, value)

    def _measure(self):
        if self._run is None:  # it could not start, and has said why
            return
        self._measurable = self._dirty = True
        if any(not METHODS[method].facts.sampler for method in self._setup.methods):
            AHEAD.submit(self._prepare_more, self._ticket, self._run.capacity < CAPACITY)

    def _prepare_more(self, ticket: object, small: bool):
        """Compile what the particle slider asks for next, and tell the page how many it may offer."""
        programs, wanted = self._programs(CAPACITY), partial(self._waits, ticket)
        if small:
            programs.compile_metrics(wanted)
        if self._most > CAPACITY:
            many = programs.offers(wanted)
            if wanted():
                self._notify({"many": many})


def rounded(point) -> tuple[float, ...]:
    """Return a point with the digits that a link has."""
    return tuple(float(f"{v:.5g}") for v in point)
