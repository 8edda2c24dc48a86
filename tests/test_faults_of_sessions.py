"""Faults in a real session, page or job: what the user sees is a sentence, and what the server keeps is everything."""

import logging
import subprocess
import sys
import time
from unittest.mock import Mock

import jax.numpy as jnp
import numpy as np
import pytest
from bokeh.document import Document
from checks import until
from desks import cliff, desk  # noqa: F401  (fixtures)
from panel.io.state import set_curdoc

from stein_core import METHODS, Spec
from stein_core.runs.memory import bytes_needed
from stein_core.sweep.store import MAGIC
from steinlab.lesson.chart import control
from steinlab.pages.collapse.page import Collapse
from steinlab.server import jobs
from steinlab.server.errors import note
from steinlab.stage.programs import FIRST_CAPACITY


def test_a_score_that_is_no_number_is_told_with_its_step_and_after_reset_the_session_goes_on(cliff, desk):
    knobs = {"method.particles": 3, "method.step_size": 0.01, "method.alpha": 0.0, "init.spread": 0.0}
    d = desk(target="cliff", optimizer="sgd", knobs=knobs)
    for again in range(2):
        d.until(lambda: d.news.get("alarm"))
        advice = "Choose a smaller step size, then press Reset (R)."
        assert d.news["alarm"] == f"SVGD diverged at step {d.frame.step + 1}. {advice}"
        assert d.news["playing"] is False and 140 < d.frame.step < 160 and np.isfinite(d.frame.particles).all()
        d.session.reset()
        d.until(lambda: d.session.frames and d.frame.step == 0 and not d.news["alarm"])
        d.session.toggle()
        d.at(20)


def broken(state):
    raise RuntimeError("no such thing")


FAULTS = {
    "RuntimeError: no such thing": broken,
    "ValueError: operands could not be broadcast": lambda state: np.zeros(2) + np.zeros(3),
    "ValueError: Incompatible types for broadcasting": lambda state: jnp.broadcast_to(state.particles, (7, 7)),
}


@pytest.mark.parametrize("said", FAULTS)
def test_a_method_that_fails_is_told_and_another_one_runs(said, desk, caplog):
    """numpy's and JAX's ValueErrors are no refusals of ours: the log needs their traceback."""

    @METHODS.register("faulty", label="Faulty", reference="made up", guides=("point",))
    def faulty(problem):
        "It fails in its first step."
        svgd = METHODS["svgd"].make(problem, alpha=1.0)
        return svgd._replace(step=lambda key, state: FAULTS[said](state))

    try:
        d = desk(methods=("faulty",))
        d.until(lambda: d.news.get("alarm"))
        assert d.news["alarm"].startswith(said) and d.news["playing"] is False
        assert caplog.text.count("Traceback") == 1 and "test_faults_of_sessions.py" in caplog.text
        d.session.choose(methods=("svgd",))
        d.session.play(True)
        d.at(5)
        assert not d.news["alarm"]
    finally:
        del METHODS._entries["faulty"]


def test_what_we_refuse_is_a_line_of_the_log_and_what_others_raise_has_its_traceback(caplog):
    def noted(work) -> str:
        caplog.clear()
        with pytest.raises(ValueError) as caught:
            work()
        assert "\n" not in note(logging.getLogger("app"), "work", caught.value)
        return caplog.text

    def long():
        exec("raise ValueError('much ' * 100 + chr(10) + 'and more')")

    assert "Traceback" not in noted(lambda: METHODS["none"])
    assert "Traceback" in noted(lambda: control("n", (1, 2), False))  # Python's own, from a line of ours
    assert "and more" in noted(long)  # the log has it all


def test_what_does_not_fit_is_refused_while_the_picture_stays(desk, monkeypatch):
    room = 2 * bytes_needed(Spec("gaussian", 3, "svgd", capacity=FIRST_CAPACITY))
    monkeypatch.setenv("STEINLAB_MEMORY_GB", f"{room / 1e9}")
    refused = "Take fewer particles, draws or dimensions."
    d = desk(dim=3)
    d.at(5)
    d.session.turn("method.particles", 100)
    d.until(lambda: refused in d.news["alarm"])
    assert "capacity = 256" in d.news["alarm"] and d.news["playing"] is False and len(d.frame.particles) == 20
    at = d.frame.step
    d.session.turn("method.alpha", 2.0)
    d.session.play(True)
    d.at(at + 5)
    assert not d.news["alarm"] and d.session.shown()[0].changes[-1][1:] == ("method.alpha", 2.0)
    d.session.choose(dim=60)
    d.until(lambda: refused in d.news["alarm"])
    at = d.frame.step
    d.session.play(True)
    d.at(at + 5)
    assert not d.news["alarm"] and d.session.shown()[0].dim == 3


@pytest.fixture
def damaged(request, tmp_path):
    """Whether the file of a page's store is no database, from before the page is made."""
    if request.param:
        (tmp_path / "sweeps.sqlite").write_bytes(MAGIC + b"not a database at all" * 200)
    return request.param


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Page Variance collapse as a browser has it, with a store of its own."""
    monkeypatch.setenv("STEINLAB_CACHE", str(tmp_path))
    jobs._opened.cache_clear()
    document = Document()
    with set_curdoc(document):
        made = Collapse(Mock(), {"methods": "svgd", "dims": "5", "particles": "4", "seeds": "2"})
        made.told = []

        def post(news):
            made.on_news(news)
            made.told += [id(told[0]) for told in news.values() if isinstance(told, tuple)]  # when it is shown

        made.post = post
        made.show()
        yield made
    jobs._opened.cache_clear()


@pytest.mark.parametrize("damaged", [True, False], indirect=True)
def test_a_damaged_store_is_said_on_the_page_and_in_the_log(damaged, page, tmp_path, caplog):
    page.arrived = True
    page._redraw()
    until(lambda: id(page.requested) in page.told)
    assert page.found is None and "shipped" in page.computing.reading.object and page.curves
    assert page.damaged.visible is damaged and "set aside" in page.damaged.objects[0].object
    assert caplog.text.count("sweeps.sqlite was damaged; it is now") == damaged
    assert len(list(tmp_path.glob("sweeps.sqlite.damaged-*"))) == damaged


FULL = """
import sqlite3
import stein_core.sweep.store as kept

begin = kept.Store._open

def begin_full(store):
    begin(store)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    number = 0
    try:
        while True:
            with store._db:  # each on its own, for a full disk takes back all of them
                store._db.execute("INSERT INTO rows VALUES (?, ?)", (str(number), "{}" + " " * 100))
            number += 1
    except sqlite3.OperationalError:
        pass

kept.Store._open = begin_full
"""


@pytest.mark.long
def test_a_full_disk_under_a_sweep_is_said_on_its_page_and_rows_are_kept(page, tmp_path, monkeypatch):
    (tmp_path / "full.py").write_text(FULL)
    monkeypatch.setattr(jobs, "files_of", lambda recipes: [str(tmp_path / "full.py")])
    page.computing.start(None)
    job = page.computing.job
    page.computing.start(None)  # the second of two quick clicks
    assert page.computing.job is job
    until(lambda: not job.active)
    page._show_job()
    assert page.error.visible and not page.computing.run.disabled
    assert (
        page.error.object == "sweeps.sqlite takes no more rows: database or disk is full. Those that it has are kept."
    )
    assert len(jobs.store().rows()) > 0


@pytest.mark.rare
def test_a_clock_that_jumps_can_neither_hold_nor_hurry_anything(desk, page, monkeypatch):
    """The one on the wall, which is set forward, back, and by daylight saving."""
    real, ahead, left = time.time, 0.0, []
    monkeypatch.setattr(time, "time", lambda: real() + ahead)
    d, job = desk(), jobs.SweepJob(list(page.recipes.values()))
    job.on_news = lambda news: (jobs.SweepJob.on_news(job, news), left.append(news["left"]))
    d.until(lambda: d.session.metrics)
    jobs.JobQueue(1).add(job)
    until(lambda: job.state == "running")
    time.sleep(0.3)
    for ahead in (7200.0, -86400.0, 3600.0):
        step, pictures, metrics = d.news["step"], len(d.screen.frames), d.session.metrics
        d.until(
            lambda: d.news["step"] > step and len(d.screen.frames) > pictures and d.session.metrics is not metrics, 20
        )
        assert d.news["steps_per_second"] < 1e5
    until(lambda: not job.active)
    assert job.state == "done" and len(job.rows) == 2 and left and all(0 <= seconds < 600 for seconds in left)


LATER = """
import asyncio, os, sys
from bokeh.document import Document
from panel.io.state import set_curdoc
from steinlab import app_hooks

async def load():
    app_hooks.FIRST = 10 ** 6
    app_hooks.on_server_loaded(None)

asyncio.run(load())
before = set(sys.modules)

import holoviews as hv
from steinlab import notebook, shell, warm_up
from steinlab.lesson.host import NotebookHost, use_host

warm_up.compile_first_lesson()
with set_curdoc(Document()), use_host(NotebookHost(lambda call: call())):
    for page in shell.PAGES:
        made = shell.Shell({"page": page})
        made.begin()
        made.frame.get_root()
    chart = notebook.chart(lambda: hv.Curve([0, 1]))
    assert chart.settle(200) == "" and len(chart.figure) == 1, chart.problem
    chart.get_root()
large = "jax numpyro scipy pandas matplotlib holoviews bokeh panel_material_ui app stein_core".split()
print(sorted(name for name in set(sys.modules) - before if name.split(".")[0] in large), flush=True)
os._exit(0)  # as the server does
"""


@pytest.mark.rare
def test_no_large_package_is_imported_once_visitors_come():
    """Two threads that import parts of one package at the same time failed once in a while: Panel's look whether "" is
    a figure of HoloViews, while a lesson's first cell imported that."""
    answer = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, timeout=300)
    assert answer.stdout.strip() == "[]", answer.stdout + answer.stderr
