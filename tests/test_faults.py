"""What goes wrong is said, and nothing is lost: memory, disk, scores that are no number."""

import gc
import logging
import re
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bokeh.document import Document
from desks import desk  # noqa: F401  (a fixture)
from panel.io.state import set_curdoc

from app import jobs, session
from app.chart import control
from app.failures import note
from app.jobs import Threads
from app.pages.collapse import Collapse
from stein_core import METHODS, TARGETS, Recipe, Spec, collect, commands, compile, machine, runner, stream
from stein_core import __main__ as cli
from stein_core.batches import Stop, run_batch
from stein_core.machine import bytes_needed, check_memory
from stein_core.recipe import target_of, traced
from stein_core.runner import assemble
from stein_core.sweeps import SWEEPS, Store, run_sweep
from stein_core.types import Target

SPECS = [Spec("wave", 10301, "smi", draws=10, capacity=6), Spec("gaussian", 200, "svgd", capacity=256),
         Spec("gaussian", 2, "smi", draws=10, capacity=256), Spec("gaussian", 50, "smi", draws=100, capacity=32)]  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{s.target}-{s.dim}-{s.method}-{s.capacity}")
def test_the_estimate_of_memory_is_near_what_xla_takes(spec):
    knobs = {k: jnp.asarray(v) for k, v in traced(spec, {}).items()}
    _, method = assemble(spec, target_of(spec), knobs)
    state = jax.eval_shape(lambda: method.init(jax.random.PRNGKey(0), spec.capacity))
    used = jax.jit(method.step).lower(jax.random.PRNGKey(0), state).compile().memory_analysis().temp_size_in_bytes
    assert 0.5 < bytes_needed(spec) / used < 8  # rather too much: a look has more pairs than a step


def test_what_would_not_fit_is_refused_before_anything_is_made(monkeypatch):
    huge = Spec("gaussian", 1000, "smi", draws=1000, capacity=4096)
    with pytest.raises(ValueError, match=r"would need about 400.* GB; .*fewer particles, draws or dimensions"):
        compile(huge)
    small = Spec("gaussian", 10, "svgd", capacity=64)
    check_memory(small)
    monkeypatch.setenv("STEINLAB_MEMORY_GB", "0.001")
    check_memory(small, lanes=2)
    with pytest.raises(ValueError, match="allowed: 0.0 GB"):
        run_batch([Recipe(small, {"method.particles": 64}, seed) for seed in range(8)], Stop(stages=1, most=350))
    monkeypatch.setenv("STEINLAB_MEMORY_GB", "much")
    with pytest.raises(ValueError, match="STEINLAB_MEMORY_GB = 'much' is not a number; allowed: 1e-06 to 1e\\+06"):
        check_memory(small)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts memory maps")
def test_where_memory_maps_run_short_unused_programs_go_and_then_none_is_compiled(monkeypatch):
    def programs() -> set[int]:
        return {key[0].dim for key in runner._steppers}

    runner._steppers.clear()
    gc.collect()
    held = compile(Spec("gaussian", 3, "svgd", capacity=8))
    compile(Spec("gaussian", 4, "svgd", capacity=8))
    before = machine.maps_used()
    monkeypatch.setattr(runner, "maps_used", lambda: 0.6)
    gc.disable()  # a server's searches for garbage are rare
    try:
        compile(Spec("gaussian", 5, "svgd", capacity=8))
        assert programs() == {3, 5} and machine.maps_used() < before + 1e-3  # one has come, one has gone
    finally:
        gc.enable()
    monkeypatch.setattr(machine, "maps_used", lambda: 0.95)
    with pytest.raises(ValueError, match="memory maps: 95% are in use"):
        compile(Spec("gaussian", 6, "svgd", capacity=8))
    assert compile(held.spec) is held


def test_a_full_disk_ends_a_sweep_with_its_rows_kept_and_it_goes_on_later(tmp_path):
    recipes = SWEEPS["variance-collapse"].make(methods=("langevin",), dims=(1, 2, 3), particles=(6,), seeds=8)
    stop = Stop(stages=1, most=700)
    store = Store(tmp_path / "s.sqlite")
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(Exception, match="full"):
        run_sweep(recipes, store, stop)
    kept = {row["key"] for row in store.rows()}
    assert 0 < len(kept) < len(recipes)
    store.close()
    again = Store(tmp_path / "s.sqlite")
    assert again.set_aside is None
    computed = []
    rows = run_sweep(recipes, again, stop, report=lambda row, *_: computed.append(row["key"]))
    assert len(rows) == len(recipes) and kept.isdisjoint(computed) and kept <= {row["key"] for row in rows}


@pytest.fixture
def cliff():
    """A slope whose score is no number beyond theta_0 = 3."""
    TARGETS.register("cliff", label="Cliff", reference="made up", dims=(1, 1), default_dim=1)(_cliff)
    yield
    del TARGETS._entries["cliff"]


def _cliff(dim):
    "Not a number beyond 3."

    def log_density(theta):
        return 2.0 * theta[0] + 1e-30 * jnp.sqrt(3.0 - theta[0])

    return Target(log_density, np.zeros(1), np.ones(1), (-4.0, 4.0, -4.0, 4.0), ("x",), lambda theta: {"x": theta})


def test_a_score_that_is_no_number_ends_the_run_at_the_step_before(cliff):
    """All particles climb at 0.02 a step from near 0 and cross 3 after about 150 steps."""
    knobs = {"method.particles": 3, "method.step_size": 0.01, "method.alpha": 0.0, "init.spread": 0.0}
    recipe = Recipe(Spec("cliff", 1, "svgd", optimizer="sgd", capacity=8), knobs)
    frames = list(stream(recipe, 400, every=50))
    last = frames[-1]
    assert not last.finite and np.isfinite(last.particles).all() and 140 < last.step < 160
    assert (last.particles > 3.0).any()  # the first state without a score
    before = collect(recipe, last.step - 1)[-1]
    assert before.finite and (before.particles <= 3.0).all()
    (result,) = run_batch([recipe], Stop(stages=1, most=700))
    assert result["stopped"] == "diverged" and result["steps"] == last.step


def test_an_exception_inside_a_method_leaves_the_others(capsys):
    @METHODS.register("faulty", label="Faulty", reference="made up", guides=("point",))
    def faulty(problem):
        "It fails."
        raise RuntimeError("no such thing")

    try:
        with pytest.raises(RuntimeError, match="no such thing"):
            compile(Spec("gaussian", 2, "faulty", capacity=8))
        with pytest.raises(RuntimeError, match="no such thing"):  # a failed compile is not kept as if it were one
            compile(Spec("gaussian", 2, "faulty", capacity=8))
    finally:
        del METHODS._entries["faulty"]
    assert collect(Recipe(Spec("gaussian", 2, "svgd", capacity=8)), 5)[-1].finite


def test_a_score_that_is_no_number_is_told_with_its_step_and_after_reset_the_session_goes_on(cliff, desk):
    knobs = {"method.particles": 3, "method.step_size": 0.01, "method.alpha": 0.0, "init.spread": 0.0}
    d = desk(target="cliff", optimizer="sgd", knobs=knobs)
    for again in range(2):
        d.until(lambda: d.news.get("alarm"))
        assert d.news["alarm"] == f"SVGD diverged at step {d.frame.step + 1}: try a smaller step size, then Reset (R)."
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
        assert caplog.text.count("Traceback") == 1 and "test_faults.py" in caplog.text
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
        note(logging.getLogger("app"), "work", caught.value)
        return caplog.text

    assert "Traceback" not in noted(lambda: METHODS["none"])
    assert "Traceback" in noted(lambda: control("n", (1, 2), False))  # Python's own, from a line of ours


def test_what_does_not_fit_is_refused_while_the_picture_stays(desk, monkeypatch):
    room = 2 * bytes_needed(Spec("gaussian", 3, "svgd", capacity=session.FIRST_CAPACITY))
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


def test_work_that_nobody_waits_for_says_once_that_it_failed(caplog):
    def fail():
        raise RuntimeError("no such thing")

    for heard, times in ((False, 1), (True, 0)):
        caplog.clear()
        with pytest.raises(RuntimeError, match="no such thing"):
            Threads(1, "test", heard).submit(fail).result()
        until = time.monotonic() + 5
        while caplog.text.count("Traceback") < times and time.monotonic() < until:
            time.sleep(0.01)
        assert caplog.text.count("Traceback") == times


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Page Variance collapse as a browser has it, with a store of its own."""
    monkeypatch.setenv("STEINLAB_CACHE", str(tmp_path))
    jobs._opened.cache_clear()
    document = Document()
    with set_curdoc(document):
        made = Collapse(Mock(), {"methods": "svgd", "dims": "5", "particles": "4", "seeds": "2"})
        made.post = made.told
        made.show()
        yield made
    jobs._opened.cache_clear()


def until(happened, seconds=60):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("damaged", [True, False])
def test_a_damaged_store_is_said_on_the_page_and_in_the_log(page, damaged, tmp_path, caplog):
    if damaged:
        (tmp_path / "sweeps.sqlite").write_bytes(b"not a database at all" * 200)
    page.arrived = True
    page._redraw()
    until(lambda: page.found is None and "shipped" in page.reading.object and page.curves)
    assert page.damaged.visible is damaged and "set aside" in page.damaged.objects[0].object
    assert caplog.text.count("sweeps.sqlite was damaged; it is now") == damaged
    assert len(list(tmp_path.glob("sweeps.sqlite.damaged-*"))) == damaged


def test_threads_that_come_at_once_open_one_store(tmp_path, monkeypatch):
    monkeypatch.setenv("STEINLAB_CACHE", str(tmp_path))
    (tmp_path / "sweeps.sqlite").write_bytes(b"not a database at all" * 200)
    jobs._opened.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        opened = set(pool.map(lambda _: jobs.store(), range(8)))
    jobs._opened.cache_clear()
    assert len(opened) == 1 and len(list(tmp_path.glob("*damaged*"))) == 1


def test_a_full_disk_under_a_sweep_is_said_on_its_page_and_rows_are_kept(page):
    store = jobs.store()
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    kept = 0
    with suppress(OSError):
        while True:
            store.add({"key": str(kept), "text": "x" * 100})
            kept += 1
    page._start(None)
    job = page.job
    page._start(None)  # the second of two quick clicks
    assert page.job is job
    until(lambda: not job.active)
    page._show_job()
    assert page.error.visible and not page.run.disabled
    assert page.error.object == "sweeps.sqlite takes no more rows: database or disk is full. Those that it has are kept."
    assert len(store.rows()) == kept > 0


def test_a_clock_that_jumps_can_neither_hold_nor_hurry_anything(desk, page, monkeypatch):
    """The one on the wall, which is set forward, back, and by daylight saving."""
    real, ahead, left = time.time, 0.0, []
    monkeypatch.setattr(time, "time", lambda: real() + ahead)
    d, job = desk(), jobs.SweepJob(list(page.recipes.values()))
    job.heard = lambda row, done, total, seconds: left.append(seconds)
    d.until(lambda: d.session.metrics)
    jobs.Line().add(job)
    until(lambda: job.state == "running")
    time.sleep(0.3)
    for ahead in (7200.0, -86400.0, 3600.0):
        step, pictures, metrics = d.news["step"], len(d.screen.frames), d.session.metrics
        d.until(lambda: d.news["step"] > step and len(d.screen.frames) > pictures and d.session.metrics is not metrics, 20)
        assert d.news["steps_per_second"] < 1e5
    until(lambda: not job.active)
    assert job.state == "done" and len(job.rows) == 2 and left and all(0 <= seconds < 600 for seconds in left)


def test_nothing_asks_the_clock_on_the_wall():
    """What waits or measures by it is held or hurried where it jumps; the date of a file or in a name is no harm."""
    root = Path(__file__).resolve().parents[1]
    sources = [file for folder in ("app", "stein_core") for kind in ("*.py", "*.js") for file in (root / folder).rglob(kind)]
    asks = re.compile(r"time\.time\(|datetime\.now\(|Date\.now\(|new Date\(\)|Date\(\) *[-<>]")
    found = [f"{file.name}: {asked}" for file in sources for asked in asks.findall(file.read_text())]
    assert len(sources) > 50 and not found


def test_a_store_that_cannot_be_written_is_said_in_a_sentence(tmp_path, monkeypatch, capsys):
    grid = ["sweep", "variance-collapse", "--methods", "langevin", "--dims", "1", "--particles", "6", "--store"]
    monkeypatch.setattr(commands, "keep_compiled", lambda: None)
    assert cli.main([*grid, str(tmp_path)]) == 2
    assert "is a folder; allowed: a file in a folder that exists." in capsys.readouterr().err
    for problem in ("database or disk is full", "database is locked"):

        def failing(*what, problem=problem):
            raise sqlite3.OperationalError(problem)

        monkeypatch.setattr(commands, "run_sweep", failing)
        store = str(tmp_path / "s.sqlite")
        assert cli.main([*grid, store]) == 2
        assert f"error: --store {store!r}: {problem}." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["--chains", "--warmup", "--samples", "--seed", "--spread"])
@pytest.mark.parametrize("value", ["-1", "1" + "0" * 400])
def test_numbers_that_fit_no_machine_are_refused(tmp_path, monkeypatch, capsys, name, value):
    monkeypatch.setattr(commands, "keep_compiled", lambda: None)
    assert cli.main(["nuts", "--out", str(tmp_path / "n.npz"), f"{name}={value}"]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1 and f"error: {name[2:]} = " in said[0] and len(said[0]) < 400
