"""What a server allows its visitors, and how that is changed."""

import os
import re
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest
from bokeh.document import Document
from checks import PATIENCE, finished, until

from steinlab import warm_up
from steinlab.pages.wave import session as wave_session
from steinlab.server import jobs, visitors
from steinlab.server.limits import KNOWN, LIMITS, Limits
from steinlab.stage import scene, session, worker
from steinlab.stage.setup import Setup
from steinlab.ui import job_bar
from steinlab.ui.job_bar import JobBar

README = Path(__file__).resolve().parents[1] / "app" / "README.md"


def test_every_limit_is_read_from_its_variable_and_stands_in_the_readme():
    assert list(KNOWN) == [f"STEINLAB_{field.upper()}" for field in Limits._fields]
    changed = Limits.read({name: str(least + 1) for name, (_, least, _, _) in KNOWN.items()})
    assert list(changed) == [least + 1 for _, least, _, _ in KNOWN.values()]
    rows = re.findall(
        r"^\| `(STEINLAB_[A-Z_]+)` \| ([\d,]+) \| ([\d,]+) to ([\d,]+) \| (.+) \|$", README.read_text(), re.MULTILINE
    )
    said = {
        name: (*(int(text.replace(",", "")) for text in numbers), what.replace("*", ""))
        for name, *numbers, what in rows
    }
    assert said == KNOWN


@pytest.mark.parametrize("text", ["", "ten", "-1", "0", "1e3", "99999999999"])
def test_a_bad_limit_is_refused_by_name(text):
    with pytest.raises(ValueError, match=re.escape(f"STEINLAB_JOBS = {text!r}; allowed: a whole number from 1 to 64.")):
        Limits.read({"STEINLAB_JOBS": text})


def test_a_long_limit_is_repeated_in_part():
    with pytest.raises(ValueError, match="STEINLAB_JOBS = '9{20,100}.*allowed: a whole") as refused:
        Limits.read({"STEINLAB_JOBS": "9" * 5000})
    assert len(str(refused.value)) < 300


def test_a_changed_limit_reaches_sliders_links_and_grids():
    script = """
from types import SimpleNamespace
from steinlab.pages.collapse.grid import Grid
from steinlab.ui.knob_widgets import widget
from steinlab.stage.live_page import PRESETS, Live
from steinlab.stage.setup import Setup, all_knobs
from steinlab.pages.wave.setup import WaveSetup
print(widget(all_knobs()["method.particles"], print).end)
print(Setup.from_query({"target": "gaussian", "dim": "7"})[1])
session = SimpleNamespace(open=lambda setup: None)
page = SimpleNamespace(presets=PRESETS["particles"], plain=Setup(), session=session)
print(*Live.go(page, next(one for one in page.presets if "dim=50" in one["link"])))
try: WaveSetup(knobs={"method.particles": 41})
except ValueError as error: print(error)
for changed in ({"particles": (41,)}, {"dims": (2, 7)}, {"dims": (2, 3, 4, 5)}, {}):
    print(Grid(**{"methods": ("svgd",), "dims": (2,), "seeds": 1} | changed).refusal())
"""
    limits = {"STEINLAB_PARTICLES": "40", "STEINLAB_DIM": "6", "STEINLAB_RUNS": "3"}
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, **limits}, capture_output=True, text=True)
    slider, dim, preset, wave, *grids = done.stdout.splitlines()
    assert slider == "40" and "Dimension = 7 is out of range; allowed on this server: 1 to 6 (STEINLAB_DIM)" in dim, (
        done.stderr
    )
    assert "allowed: 1 to 40" in wave
    assert grids == [
        "Particles = 41 is out of range; allowed on this server: 1 to 40 (STEINLAB_PARTICLES).",
        "Dimension = 7 is out of range; allowed on this server: 1 to 6 (STEINLAB_DIM).",
        "4 runs are too many; allowed on this server: 3 (STEINLAB_RUNS).",
        "",
    ]
    assert "Dimension = 50 is out of range; allowed on this server: 1 to 6" in preset


@pytest.mark.long
def test_a_server_with_the_least_of_everything_starts_and_shows_what_ships():
    script = """
import asyncio
from unittest.mock import Mock
from bokeh.document import Document
from panel.io.state import set_curdoc
from steinlab import notebook, shell
from steinlab.pages.collapse.series import points_of
from steinlab.pages.collapse.page import Collapse
from steinlab.pages.wave.recovery import Recovery
async def visit():
    recovery = Recovery(Mock(), Mock())
    recovery.panel.active = [0]
    with set_curdoc(Document()):
        page = Collapse(Mock(), {})
    for stop in page.presets:
        page._go(stop)
        page.computing.start(None)
        print(len(page.shipped), page.computing.run.disabled, page.computing.job, page.computing.reading.object)
    row = next(row for row in page.shipped.values() if row["dim"] == 100)
    page.replay.open(points_of([row], "sample_variance", "dim")[0])
    print(page.replay.reading.object)
asyncio.run(visit())
"""
    least = {name: str(least) for name, (_, least, _, _) in KNOWN.items()}
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, **least}, capture_output=True, text=True)
    *presets, run = done.stdout.splitlines()
    assert len(presets) > 5 and all(
        re.match(r"[1-9]\d* True None .* runs are too many; allowed on this server: 1 ", one) for one in presets
    ), done.stderr
    assert (
        run
        == "It is not repeated here: Dimension = 100 is out of range; allowed on this server: 1 to 2 (STEINLAB_DIM)."
    )


def test_a_target_of_more_dimensions_than_allowed_is_refused():
    assert Setup(target="gaussian", methods=("svgd",), dim=LIMITS.dim).dim == LIMITS.dim
    with pytest.raises(ValueError, match=f"dim = {LIMITS.dim + 1} is out of range"):
        Setup(target="gaussian", methods=("svgd",), dim=LIMITS.dim + 1)


def test_steps_a_second_are_paced_whatever_is_asked_for(monkeypatch):
    monkeypatch.setattr(worker, "LIMITS", LIMITS._replace(steps_per_second=200))
    pace, began = worker.Pace(), time.monotonic()
    taken = 0
    while time.monotonic() < began + 1:
        taken += pace.grant(1000)
    assert 150 < taken < 260
    assert pace.grant(0) == 0


def test_one_visitor_more_than_allowed_waits_until_another_leaves(monkeypatch):
    monkeypatch.setattr(visitors, "LIMITS", LIMITS._replace(sessions=2))
    open_pages, documents = visitors.Visitors(), [Document() for _ in range(3)]
    assert [open_pages.admit(one) for one in documents] == [True, True, False]

    async def leave():
        for end in documents[0].session_destroyed_callbacks:
            end(None)

    finished(leave())
    assert open_pages.admit(documents[2])


def test_preparations_wait_for_a_page_that_has_just_been_asked_for(monkeypatch):
    prepared = []
    monkeypatch.setattr(warm_up, "compile", lambda spec, measure: prepared.append(time.monotonic()))
    monkeypatch.setattr(scene.SideBySide, "scene", lambda *specs: prepared.append(time.monotonic()))
    monkeypatch.setattr(warm_up, "VISITORS", visitors.Visitors())
    monkeypatch.setattr(visitors.Visitors, "ARRIVING", 0.5)
    asked = time.monotonic()
    warm_up.VISITORS.admit(Document())
    warm_up.compile_particles()
    assert len(prepared) >= 2 and min(prepared) > asked + 0.5
    warm_up.compile_particles()
    assert time.monotonic() < asked + 5  # and nobody else is waited for


@pytest.mark.parametrize("compilers", [session.COMPILERS, wave_session.COMPILERS], ids=["particles", "wave"])
def test_preparations_wait_for_what_a_visitor_compiles(compilers, monkeypatch):
    prepared, release = [], threading.Event()
    monkeypatch.setattr(warm_up, "compile", lambda spec, measure: prepared.append(spec))
    monkeypatch.setattr(scene.SideBySide, "scene", lambda *specs: prepared.append(specs))
    compilers.submit(release.wait, 30)
    warm = threading.Thread(target=warm_up.compile_particles)
    warm.start()
    time.sleep(0.5)
    early = list(prepared)
    release.set()
    warm.join(PATIENCE)  # tests before this one may still be compiling
    assert not early and len(prepared) >= 2


def test_as_many_long_jobs_run_at_a_time_as_allowed(monkeypatch):
    assert jobs.JOBS.most == LIMITS.jobs
    release = threading.Event()

    class Held(jobs.Job):
        def follow(self, folder):
            self.state = "running"
            release.wait(PATIENCE)

    line, held = jobs.JobQueue(2), [Held(1, []) for _ in range(4)]
    for job in held:
        line.add(job)
    until(lambda: sum(job.state == "running" for job in held) >= 2)
    time.sleep(0.1)
    assert [job.state for job in held] == ["running", "running", "waiting", "waiting"]
    assert [line.ahead(job) for job in held] == [0, 0, 1, 2] and line.waiting == 2
    monkeypatch.setattr(job_bar, "JOBS", line)
    assert job_bar.progress(held[3], "steps") == "Waiting for another job to finish: position 2 of 2 in the queue"
    release.set()
    until(lambda: not any(job.active for job in held))
    assert all(job.state == "done" for job in held)
    gone = [weakref.ref(job) for job in held]
    held.clear()
    del job
    until(lambda: not any(one() for one in gone))  # a job may know the page that asked for it


def test_the_second_of_two_quick_clicks_starts_nothing(monkeypatch):
    added = []
    monkeypatch.setattr(job_bar, "JOBS", SimpleNamespace(add=added.append, ahead=lambda job: 0))
    bar = JobBar("Compute", "steps", lambda: jobs.Job(1, []), print)
    bar._start(None), bar._start(None)
    assert len(added) == 1
    added[0].cancel()
    bar.offered = False
    bar._start(None)
    assert len(added) == 1
    nothing = JobBar("Compute", "steps", lambda: None, print)
    nothing._start(None)
    assert len(added) == 1 and not nothing.active


RESIDENT = """
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
"""
KEPT = """
import numpy as np
from steinlab.app_hooks import keep_buffers

np.ones(10)
if {kept}:
    keep_buffers()
before = resident()
array = np.ones(2**23)  # 64 MB
del array
print(resident() - before > 32)
"""
COMPILED = """
import ctypes
from stein_core import Spec, compile

for method in ("svgd", "smi"):
    compile(Spec("gaussian", method=method, capacity=32))
before = resident()
ctypes.CDLL(None).malloc_trim(0)
print(before - resident())
"""


def answer(code: str) -> str:
    """What the code prints, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", RESIDENT + code], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc's malloc")
@pytest.mark.parametrize("kept", [True, False])
def test_memory_of_thousands_of_particles_stays_with_the_process(kept):
    assert answer(KEPT.format(kept=kept)) == str(kept)


@pytest.mark.rare
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc's malloc")
def test_memory_of_a_compilation_goes_back():
    assert float(answer(COMPILED)) < 20


KEEP = """
import jax
from stein_core import keep_compiled

folder = keep_compiled()
jax.jit(lambda x: x + 1)(1.0)
print(any(folder.iterdir()))
"""


@pytest.mark.long
def test_the_smallest_program_is_kept_for_the_next_start(monkeypatch, tmp_path):
    monkeypatch.setenv("STEINLAB_CACHE", str(tmp_path))
    assert answer(KEEP) == "True"
