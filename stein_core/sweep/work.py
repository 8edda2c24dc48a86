"""The one loop over an executor: jobs run on threads of this process, or in other ones."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from stein_core.base.devices import Pool

Job = TypeVar("Job")


def run_all(
    jobs: Iterable[Job],
    here: Callable[[Job, threading.Event], Any],
    elsewhere: Callable[[Job], Any],
    take: Callable[[Job, Any], None],
    executor: Executor | None = None,
    devices: int | None = None,
) -> None:
    """Run jobs, and take what each returns as soon as it has ended.

    Args:
        jobs: picklable, if the executor has processes.
        here: runs a job on a thread of this process. It stops early when the event is set, for example by Ctrl-C.
        elsewhere: runs a job in another process; it can be pickled.
        take: gets a job and what it returned, in this thread.
        executor: any of concurrent.futures; None for threads, one a core up to 4, or more for several devices.
        devices: how many of this process take jobs in turn; None for all GPUs, or for one on a CPU.

    Raises:
        ValueError: there are not so many devices, or other processes have the jobs.
        Exception: of the first job that failed, after the others have ended; or what `take` raises, at once.
    """
    stopped, threads = threading.Event(), executor is None or isinstance(executor, ThreadPoolExecutor)
    if devices is not None and not threads:
        raise ValueError(f"devices = {devices} with workers elsewhere, of which each has one; allowed: None.")
    pool = Pool(devices) if threads else None
    own = executor or ThreadPoolExecutor(pool.threads(min(4, os.cpu_count() or 1)), "sweep")
    if pool:
        pool.open(own._max_workers)

    def pinned(job):
        with pool.taken():
            return here(job, stopped)

    futures = {own.submit(pinned, job) if threads else own.submit(elsewhere, job): job for job in jobs}
    failure = None
    try:
        for future in as_completed(futures):
            if future.exception():
                failure = failure or future.exception()
            else:
                take(futures[future], future.result())
    finally:
        stopped.set()
        for future in futures:
            future.cancel()
        if executor is None:
            own.shutdown()
    if failure:
        raise failure
