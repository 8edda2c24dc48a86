"""Long jobs beside the pages: their line, their threads, and how they give way to pages that play."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from checks import until

from app.pages.collapse.grid import SHIPPED, Grid
from app.pages.collapse.replay import Replay
from app.pages.collapse.series import points_of
from app.pages.wave.nuts import NutsJob
from app.pages.wave.setup import WaveSetup
from app.server import background, jobs
from app.server.background import LONGEST_REST, Breaks, Threads
from app.server.jobs import Job, Line, SweepJob
from stein_core.experiments import nuts
from stein_core.sweep import batches
from stein_core.sweep.store import Store

SMALL = list(Grid(("svgd",), (5,), particles=(4,), seeds=1).recipes().values())


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    kept = Store(tmp_path / "rows.sqlite")
    monkeypatch.setattr(jobs, "store", lambda: kept)
    return kept


def test_jobs_run_one_at_a_time_in_their_order(shelf, monkeypatch):
    gate, order = threading.Event(), []

    def sweep(recipes, store, stop, executor, report, cancelled, rest):
        order.append(recipes)
        while not gate.is_set() and not cancelled():
            time.sleep(0.01)
        return recipes

    monkeypatch.setattr(jobs, "run_sweep", sweep)
    line, (a, b, c) = Line(), (SweepJob([i]) for i in range(3))
    for job in (a, b, c):
        line.add(job)
    until(lambda: a.state == "running")
    assert [line.ahead(job) for job in (a, b, c)] == [0, 1, 2]
    b.cancel()
    assert b.state == "cancelled" and line.ahead(c) == 1
    a.cancel()
    until(lambda: c.state == "running")
    gate.set()
    until(lambda: c.state == "done")
    assert a.state == "cancelled" and order == [[0], [2]]


def test_a_job_that_fails_says_so_and_the_next_one_runs(shelf, monkeypatch):
    def sweep(recipes, store, stop, executor, report, cancelled, rest):
        if recipes == ["bad"]:
            raise ValueError("broken")
        return recipes

    monkeypatch.setattr(jobs, "run_sweep", sweep)
    line, bad, good = Line(), SweepJob(["bad"]), SweepJob([1])
    line.add(bad)
    line.add(good)
    until(lambda: good.state == "done")
    assert (bad.state, bad.error) == ("failed", "ValueError: broken")


def test_rows_of_a_job_are_kept_for_the_next(shelf):
    job = SweepJob(SMALL)
    job.run()
    assert job.state == "done" and len(job.rows) == 1 == len(shelf.rows())
    again = SweepJob(SMALL)
    again.run()
    assert again.rows == job.rows and again.done == 1


class Clock:
    """Time that passes where it is told to."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_a_job_has_the_share_of_one_page_more(monkeypatch):
    clock, playing, job = Clock(), 4, Job(1)
    monkeypatch.setattr(background, "time", clock)
    monkeypatch.setattr(background.SHARE, "pages", lambda within: playing)
    monkeypatch.setattr(background, "OTHERS", 1)

    def rest(worked: float) -> float:
        clock.now += worked
        began = clock.now
        assert job.give_way() is job.cancelled()
        return clock.now - began

    assert rest(1.0) == 0.0  # what came before its first piece of work is none of its doing
    assert rest(0.1) == pytest.approx(0.4, abs=0.03)
    assert rest(0.5) == pytest.approx(2.0, abs=0.03)
    assert rest(60.0) == pytest.approx(LONGEST_REST, abs=0.03)
    playing = 0
    assert rest(0.5) == 0.0
    playing = 4
    monkeypatch.setattr(background, "OTHERS", 2)  # three cores
    assert rest(0.5) == pytest.approx(1.0, abs=0.03)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(rest, 0.5).result() == 0.0  # another thread's first piece of work
    assert rest(0.5) == pytest.approx(2.0, abs=0.03)  # this one worked meanwhile
    job.cancel()
    assert rest(0.5) == 0.0 and job.give_way()


def test_sweeps_and_nuts_give_way_between_their_pieces(shelf, monkeypatch):
    taken = []
    monkeypatch.setattr(Breaks, "take", lambda breaks, stopped: taken.append((breaks, threading.current_thread().name)))
    monkeypatch.setattr(batches, "CHUNK_SECONDS", 0.0)  # a piece is as small as can be, however fast the machine is
    monkeypatch.setattr(nuts, "CHUNK_SECONDS", 0.0)
    sweep = SweepJob(list(Grid(("svgd",), (5,), particles=(4, 12), seeds=1).recipes().values()))
    for job, thread in ((sweep, "sweep"), (NutsJob(WaveSetup(width=2)), "jobs")):
        taken.clear()
        jobs.LINE.add(job)
        until(lambda: len(taken) > 10)
        if job is sweep:  # to its end, past the first batch: nobody else's thread is to rest
            until(lambda: not job.active)
        else:
            job.cancel()
            until(lambda: not job.active)
        assert job.state == ("done" if job is sweep else "cancelled")
        assert {breaks is job._breaks and name.startswith(thread) for breaks, name in taken} == {True}


def test_a_recording_gives_way_between_its_frames(monkeypatch):
    taken, news = [], []
    monkeypatch.setattr(Breaks, "take", lambda breaks, stopped: taken.append(stopped()))
    replay = Replay(news.append)
    run = {"method": "svgd", "target": "gaussian", "dim": 5, "particles": 4, "alpha": 1.0, "kernel": "rbf",
           "rule": "median_log", "seed": 0, "stopped": "converged", "steps": 400, "sample_variance": 0.3,
           "recipe": SMALL[0].to_dict()}  # fmt: skip
    replay.open(points_of([run], "sample_variance", "dim")[0])
    until(lambda: news)
    assert "recorded" in news[0] and len(taken) > 100 and not any(taken)


def test_the_end_of_the_process_does_not_wait_for_a_sweep(tmp_path):
    script = """
import time
from app.server import jobs
from stein_core.sweep.store import Store
kept = Store({path!r})
jobs.store = lambda: kept
jobs.run_sweep = lambda recipes, store, stop, executor, report, cancelled, rest: [
    work.result() for work in [executor.submit(time.sleep, 600) for recipe in recipes]
]
jobs.PATIENCE = 0.2
jobs.LINE.add(jobs.SweepJob([1, 2]))
time.sleep(0.3)
""".format(path=str(tmp_path / "rows.sqlite"))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=SHIPPED.parents[1], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_work_that_nobody_waits_for_says_once_that_it_failed(caplog):
    def fail():
        raise RuntimeError("no such thing")

    for heard, times in ((False, 1), (True, 0)):
        caplog.clear()
        with pytest.raises(RuntimeError, match="no such thing"):
            Threads(1, "test", heard).submit(fail).result()
        until(lambda: caplog.text.count("Traceback") >= times)
        assert caplog.text.count("Traceback") == times


def test_threads_that_come_at_once_open_one_store(tmp_path, monkeypatch):
    monkeypatch.setenv("STEINLAB_CACHE", str(tmp_path))
    (tmp_path / "sweeps.sqlite").write_bytes(b"not a database at all" * 200)
    jobs._opened.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        opened = set(pool.map(lambda _: jobs.store(), range(8)))
    jobs._opened.cache_clear()
    assert len(opened) == 1 and len(list(tmp_path.glob("*damaged*"))) == 1


def test_sweeps_that_may_run_at_a_time_do_not_wait_for_each_other():
    script = """
import threading
from app.server import jobs
release = threading.Event()
jobs.store = lambda: None
def run_sweep(recipes, store, stop, executor, report, cancelled, rest):
    for work in [executor.submit(recipes[0]) for _ in range(jobs.THREADS)]:
        work.result(30)
jobs.run_sweep = run_sweep
long, short = (jobs.SweepJob([work]) for work in (release.wait, release.set))
for job in (long, short):
    jobs.LINE.add(job)
release.wait(10)
print(release.is_set())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=SHIPPED.parents[1], env={**os.environ, "STEINLAB_JOBS": "2"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == "True", done.stderr
