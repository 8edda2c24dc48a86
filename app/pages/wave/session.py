"""One network's training on the 1-D wave."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from app.pages.wave.measures import Evaluation, evaluate
from app.pages.wave.run import WaveRun, first_step
from app.pages.wave.setup import STEPS, WaveSetup, effort
from app.pages.wave.stage import pack
from app.server.background import Threads
from app.server.streaming import Streamer
from app.stage.run import MethodRun
from app.stage.training import Training
from stein_core import Spec, Stepper, compile

INTERVAL = 0.12  # seconds between two frames
LONGEST_REST = 0.2  # seconds that one which lets another go first rests at once
COMPILERS = Threads(2, "compile-wave")


class WaveSession(Training):
    """A WaveSetup in training. The run that ships begins at its last step. Another width or seed starts from scratch.

    Args:
        setup, streamer, on_news: see `Training`.
        row: of the stage.
        first: another session, which goes first: while that one trains, this one rests half of the time.
    """

    compilers, first_speed = COMPILERS, 100

    def __init__(
        self,
        setup: WaveSetup,
        streamer: Streamer,
        on_news: Callable[[dict], None],
        row: int = 0,
        first: WaveSession | None = None,
    ):
        super().__init__(setup, streamer, on_news)
        self._row, self._first = row, first

    @property
    def training(self) -> bool:
        """Whether it computes."""
        return self._awake and self._playing and not self._closed

    def _new_run(self, step: int) -> WaveRun:
        return WaveRun(self._setup, step)

    def _end(self) -> int:
        return STEPS

    def _first_step(self) -> int:
        return first_step(self._setup)

    def _most(self) -> int:
        # The first frames are a few steps apart, since most is to be seen at the start; and those that still compile
        # are not left far behind. Where nobody looks it stops soon after the last frame.
        return 2 if self._ticket else max(5, self._run.clock // 10)

    def _interval(self) -> float:
        return INTERVAL

    def _advance(self, move: Callable[[int], list[str]], steps: int):
        started = time.monotonic()
        super()._advance(move, steps)
        if self._first and self._first.training:
            time.sleep(min(time.monotonic() - started, LONGEST_REST))

    def _seen(self, own: MethodRun) -> Evaluation:
        rate = 1 / own.seconds if own.seconds else 0.0
        return evaluate(own.spec, own.state.particles, self._setup, own.spec.method, own.step, rate, own.diverged)

    def _packed(self, seen: dict[str, Evaluation]) -> np.ndarray:
        return pack(self._row, self._run.clock, seen)

    def _effort(self, method: str) -> tuple[bool, bool]:
        return effort(method)

    def _prepared(self, spec: Spec, setup: WaveSetup, method: str) -> Stepper:
        knobs, stepper = setup.knobs_of(method), compile(spec, look=False)
        state = stepper.advance(stepper.reset(setup.seed, knobs), knobs, 0)
        evaluate(spec, state.particles, setup, method, 0, 0.0, False)
        return stepper

    def _is_another(self, old: WaveSetup, new: WaveSetup) -> bool:
        return (new.width, new.seed) != (old.width, old.seed)

    def _asks(self, old: WaveSetup, new: WaveSetup) -> bool:
        return new.posterior() != old.posterior()
