"""What threads do beside the pages, and how it gives way to them."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from app.server.errors import note
from app.server.streaming import SHARE
from stein_core.runner import in_pieces

log = logging.getLogger(__name__)
OTHERS = max(1, (os.cpu_count() or 1) - 1)  # cores beside the one on which Python runs
LONGEST_REST = 5.0  # seconds that a job gives way at a time
STOPPING = threading.Event()  # the process ends: whatever runs beside the pages stops soon


class Threads(ThreadPoolExecutor):
    """A ThreadPoolExecutor on daemon threads. Python lets an ordinary one run all that it was given before it ends.
    heard: whether somebody reads the futures; else the log says what failed."""

    def __init__(self, count: int, name: str, heard: bool = False):
        super().__init__(count, name)
        self._heard = heard
        self._waiting: queue.SimpleQueue = queue.SimpleQueue()
        self._given: set[Future] = set()
        self._names, self._starting = [f"{name} {i + 1}" for i in range(count)], threading.Lock()

    def submit(self, work: Callable, /, *arguments, **keywords) -> Future:
        future = Future()
        self._given.add(future)
        self._waiting.put((future, work, arguments, keywords))
        with self._starting:
            while self._names:
                threading.Thread(target=self._run, name=self._names.pop(0), daemon=True).start()
        return future

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits."""
        return bool(self._given)

    def _run(self):
        while True:
            self._one(*self._waiting.get())

    def _one(self, future: Future, work: Callable, arguments, keywords):
        try:
            if future.set_running_or_notify_cancel():
                future.set_result(work(*arguments, **keywords))
        except BaseException as error:
            future.set_exception(error)
            if not self._heard:
                note(log, threading.current_thread().name, error)
        self._given.discard(future)


LOOKERS = Threads(1, "look-up")  # what takes a moment
RECORDERS = Threads(2, "recorder")  # what takes long


def giving_way() -> str:
    """What a page adds to the progress of such work while it has to."""
    return ". Pages that are playing come first." if SHARE.pages(SHARE.REMEMBERED) else ""


class Breaks(threading.local):
    """Work beside the pages gives way to them: after each piece it rests as long as that took for every page that plays,
    and so has the share of one page more of a core. Where there are more than two, pages that play keep one busy (they
    share Python), and the rest is as much shorter. Each thread that takes part counts for itself."""

    _since = None  # the last break's end

    def take(self, stopped: Callable[[], bool]) -> None:
        """Between two pieces of work. stopped: asked all the while; where it is true, there is nothing to rest for."""
        now = time.monotonic()
        if self._since is not None:
            worked = now - self._since
            # A page that is slow because of this very work plays, too.
            while not stopped() and time.monotonic() < now + min(
                LONGEST_REST, worked * SHARE.pages(SHARE.REMEMBERED) / OTHERS
            ):
                time.sleep(min(worked, 0.02))
        self._since = time.monotonic()


class Left(BaseException):
    """Nobody waits any more for what this thread computes. No `except Exception` is to take it for an error."""


@contextmanager
def beside(unwanted: Callable[[], bool]) -> Iterator[None]:
    """Steps that are taken meanwhile on this thread give way to pages that play; Left is raised where they are unwanted."""
    breaks = Breaks()

    def rest():
        breaks.take(unwanted)
        if unwanted():
            raise Left

    with in_pieces(rest):
        yield


def in_background(
    work: Callable[[], Any],
    tell: Callable[[Any], None],
    failed: Callable[[str], None],
    wanted: Callable[[], bool] = lambda: True,
    threads: Threads = LOOKERS,
) -> None:
    """Do `work` on another thread, then `tell` its result there (or what failed). wanted: asked when its turn has come;
    where nobody waits for it any more, nothing is done."""

    def run():
        if STOPPING.is_set() or not wanted():
            return
        try:
            result = work()
        except Exception as error:
            failed(note(log, "background", error))
        else:
            tell(result)

    threads.submit(run)
