"""Long jobs: their queue, their processes, and what a page hears of them."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from checks import until

from stein_core import KERNELS, Recipe
from stein_core.papers.recording import record
from stein_core.papers.wave_nuts import run_nuts
from stein_core.sweep.grids import run_sweep
from stein_core.sweep.store import MAGIC, Store
from stein_core.targets.wave import GRID, dim_of
from steinlab.pages.collapse.grid import SHIPPED, Grid
from steinlab.pages.collapse.recording import RecordJob
from steinlab.pages.collapse.replay import Replay
from steinlab.pages.collapse.series import points_of
from steinlab.pages.wave.nuts import NutsJob, reference_of
from steinlab.pages.wave.setup import WaveSetup
from steinlab.server import jobs
from steinlab.server.background import Threads
from steinlab.server.jobs import Job, JobQueue, SweepJob
from steinlab.stage import nuts_job
from steinlab.ui.job_bar import progress

SMALL = list(Grid(("svgd",), (5,), particles=(4,), seeds=1).recipes().values())
LONG = list(Grid(("smi",), (90, 100), particles=(40,), seeds=8).recipes().values())
ROOT = SHIPPED.parents[1]


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    kept = Store(tmp_path / "rows.sqlite")
    monkeypatch.setattr(jobs, "store", lambda: kept)
    return kept


@pytest.fixture
def begun():
    """Start a job; at the end it is cancelled."""
    started = []

    def begin(job):
        started.append(job)
        JobQueue(1).add(job)
        until(lambda: job.process is not None or not job.active)
        return job

    yield begin
    for job in started:
        job.cancel()


def children(pid) -> list[int]:
    """The processes that this one has started, or a thread of it has."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(") ")[2].split()[:2]
        except OSError:  # it has ended
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def alive(pid) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


class Gated(Job):
    """It does what it is told, in no process."""

    def __init__(self, work=lambda: None):
        super().__init__(1, [])
        self.work = work

    def follow(self, folder):
        self.state = "running"
        self.work()


def test_jobs_run_one_at_a_time_in_their_order():
    gate, order = threading.Event(), []
    line, made = JobQueue(1), [Gated(lambda i=i: (order.append(i), gate.wait(30))) for i in range(3)]
    for job in made:
        line.add(job)
    until(lambda: made[0].state == "running")
    assert [line.ahead(job) for job in made] == [0, 1, 2] and line.waiting == 2
    made[1].cancel()
    assert made[1].state == "cancelled" and line.ahead(made[2]) == 1
    gate.set()
    until(lambda: made[2].state == "done")
    assert made[0].state == "done" and order == [0, 2]


def test_a_job_that_fails_says_so_and_the_next_one_runs():
    def fail():
        raise RuntimeError("broken")

    line, bad, good = JobQueue(1), Gated(fail), Gated()
    line.add(bad)
    line.add(good)
    until(lambda: good.state == "done")
    assert (bad.state, bad.error) == ("failed", "RuntimeError: broken")


def test_jobs_that_may_run_at_a_time_do_not_wait_for_each_other():
    release, line = threading.Event(), JobQueue(2)
    long, short = Gated(lambda: release.wait(30)), Gated(release.set)
    for job in (long, short):
        line.add(job)
    until(lambda: long.state == short.state == "done", seconds=10)


# ---------------------------------------------------------------- processes


@pytest.mark.long
def test_rows_of_a_job_are_those_of_the_library_and_are_kept_for_the_next(shelf, tmp_path):
    job = SweepJob(SMALL)
    job.run()
    assert job.state == "done" and job.done == 1 == len(job.rows) and job.rows == shelf.rows()
    (here,) = run_sweep(SMALL, Store(tmp_path / "other.sqlite"))
    other = ("seconds", "made")
    assert {k: v for k, v in job.rows[0].items() if k not in other} == {k: v for k, v in here.items() if k not in other}
    again = SweepJob(SMALL)
    again.run()
    assert again.rows == job.rows and again.done == 1


@pytest.mark.long
def test_nuts_and_a_recording_give_the_numbers_that_the_library_gives(monkeypatch, tmp_path):
    monkeypatch.setattr(nuts_job, "_made", {})
    monkeypatch.setattr(nuts_job, "WARMUP", 60)
    monkeypatch.setattr(nuts_job, "SAMPLES", 40)
    setup = WaveSetup(width=2, data=((-1.0, 0.5), (0.1, 1 / 3)), knobs={"target.noise": 0.3})
    job = NutsJob(setup)
    job.run()
    assert (job.state, job.error, job.done, job.total) == ("done", "", 100, 100)
    knobs = {"target.noise": 0.3, "target.data": setup.data}
    values = run_nuts("wave", dim_of(2), knobs, GRID, warmup=60, samples=40)
    found = reference_of(setup)
    np.testing.assert_array_equal(found.values, values[:, ::4])
    assert found.x is GRID and len(found.about["r_hat"]) == len(GRID) and found.about["made"] == "computed here"

    recipe = Recipe(SMALL[0].spec, SMALL[0].knobs, 0, ((100, "method.step_size", 0.01),))
    job = RecordJob(recipe, 200)
    job.run()
    assert (job.state, job.error, job.done) == ("done", "", 200)
    for shot, expected in zip(job.recording.shots, record(recipe, 200).shots, strict=True):
        for one, other in zip(shot, expected):
            np.testing.assert_array_equal(one, other)


def test_a_job_that_is_cancelled_ends_within_a_second_and_a_killed_one_says_why(shelf, begun):
    killed = begun(SweepJob(LONG))
    assert os.getpriority(os.PRIO_PROCESS, killed.process.pid) >= min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
    time.sleep(1)
    os.kill(killed.process.pid, signal.SIGKILL)
    until(lambda: not killed.active, seconds=20)
    assert killed.state == "failed" and killed.error.startswith("The job's process was killed, perhaps because")
    cancelled = begun(SweepJob(LONG))
    pid = cancelled.process.pid
    assert progress(cancelled, "runs").startswith("0 of 16 runs, no estimate yet")
    began = time.monotonic()
    cancelled.cancel()
    until(lambda: not cancelled.active and not alive(pid), seconds=20)
    assert cancelled.state == "cancelled" and not cancelled.error and time.monotonic() - began < 1.5


@pytest.mark.parametrize("code, said, sentence", [
    (2, "warning: old\nerror: rows.sqlite takes no more rows.\n", "rows.sqlite takes no more rows."),
    (-9, "", "The job's process was killed, perhaps because the machine has no memory left. Try again, or "
     "compute less."),
    (-6, "F1 Check failed\n", "The job's process has crashed (Aborted). Try again, or compute less."),
    (1, "Traceback ...\n  File\nMemoryError: 3 GB\n", "MemoryError: 3 GB"),
    (1, "", "The job's process has ended with exit code 1."),
])  # fmt: skip
def test_however_a_process_ends_the_page_has_a_sentence(code, said, sentence):
    assert jobs.why(code, said) == sentence


SERVER = """
import time
from steinlab.pages.collapse.grid import Grid
from steinlab.server import jobs
job = jobs.SweepJob(list(Grid(("smi",), (90, 100), particles=(40,), seeds=8).recipes().values()))
jobs.JOBS.add(job)
while job.process is None:
    time.sleep(0.01)
print(job.process.pid, flush=True)
time.sleep({seconds})
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")
@pytest.mark.parametrize("end", ["killed", "normal"])
def test_the_end_of_the_server_leaves_no_job_behind(tmp_path, end):
    environment = {**os.environ, "STEINLAB_CACHE": str(tmp_path)}
    script = SERVER.format(seconds=600 if end == "killed" else 1)
    server = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    with server:
        job = int(server.stdout.readline())
        assert children(server.pid) == [job]
        if end == "killed":
            server.kill()
        began = time.monotonic()
        server.wait(20)
    until(lambda: not alive(job), seconds=30)
    assert end == "killed" or time.monotonic() - began < 10


OWN = """
import jax.numpy as jnp
from stein_core import KERNELS

print('{"this is": "no news"')

@KERNELS.register("own", label="Own", reference="me")
def own(u):
    "Gaussian."
    return jnp.exp(-u)
"""


@pytest.mark.long
def test_what_a_file_has_registered_is_imported_by_the_job_and_what_no_file_has_is_refused(shelf, tmp_path):
    file = tmp_path / "my_kernel.py"
    for filename in (str(file), "<lesson>"):
        file.write_text(OWN)
        exec(compile(OWN, filename, "exec"), {"__name__": "panel_setup_module"})  # as `panel serve --setup` does
        try:
            (recipe,) = Grid(("svgd",), (5,), particles=(4,), kernels=("own",), seeds=1).recipes().values()
            job = SweepJob([recipe])
            job.run()
        finally:
            del KERNELS._entries["own"]
        if filename == "<lesson>":
            assert job.state == "failed" and job.error.startswith("'own' was registered by no file")
        else:
            assert job.state == "done" and job.rows[0]["kernel"] == "own", job.error


@pytest.mark.long
def test_a_store_that_a_job_finds_damaged_is_said(shelf, tmp_path):
    shelf.close()
    shelf.path.write_bytes(MAGIC + b"not a database at all" * 200)
    job = SweepJob(SMALL)
    job.run()
    assert job.state == "done" and len(job.rows) == 1
    assert "rows.sqlite was damaged; it is now" in job.warnings[0]


@pytest.mark.long
def test_a_recording_is_shown_when_it_has_come_and_only_the_last_ones():
    replay = Replay()
    run = {"method": "svgd", "target": "gaussian", "dim": 5, "particles": 4, "alpha": 1.0, "kernel": "rbf",
           "rule": "median_log", "seed": 0, "stopped": "converged", "steps": 400, "sample_variance": 0.3,
           "recipe": SMALL[0].to_dict()}  # fmt: skip
    (point,) = points_of([run], "sample_variance", "dim")
    replay.open(point)
    first = replay.job
    replay.open(point)
    until(lambda: (replay.refresh(), replay.recording)[1])
    assert first.state == "cancelled" and replay.recording.shots[-1].step == 400
    assert replay.four.visible and replay.scrub.end == len(replay.recording.shots) - 1
    replay.open(point)
    last = replay.job
    replay.close()
    until(lambda: not last.active)
    assert last.state == "cancelled"


# ---------------------------------------------------------------- threads


def test_work_that_failed_is_said_once_and_the_thread_goes_on(caplog):
    def fail():
        raise RuntimeError("no such thing")

    threads, done = Threads(1, "test"), []
    threads.submit(fail)
    threads.submit(done.append, 1)
    until(lambda: not threads.busy)
    assert caplog.text.count("Traceback") == 1 and done == [1]


def test_threads_that_come_at_once_open_one_store(tmp_path, monkeypatch):
    monkeypatch.setenv("STEINLAB_CACHE", str(tmp_path))
    (tmp_path / "sweeps.sqlite").write_bytes(MAGIC + b"not a database at all" * 200)
    jobs._opened.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        opened = set(pool.map(lambda _: jobs.store(), range(8)))
    jobs._opened.cache_clear()
    assert len(opened) == 1 and len(list(tmp_path.glob("*damaged*"))) == 1
