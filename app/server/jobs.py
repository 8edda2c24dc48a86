"""Long computations beside the pages: jobs, which wait in one line of the whole server, and what threads do meanwhile."""

from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
import time
from functools import lru_cache
from typing import Any

from app.server.background import LOOKERS, RECORDERS, STOPPING, Breaks, Threads
from app.server.errors import note
from app.server.limits import LIMITS
from stein_core import Recipe, cache_folder
from stein_core.sweep.batches import Stop
from stein_core.sweep.grids import run_sweep
from stein_core.sweep.store import Store

log = logging.getLogger(__name__)
THREADS = 1 if (os.cpu_count() or 1) <= 2 else 2  # of a sweep: the pages that play want the other cores
PATIENCE = 1.0  # seconds that the end of the process waits for a sweep to stop between two steps


SWEEPERS = [
    Threads(THREADS, "sweep", heard=True) for _ in range(LIMITS.jobs)
]  # as many as sweeps that may run at a time
_free: queue.SimpleQueue[Threads] = queue.SimpleQueue()  # those that no sweep has
for _threads in SWEEPERS:
    _free.put(_threads)

_opening = threading.Lock()


def store() -> Store:
    """The rows that every sweep on this machine shares, the command line's too."""
    with _opening:  # of two threads that come first, the second would set aside what the first has begun
        return _opened()


@lru_cache(maxsize=1)
def _opened() -> Store:
    kept = Store(cache_folder() / "sweeps.sqlite")
    if kept.set_aside:
        log.warning("%s was damaged; it is now %s and a new one is begun.", kept.path, kept.set_aside)
    return kept


class Job:
    """A long computation: a subclass says in `compute` what it does. state: "waiting", "running", "done", "cancelled" or
    "failed"; done, total and left (estimated seconds, None before the first report); error: what went wrong. label: what it
    is called where others wait for it."""

    label = "another job"

    def __init__(self, total: int):
        self.state, self.error = "waiting", ""
        self.done, self.total, self.left = 0, total, None
        self._cancelled = False
        self._breaks = Breaks()

    @property
    def active(self) -> bool:
        """Whether it may still end well."""
        return self.state in ("waiting", "running")

    def cancel(self) -> None:
        """Stop soon."""
        self._cancelled = True
        if self.state == "waiting":
            self.state = "cancelled"

    def cancelled(self) -> bool:
        """Whether to stop: asked to, or the server is going down."""
        return self._cancelled or STOPPING.is_set()

    def rest(self) -> None:
        """Between two pieces of work: take a break."""
        self._breaks.take(self.cancelled)

    def give_way(self) -> bool:
        """Between two pieces of work: take a break, then whether to stop."""
        self.rest()
        return self.cancelled()

    def compute(self) -> None:
        """Do it all, ask `give_way()` between the pieces of it, and stop soon where that says so."""
        raise NotImplementedError

    def run(self) -> None:
        """Compute, on the calling thread."""
        if self.cancelled():
            self.state = "cancelled"
            return
        self.state = "running"
        try:
            self.compute()
            self.state = "cancelled" if self.cancelled() else "done"
        except Exception as error:  # a page shows it
            self.error, self.state = note(log, type(self).__name__, error), "failed"


class SweepJob(Job):
    """One sweep. rows: what has come so far, in the end all that there are of `recipes`, whoever computed it; those that
    finished before a cancel are kept."""

    label = "a sweep"

    def __init__(self, recipes: list[Recipe], stop: Stop = Stop()):
        super().__init__(len(recipes))
        self.recipes, self.stop = recipes, stop
        self.rows: list[dict[str, Any]] = []

    def heard(self, row: dict[str, Any], done: int, total: int, left: float) -> None:
        """`run_sweep` has stored a row."""
        self.done, self.left = done, left
        self.rows.append(row)

    def compute(self) -> None:
        sweepers = _free.get()
        try:
            self.rows = run_sweep(self.recipes, store(), self.stop, sweepers, self.heard, self.cancelled, self.rest)
        finally:
            _free.put(sweepers)
        self.done = len(self.rows)


class Line:
    """Jobs in the order in which they came, as many at a time as LIMITS says, on daemon threads."""

    def __init__(self):
        self._jobs: queue.Queue[Job] = queue.Queue()
        self._all: list[Job] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def add(self, job: Job) -> None:
        """Run it when those before it have ended."""
        with self._lock:
            self._all.append(job)
            if len(self._threads) < min(LIMITS.jobs, len(self._all)):
                self._threads.append(threading.Thread(target=self._work, name="jobs", daemon=True))
                self._threads[-1].start()
        self._jobs.put(job)

    def ahead(self, job: Job) -> int:
        """How many others have to end before it begins."""
        with self._lock:
            before = self._all[: self._all.index(job)] if job in self._all else []
        return max(0, sum(one.active for one in before) - LIMITS.jobs + 1)

    @property
    def running(self) -> str:
        """What those that have begun are called, as in "a sweep or NUTS"."""
        with self._lock:
            labels = [job.label for job in self._all if job.state == "running"]
        return " or ".join(dict.fromkeys(labels or [Job.label]))

    @property
    def waiting(self) -> int:
        """How many have not begun."""
        with self._lock:
            return sum(job.state == "waiting" for job in self._all)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            job.run()
            with self._lock:
                self._all.remove(job)
            del job  # it may know a page, which ends before the next job comes

    def cancel(self) -> list[Job]:
        """Cancel everything; the jobs that had not ended."""
        with self._lock:
            jobs = [one for one in self._all if one.active]
        for job in jobs:
            job.cancel()
        return jobs


LINE = Line()


@atexit.register
def stop() -> bool:
    """The process ends: stop whatever runs beside the pages. False where something goes on: a compilation cannot be
    stopped."""
    STOPPING.set()
    jobs, until = LINE.cancel(), time.monotonic() + PATIENCE
    while busy := any(job.active for job in jobs) or any(threads.busy for threads in (*SWEEPERS, LOOKERS, RECORDERS)):
        if time.monotonic() > until:
            break
        time.sleep(0.02)
    return not busy
