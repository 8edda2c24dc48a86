"""Long computations: each job is a process of low priority, which runs a command of `python -m stein_core`."""

from __future__ import annotations

import atexit
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import stein_core
from stein_core import Recipe, cache_folder
from stein_core.base.errors import short
from stein_core.sweep.keys import files_of
from stein_core.sweep.stop import Stop
from stein_core.sweep.store import Store
from steinlab.server.background import LOOKERS, STOPPING
from steinlab.server.errors import note
from steinlab.server.limits import LIMITS

log = logging.getLogger(__name__)
WORKERS = 1 if (os.cpu_count() or 1) <= 2 else 2  # threads of a sweep: the pages that play want the other cores
NICE = 10  # how much lower a job's priority is than the server's
PATIENCE = 1.0  # seconds that the end of the server waits for what it has stopped
GOOD = (0, 3)  # exit codes; 3: a run has diverged, as its row says
ROOT = Path(stein_core.__file__).parents[1]  # may be a checkout that is not installed

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
    """A command of `python -m stein_core` that gets recipes on its stdin, in a process of its own.

    A subclass says the command in `arguments`.

    Attributes:
        state: "waiting", "running", "done", "cancelled" or "failed".
        done, total, left: progress; left is in seconds, an estimate or None.
        error: a sentence on what went wrong.
        warnings: sentences on what else happened.
        label: its name on pages whose jobs wait for it.
    """

    label = "another job"

    def __init__(self, total: int, recipes: list[Recipe]):
        self.state, self.error, self.warnings = "waiting", "", []
        self.done, self.total, self.left = 0, total, None
        self.recipes = recipes
        self.process: subprocess.Popen | None = None
        self._cancelled, self._lock = False, threading.Lock()

    def arguments(self, folder: Path) -> list[str]:
        """The command, which may write files to this folder."""
        raise NotImplementedError

    def on_news(self, news: dict[str, Any]) -> None:
        """Take one line of what the process says, see `stein_core.cli.job.progress`."""
        self.done, self.total, self.left = news["done"], news["total"], news["left"]

    def collect(self, folder: Path) -> None:
        """Take what the process has written to the folder; it has ended well."""

    @property
    def active(self) -> bool:
        """Whether it may still end well."""
        return self.state in ("waiting", "running")

    def cancel(self) -> None:
        """Kill the process. What it has stored is kept."""
        with self._lock:
            self._cancelled = True
            if self.state == "waiting":
                self.state = "cancelled"
            if self.process:
                self.process.kill()

    def run(self) -> None:
        """Start the process and follow it to its end, on the calling thread."""
        try:
            with tempfile.TemporaryDirectory(prefix="steinlab-") as folder:
                self.follow(Path(folder))
            self.state = "done"
        except Exception as error:  # a page shows it
            if self._cancelled:  # the process was killed under our hands
                self.state = "cancelled"
            else:
                self.error, self.state = note(log, type(self).__name__, error), "failed"

    def follow(self, folder: Path) -> None:
        """Run the command until it has ended. Raises ValueError saying why it has not ended well."""
        imports = [word for file in files_of(self.recipes) for word in ("--import", file)]
        command = [*imports, *self.arguments(folder), "--job", str(os.getpid())]
        given = json.dumps([recipe.to_dict() for recipe in self.recipes])
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        # Without the second variable the process would take most of a GPU's memory at once.
        environment = {**os.environ, "PYTHONPATH": path, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        with (folder / "stderr").open("w+", encoding="utf-8", errors="replace") as errors:
            with self._lock:
                if self._cancelled or STOPPING.is_set():
                    self._cancelled = True
                    raise InterruptedError
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "stein_core", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=errors, text=True, encoding="utf-8", errors="replace", env=environment,
                )  # fmt: skip
                self.state = "running"
            with self.process:
                lower_priority(self.process.pid)
                with suppress(BrokenPipeError), self.process.stdin as stdin:
                    stdin.write(given)
                for line in self.process.stdout:
                    with suppress(ValueError):  # what a user's own file prints, or half a line of a killed process
                        news = json.loads(line)
                        if isinstance(news, dict):
                            self.on_news(news)
            errors.seek(0)
            said = errors.read()
        self.warnings = [line.removeprefix("warning: ") for line in said.splitlines() if line.startswith("warning: ")]
        for warning in self.warnings:
            log.warning(warning)
        if self.process.returncode not in GOOD:
            if not self._cancelled and "Traceback" in said:
                log.error("%s: %s", type(self).__name__, said)
            raise ValueError(why(self.process.returncode, said))
        self.collect(folder)


def lower_priority(pid: int) -> None:
    """Let the system prefer this process to that one."""
    with suppress(OSError, AttributeError):  # it has ended already, or the system has no priorities
        os.setpriority(os.PRIO_PROCESS, pid, min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICE))


def why(code: int, said: str) -> str:
    """A sentence on why a process has ended with this exit code, from what it has written to stderr."""
    lines = said.strip().splitlines()
    if told := [line for line in lines if line.startswith("error: ")]:
        return told[-1].removeprefix("error: ")
    if code == -signal.SIGKILL:
        return (
            "The job's process was killed, perhaps because the machine has no memory left. Try again, or compute less."
        )
    if code < 0:
        return f"The job's process has crashed ({signal.strsignal(-code)}). Try again, or compute less."
    return short(lines[-1]) if lines else f"The job's process has ended with exit code {code}."


class SweepJob(Job):
    """One sweep. rows: what has come so far, in the end all that there are of `recipes`, whoever computed them."""

    label = "a sweep"

    def __init__(self, recipes: list[Recipe], stop: Stop = Stop()):
        super().__init__(len(recipes), recipes)
        self.stop = stop
        self.rows: list[dict[str, Any]] = []

    def arguments(self, folder: Path) -> list[str]:
        stop = self.stop
        numbers = {"stages": stop.stages, "least": stop.least, "noisy": stop.noisy, "most": stop.most}
        options = {"store": store().path, "workers": WORKERS, "stop": stop.rule, **numbers}
        return ["sweep", "recipes", "--file", "-", *(f"--{name}={value}" for name, value in options.items())]

    def on_news(self, news: dict[str, Any]) -> None:
        super().on_news(news)
        if "row" in news:
            self.rows.append(news["row"])


class JobQueue:
    """Jobs in the order in which they came, `most` at a time, each followed by a daemon thread."""

    def __init__(self, most: int):
        self.most = most
        self._waiting: list[Job] = []
        self._begun: list[Job] = []
        self._lock = threading.Lock()

    def add(self, job: Job) -> None:
        """Run it when those before it have ended."""
        with self._lock:
            self._waiting.append(job)
            self._begin()

    def _begin(self) -> None:
        self._waiting = self._still_waiting()
        while self._waiting and len(self._begun) < self.most:
            self._begun.append(self._waiting.pop(0))
            threading.Thread(target=self._follow, args=self._begun[-1:], name="job", daemon=True).start()

    def _still_waiting(self) -> list[Job]:
        return [job for job in self._waiting if job.active]  # a cancelled job leaves the queue

    def _follow(self, job: Job) -> None:
        job.run()
        with self._lock:
            self._begun.remove(job)
            self._begin()

    def ahead(self, job: Job) -> int:
        """How many jobs have to end before it begins."""
        with self._lock:
            waiting = self._still_waiting()
        return waiting.index(job) + 1 if job in waiting else 0

    @property
    def running(self) -> str:
        """What those that have begun are called, as in "a sweep or NUTS"."""
        with self._lock:
            labels = [job.label for job in self._begun]
        return " or ".join(dict.fromkeys(labels or [Job.label]))

    @property
    def waiting(self) -> int:
        """How many have not begun."""
        with self._lock:
            return len(self._still_waiting())

    def cancel(self) -> None:
        """Cancel everything."""
        with self._lock:
            jobs, self._waiting = self._begun + self._waiting, []
        for job in jobs:
            job.cancel()

    @property
    def busy(self) -> bool:
        """Whether a job has begun and not ended."""
        return bool(self._begun)


JOBS = JobQueue(LIMITS.jobs)
RECORDINGS = JobQueue(2)  # they take seconds, so they do not wait for sweeps


@atexit.register
def stop() -> None:
    """End all jobs and background work. A compilation cannot be ended: wait PATIENCE seconds at most."""
    STOPPING.set()
    JOBS.cancel()
    RECORDINGS.cancel()
    until = time.monotonic() + PATIENCE
    while (JOBS.busy or RECORDINGS.busy or LOOKERS.busy) and time.monotonic() < until:
        time.sleep(0.02)
