"""What the sessions of all live pages share: play a Run, catch up, look, and compile on other threads."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any, Callable

import numpy as np

from stein_core import METHODS
from steinlab.server.background import Threads, while_wanted
from steinlab.server.streaming import FRAME_BUDGET, Streamer
from steinlab.stage.run import Run
from steinlab.stage.worker import Pace, Worker

LONGEST_ADVANCE = 0.03  # seconds of stepping between two frames: a slider must not wait for a slow method
LONGEST_CATCH_UP = 0.25  # the same while a link is run up to its step
NEWS_EVERY = 0.5  # seconds between reports of what changes all the time


class Player(Worker):
    """A Worker that plays a Run.

    A subclass gives `_begin`, `_failed` and `_frame` (look at the run, and pack what is to be seen), sets `_run`, and
    may have other rules: `_budget`, `_due`. `_goal` is the step up to which a link runs while paused.
    """

    advice = "Choose a smaller step size, then press Reset (R)."  # when a method has diverged
    patience = 0.05  # seconds that a turn waits until a frame may be sent
    ahead = False  # whether steps are taken while none may be sent; `_budget` then says where they end

    def __init__(self, streamer: Streamer, on_news: Callable[[dict], None]):
        super().__init__(streamer, on_news)
        self._run: Run | None = None
        self._ticket: Any = None  # of what is being compiled; what has another one comes too late
        self._goal, self._speed, self._steps, self._pace = 0, 1, 1, Pace()
        self._reported = (0.0, 0)  # when the page last heard of the clock, and where that was

    def _frame(self) -> np.ndarray:
        raise NotImplementedError

    # ---- moving

    @property
    def _catching_up(self) -> bool:
        return self._run.clock < self._goal or bool(self._run.lagging)

    def _busy(self) -> bool:
        return self._run is not None and bool(self._run.live) and (self._playing or self._dirty or self._catching_up)

    def _turn(self):
        """One frame: on by some steps if there is anything to do, then look."""
        free = self._streamer.wait_slot(self.patience)
        if not (free or self.ahead):
            return
        catching_up = self._catching_up
        if self._run.shown is not None and (self._playing or catching_up):  # the start is shown first
            self._move_on()
        if free and self._due():
            self._look()
            if catching_up and self._goal:
                left = self._goal - self._run.clock
                self._notify({"status": f"running to step {self._goal}: {left} to go" if left > 0 else ""})

    def _move_on(self):
        """As many steps as are requested, allowed and affordable before the next frame."""
        run, (longest, requested) = self._run, self._budget()
        if requested <= 0:
            time.sleep(0.005)  # until the next frame is due
            return
        affordable = int(longest / run.seconds) if run.seconds else 1
        # Twice as many as before at most: the first one may have cost nothing, since `look` had taken it.
        if steps := self._pace.grant(max(1, min(affordable, requested, 2 * self._steps))):
            self._steps = steps
            self._advance(run.catch_up if run.lagging else run.advance, steps)

    def _budget(self) -> tuple[float, int]:
        """Seconds and steps that the next frame may take."""
        left = self._goal - self._run.clock
        return (LONGEST_CATCH_UP, left) if left > 0 else (LONGEST_ADVANCE, self._speed)

    def _advance(self, move: Callable[[int], list[str]], steps: int):
        run, knobs = self._run, self._run.knobs
        diverged = move(steps)
        self._dirty = True  # also when no frame may be sent now and this was the last step
        if run.knobs is not knobs:  # a change that came with a link
            self._notify({"knobs": run.knobs})
        for name in diverged[:1]:
            alarm = f"{METHODS[name].label} diverged at step {run.methods[name].step + 1}. {self.advice}"
            if run.together:
                self._pause(alarm)
            else:
                self._notify({"alarm": alarm})

    def _pause(self, alarm: str = ""):
        self._playing, self._dirty = False, True
        self._give_up_goal()
        self._goal = 0
        self._notify({"playing": False} | ({"alarm": alarm} if alarm else {}))

    def _play(self, on: bool):
        self._playing = on
        self._dirty = self._dirty or not on  # what is shown at rest is measured at this very step
        self._restart_rate()
        self._give_up_goal()
        self._notify({"playing": on, "alarm": ""})

    def _one_step(self):
        self._play(False)
        if self._run and self._run.live:
            self._advance(self._run.advance, 1)
            self._look()

    def _sleep(self, on: bool):
        super()._sleep(on)
        self._restart_rate()

    def _give_up_goal(self):
        if self._goal and self._run:
            self._goal = 0
            self._notify({"status": ""})

    # ---- looking

    def _due(self) -> bool:
        """Whether it is time for a frame when one may be sent."""
        return True

    def _look(self):
        self._dirty, run = False, self._run
        self._streamer.publish(self._frame())
        run.shown = run.clock
        now, (then, step) = time.monotonic(), self._reported
        moving = self._playing or self._catching_up
        if not moving or now - then > NEWS_EVERY * FRAME_BUDGET.crowding():
            rate = (run.clock - step) / (now - then) if self._playing else 0.0
            self._reported = now, run.clock
            history = len(run.history), run.position
            self._notify({"step": run.clock, "steps_per_second": max(rate, 0.0), "history": history})

    def _restart_rate(self):
        self._reported = time.monotonic(), self._run.clock if self._run else 0

    # ---- compiling

    def _submit(self, threads: Threads, ticket: Any, work: Callable[..., None]) -> Future:
        """Have work(deliver) done on another thread, where deliver(command, *arguments) has the worker do something.
        Neither is done once another ticket counts. The worker also gets what fails."""
        return threads.submit(self._act, ticket, work)

    def _act(self, ticket: Any, work: Callable[..., None]):
        def deliver(command, *arguments):
            self._put(lambda: command(*arguments) if self._waits(ticket) else None)

        if self._waits(ticket):
            with while_wanted(lambda: not self._waits(ticket)):
                try:
                    work(deliver)
                except Exception as error:
                    deliver(_raise, error)

    def _waits(self, ticket: Any) -> bool:
        """Whether what was requested with this ticket is still wanted: another choice may have been made since."""
        return ticket == self._ticket and not self._closed


def _raise(error: Exception):
    raise error
