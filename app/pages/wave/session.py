"""One network's training on the 1-D wave."""

from __future__ import annotations

from stein_core import Spec, Stepper, compile
from steinlab.pages.wave.measures import Evaluation, evaluate
from steinlab.pages.wave.setup import STEPS, WaveSetup, effort
from steinlab.pages.wave.stage import parts
from steinlab.pages.wave.trained import SHIPPED, seen_before
from steinlab.server.background import Threads
from steinlab.stage.parts import Part
from steinlab.stage.run import MethodRun
from steinlab.stage.training import ShippedRun, Training

INTERVAL = 0.12  # seconds between two frames
COMPILERS = Threads(2, "compile-wave")


class WaveRun(ShippedRun):
    """The methods that train on the wave."""

    shipped = SHIPPED


class WaveSession(Training):
    """A WaveSetup in training. The shipped run begins at its last step. Another width or seed starts from scratch."""

    compilers, first_speed = COMPILERS, 100

    def _new_run(self, step: int) -> WaveRun:
        return WaveRun(self._setup, step)

    def _end(self) -> int:
        return STEPS

    def _first_step(self) -> int:
        return SHIPPED.first_step(self._setup)

    def _known(self) -> dict[str, Evaluation]:
        return seen_before(self._setup, self._run.clock)

    def _most(self) -> int:
        # The first frames are a few steps apart, since most is to be seen at the start; and those that still compile
        # are not left far behind. Where nobody looks it stops soon after the last frame.
        return 2 if self._ticket else max(5, self._run.clock // 10)

    def _interval(self) -> float:
        return INTERVAL

    def _seen(self, own: MethodRun) -> Evaluation:
        rate = 1 / own.seconds if own.seconds else 0.0
        return evaluate(own.spec, own.state.particles, self._setup, own.spec.method, own.step, rate, own.diverged)

    def _parts(self, seen: dict[str, Evaluation]) -> list[Part]:
        return parts(self._row, self._run.clock, seen)

    def _effort(self, method: str) -> tuple[bool, bool]:
        return effort(method)

    @staticmethod
    def prepared(spec: Spec, setup: WaveSetup, method: str) -> Stepper:
        knobs, stepper = setup.knobs_of(method), compile(spec, look=False)
        state = stepper.advance(stepper.reset(setup.seed, knobs), knobs, 0)
        evaluate(spec, state.particles, setup, method, 0, 0.0, False)
        return stepper

    def _is_another(self, old: WaveSetup, new: WaveSetup) -> bool:
        return (new.width, new.seed) != (old.width, old.seed)

    def _asks(self, old: WaveSetup, new: WaveSetup) -> bool:
        return new.posterior() != old.posterior()
