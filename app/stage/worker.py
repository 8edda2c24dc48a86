"""A worker thread with a queue of commands that plays or is paused."""

from __future__ import annotations

import queue
import threading
import time
from typing import Callable

from steinlab.server.limits import LIMITS
from steinlab.server.streaming import Streamer


class Pace:
    """Keep one method of a stage below LIMITS.steps_per_second. A pause earns at most the steps of 0.25 s."""

    def __init__(self):
        self._credit, self._since = 1.0, time.monotonic()

    def grant(self, requested: int) -> int:
        """Return how many of these steps may be taken now. When none may be taken yet, wait a moment."""
        if self._credit < 1:
            time.sleep(min(0.05, 1 / LIMITS.steps_per_second))
        now = time.monotonic()
        earned = (now - self._since) * LIMITS.steps_per_second
        self._credit, self._since = min(self._credit + earned, max(1.0, LIMITS.steps_per_second / 4)), now
        granted = min(requested, int(self._credit))
        self._credit -= granted
        return granted


class Worker:
    """A thread that owns the state of a computation, so that nothing needs a lock. Every public method returns at once.

    A subclass gives `_begin` (the first thing done), `_busy` (whether there is something to do beside commands),
    `_turn` (a little of that), `_failed` (a command or a turn has raised), `_play(on)` and `_one_step`.

    Args:
        streamer: takes the frames.
        on_news: called from the worker with a dict of news for the page.
    """

    has_threads = True  # see `steinlab.server.memory.dismantle`

    def __init__(self, streamer: Streamer, on_news: Callable[[dict], None]):
        self._streamer, self._notify = streamer, on_news
        self._commands: queue.SimpleQueue = queue.SimpleQueue()
        self._closed = self._playing = self._dirty = False  # _dirty: the frame is to be drawn again
        self._awake = True
        self._thread: threading.Thread | None = None

    @property
    def begun(self) -> bool:
        """Whether wake() has been called."""
        return self._thread is not None

    def wake(self):
        """Go on after sleep(); the first time begin. Commands that came before wait in the queue."""
        if not self.begun:
            self._put(self._begin)
            self._thread = threading.Thread(target=self._work, name=type(self).__name__, daemon=True)
            self._thread.start()
        else:
            self._put(self._sleep, False)

    def sleep(self):
        """Compute nothing until wake(): nobody sees it."""
        self._put(self._sleep, True)

    def toggle(self):
        """Play if paused, else pause."""
        self._put(lambda: self._play(not self._playing))

    def play(self, on: bool):
        """Play or pause."""
        self._put(lambda: self._play(on))

    def step(self):
        """Take one step, then pause."""
        self._put(lambda: self._one_step())

    def close(self):
        """End the thread. A second call does nothing."""
        self._closed = True
        self._streamer.close()
        if self.begun:
            self._commands.put((int, ()))  # wakes it
        else:
            self._forget()

    def _put(self, command, *arguments):
        if not self._closed:
            self._commands.put((command, arguments))
            self._streamer.hurry()

    def _sleep(self, on: bool):
        self._awake, self._dirty = not on, True

    def _work(self):
        failed = False  # a turn has failed: no other one is tried until a command comes
        while not self._closed:
            commanded = False
            try:
                try:
                    command, arguments = self._commands.get(block=failed or not (self._awake and self._busy()))
                    commanded = True
                except queue.Empty:
                    command, arguments = self._turn, ()
                command(*arguments)
                failed = False
            except Exception as error:
                failed, self._dirty = not commanded, False
                self._failed(error)
        self._forget()

    def _forget(self):
        """Drop what refers to this worker or its page: Python then frees both without a search for garbage."""
        self._commands, self._notify = queue.SimpleQueue(), dict
