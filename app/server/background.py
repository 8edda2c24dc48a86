"""What threads of the server do beside the pages, and how it yields to them."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Callable, Iterator

from stein_core.base.pieces import in_pieces
from steinlab.server.errors import note
from steinlab.server.streaming import FRAME_BUDGET

log = logging.getLogger(__name__)
SPARE_CORES = max(1, (os.cpu_count() or 1) - 1)  # beside the one on which Python runs
LONGEST_REST = 5.0  # seconds that background work yields at a time
AT_WORK = threading.BoundedSemaphore(SPARE_CORES)  # of background work, as much at a time: Python runs on one core
STOPPING = threading.Event()  # the process ends: background work stops soon


class Threads:
    """Daemon threads that do what they are given, in order; the log says what failed. Python would let those of a
    ThreadPoolExecutor do all that they were given before it ends."""

    def __init__(self, count: int, name: str):
        self.name = name
        self._work: queue.Queue[tuple[Future, Callable[[], Any]]] = queue.Queue()
        self._names, self._starting = [f"{name} {i + 1}" for i in range(count)], threading.Lock()

    def submit(self, work: Callable, *arguments) -> Future:
        """Call work(*arguments) on the first thread that is free."""
        future = Future()
        self._work.put((future, partial(work, *arguments)))
        with self._starting:
            while self._names:
                threading.Thread(target=self._run, name=self._names.pop(0), daemon=True).start()
        return future

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits."""
        return self._work.unfinished_tasks > 0

    def _run(self):
        while True:
            future, work = self._work.get()
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
                note(log, threading.current_thread().name, error)
            del future, work  # they may know a page, which ends before the next work comes
            self._work.task_done()


LOOKERS = Threads(1, "look-up")  # what takes a moment


def is_yielding() -> bool:
    """Say whether background work yields: a page plays, or did a moment ago. Such work may be what makes it slow."""
    return FRAME_BUDGET.pages(FRAME_BUDGET.REMEMBERED) > 0


class Cancelled(BaseException):
    """Nobody waits any more for what this thread computes. No `except Exception` takes it for an error."""


@contextmanager
def background_work(unwanted: Callable[[], bool]) -> Iterator[None]:
    """Let the steps that this thread takes yield to pages that play, and end when they are unwanted.

    The first piece of work compiles. After each later piece the thread rests as long as the piece took, once for each
    page that plays: the work costs as much as one more page. On more than two cores the rest is shorter. At most
    SPARE_CORES threads work at a time. A thread that has waited for LONGEST_REST works nevertheless: what it waits for
    may wait for it.

    Raises:
        Cancelled: the work is unwanted.
    """
    since = None

    def pause():
        nonlocal since, working
        now = time.monotonic()
        if working:
            AT_WORK.release()
        working = False
        worked = 0.0 if since is None else now - since
        while not unwanted() and time.monotonic() < now + min(
            LONGEST_REST, worked * FRAME_BUDGET.pages(FRAME_BUDGET.REMEMBERED) / SPARE_CORES
        ):
            time.sleep(min(worked, 0.02))
        working = AT_WORK.acquire(timeout=LONGEST_REST)
        if unwanted():
            raise Cancelled
        since = time.monotonic()

    working = AT_WORK.acquire(timeout=LONGEST_REST)
    try:
        with in_pieces(pause):
            yield
    finally:
        if working:
            AT_WORK.release()


@contextmanager
def while_wanted(unwanted: Callable[[], bool]) -> Iterator[None]:
    """Let what this thread computes or compiles end at its next piece when it is unwanted. No error is raised then."""

    def check():
        if unwanted():
            raise Cancelled

    with suppress(Cancelled), in_pieces(check):
        yield


def in_background(
    work: Callable[[], Any],
    tell: Callable[[Any], None],
    failed: Callable[[str], None],
    wanted: Callable[[], bool] = lambda: True,
) -> None:
    """Do `work` on another thread, then `tell` its result there (or what failed). wanted: asked when its turn has come;
    if nobody waits for it any more, nothing is done."""

    def run():
        if STOPPING.is_set() or not wanted():
            return
        try:
            result = work()
        except Exception as error:
            failed(note(log, "background", error))
        else:
            tell(result)

    LOOKERS.submit(run)


class UiThrottle:
    """What keeps the event loop busy for long, such as new cells of a lesson: of all pages one at a time.

    While pages play, the event loop stays free after each such call for as long as the call took. A slider then waits
    for one call at most, also when a whole class runs a lesson.
    """

    def __init__(self):
        self._free = 0.0  # the moment of time.monotonic() from which the next one may begin

    def run(self, later: Callable[[Callable[[], None]], object], call: Callable[[], None]) -> None:
        """Call it by `later`, see `steinlab.server.loop.soon`, as soon as it has its turn. Any thread."""
        later(partial(self._work, later, call))

    def _work(self, later: Callable[[Callable[[], None]], object], call: Callable[[], None]) -> None:
        began = time.monotonic()
        # Pages that a crowd of calls starves still play: the last second is too short to see them.
        playing = FRAME_BUDGET.pages(FRAME_BUDGET.REMEMBERED)
        if began < self._free and playing and (loop := running()):
            loop.call_later(self._free - began, self.run, later, call)
            return
        try:
            call()
        finally:
            self._free = 2 * time.monotonic() - began


def running() -> asyncio.AbstractEventLoop | None:
    """The event loop of this thread: a script without one shows at once what it draws."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


UI_THROTTLE = UiThrottle()
