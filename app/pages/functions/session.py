"""Training on the page "Function space"."""

from __future__ import annotations

import math
import time

import numpy as np

from stein_core import METHODS, Spec, Stepper, compile
from steinlab.pages.functions.seen import Line, Ring, exact, look
from steinlab.pages.functions.setup import STEPS, FunctionSetup
from steinlab.pages.functions.stage import parts
from steinlab.pages.functions.trained import SHIPPED, seen_before
from steinlab.server.background import Threads
from steinlab.stage.parts import Part
from steinlab.stage.run import MethodRun
from steinlab.stage.training import ShippedRun, Training

INTERVAL = {False: 0.025, True: 0.12}  # seconds between two frames
FORCES_EVERY = 0.5  # seconds between two looks at the forces, which cost a step
COMPILERS = Threads(2, "compile-functions")


class FunctionRun(ShippedRun):
    """The methods that train side by side."""

    shipped = SHIPPED


class FunctionSession(Training):
    """A FunctionSetup in training. The shipped run begins at its last step. Another tab, width or seed starts from
    scratch."""

    compilers, slice, more = COMPILERS, 0.008, 2000

    def _new_run(self, step: int) -> FunctionRun:
        self._forces: dict[str, tuple[float, tuple[float, float]]] = {}  # when they were measured, and their sizes
        return FunctionRun(self._setup, step)

    def _first_step(self) -> int:
        return SHIPPED.first_step(self._setup)

    def _known(self) -> dict[str, Line]:
        return seen_before(self._setup, self._run.clock)

    def _end(self) -> int:
        return STEPS[self._setup.ring]

    def _most(self) -> int:
        return max(1, self._run.clock // 5)

    def _interval(self) -> float:
        return INTERVAL[self._setup.ring]

    def _seen(self, own: MethodRun) -> Line | Ring:
        about = {"step": own.step, "diverged": own.diverged, "rate": 1 / own.seconds if own.seconds else 0.0}
        return look(own.spec, own.state.particles, self._setup, own.spec.method, forces=self._sizes(own), **about)

    def _sizes(self, own: MethodRun) -> tuple[float, float]:
        """Return the mean length of both forces on a particle, at most half a second old."""
        name, now = own.spec.method, time.monotonic()
        then, sizes = self._forces.get(name, (-math.inf, (math.nan, math.nan)))
        if now - then > FORCES_EVERY:
            frame = own.stepper.look(own.state, own.knobs, False)
            sizes = tuple(float(np.linalg.norm(f, axis=1).mean()) for f in (frame.attract, frame.repulse))
            self._forces[name] = time.monotonic(), sizes
        return sizes

    def _parts(self, seen: dict[str, Line | Ring]) -> list[Part]:
        return parts(self._run.clock, seen, None if self._setup.ring else exact(*self._setup.posterior()))

    def _effort(self, method: str) -> int:
        return METHODS[method].facts.interacts + METHODS[method].facts.functions

    @staticmethod
    def prepared(spec: Spec, setup: FunctionSetup, method: str) -> Stepper:
        knobs, stepper = setup.knobs_of(method), compile(spec, measure=False)
        state = stepper.advance(stepper.reset(setup.seed, knobs), knobs, 0)
        stepper.look(state, knobs, False)
        look(spec, state.particles, setup, method, step=0, diverged=False, rate=0.0, forces=(0.0, 0.0))
        return stepper

    def _is_another(self, old: FunctionSetup, new: FunctionSetup) -> bool:
        return (new.ring, new.width, new.seed) != (old.ring, old.width, old.seed)

    def _asks(self, old: FunctionSetup, new: FunctionSetup) -> bool:
        return new.present() != old.present()
