"""What goes wrong is said, and nothing is lost: memory, disk, scores that are no number."""

import gc
import re
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from desks import cliff  # noqa: F401  (a fixture)

import stein_core.cli.main as cli
from stein_core import METHODS, Recipe, Spec, collect, compile, fit, stream
from stein_core.base import machine
from stein_core.cli import commands, recordings
from stein_core.contract.recipe import knobs_of
from stein_core.papers.wave_nuts import run_nuts
from stein_core.runs import cache as steppers
from stein_core.runs.assembly import assemble
from stein_core.runs.memory import bytes_needed, check_memory
from stein_core.sweep import grids
from stein_core.sweep.batches import run_batch
from stein_core.sweep.grids import SWEEPS, run_sweep
from stein_core.sweep.keys import key_of
from stein_core.sweep.stop import Stop
from stein_core.sweep.store import Store
from stein_core.targets.wave import dim_of

SPECS = [Spec("wave", 10301, "smi", draws=10, capacity=6), Spec("gaussian", 200, "svgd", capacity=256),
         Spec("gaussian", 2, "smi", draws=10, capacity=256),
         Spec("gaussian", 50, "smi", draws=100, capacity=32)]  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{s.target}-{s.dim}-{s.method}-{s.capacity}")
def test_the_estimate_of_memory_is_near_what_xla_takes(spec):
    knobs = {k: jnp.asarray(v) for k, v in knobs_of(spec, {}).traced.items()}
    _, method = assemble(spec, knobs)
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
    check_memory(small, runs=2)
    with pytest.raises(ValueError, match="allowed: 0.0 GB"):
        run_batch([Recipe(small, {"method.particles": 64}, seed) for seed in range(8)], Stop(stages=1, most=350))
    with pytest.raises(ValueError, match="capacity = 4096, draws = 2,.* would need about [1-9]"):
        fit("gaussian", particles=4096, progress=False)
    monkeypatch.setenv("STEINLAB_MEMORY_GB", "much")
    with pytest.raises(ValueError, match="STEINLAB_MEMORY_GB = 'much' is not a number; allowed: 1e-06 to 1000000"):
        check_memory(small)


@pytest.mark.rare
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts memory maps")
def test_where_memory_maps_run_short_unused_programs_go_and_then_none_is_compiled(monkeypatch):
    def programs() -> set[int]:
        return {key[0].dim for key in steppers._steppers}

    steppers._steppers.clear()
    gc.collect()
    held = compile(Spec("gaussian", 3, "svgd", capacity=8))
    compile(Spec("gaussian", 4, "svgd", capacity=8))
    before = machine.maps_used()
    monkeypatch.setattr(steppers, "maps_used", lambda: 0.6)
    gc.disable()  # a server's searches for garbage are rare
    try:
        compile(Spec("gaussian", 5, "svgd", capacity=8))
        assert programs() == {3, 5} and machine.maps_used() < before + 1e-3  # one has come, one has gone
    finally:
        gc.enable()
    monkeypatch.setattr(machine, "maps_used", lambda: 0.95 if len(programs()) > 1 else 0.4)
    monkeypatch.setattr(steppers, "maps_used", machine.maps_used)
    compile(Spec("gaussian", 7, "svgd", capacity=8))  # there is room where those that nobody uses have gone
    assert programs() == {3, 7}
    monkeypatch.setattr(machine, "maps_used", lambda: 0.95)
    monkeypatch.setattr(steppers, "maps_used", machine.maps_used)
    with pytest.raises(ValueError, match="memory maps: 95% are in use"):
        compile(Spec("gaussian", 6, "svgd", capacity=8))
    assert compile(held.spec) is held
    with pytest.raises(ValueError, match="memory maps: 95% are in use"):
        run_nuts("wave", dim_of(2), {}, np.zeros(1))
    with pytest.raises(ValueError, match="memory maps: 95% are in use"):
        run_batch(SWEEPS["variance-collapse"].make(methods=("svgd",), dims=(3,), particles=(7,)), Stop())


def test_nuts_that_would_not_fit_into_memory_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setattr("stein_core.papers.wave_nuts.make_room", lambda: pytest.fail("it begins"))
    monkeypatch.setenv("STEINLAB_MEMORY_GB", "1")
    with pytest.raises(ValueError, match="samples = 1000000 would need about 3.2 GB; allowed: 1.0 GB"):
        run_nuts("wave", dim_of(2), {}, np.zeros(100), samples=10**6)


@pytest.mark.long
def test_a_full_disk_ends_a_sweep_with_its_rows_kept_and_it_goes_on_later(tmp_path):
    recipes = SWEEPS["variance-collapse"].make(methods=("langevin",), dims=(1, 2, 3), particles=(6,), seeds=8)
    stop = Stop(stages=1, most=700)
    store = Store(tmp_path / "s.sqlite")
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(OSError, match="full"):
        run_sweep(recipes, store, stop)
    kept = {row["key"] for row in store.rows()}
    assert 0 < len(kept) < len(recipes)
    store.close()
    again = Store(tmp_path / "s.sqlite")
    assert again.set_aside is None
    computed = []
    rows = run_sweep(recipes, again, stop, report=lambda row, *_: computed.append(row["key"]))
    assert len(rows) == len(recipes) and kept.isdisjoint(computed) and kept <= {row["key"] for row in rows}


def test_a_full_disk_stops_the_threads_of_a_sweep_where_they_are(tmp_path, monkeypatch):
    recipes, begun = [Recipe(Spec("gaussian", dim, "langevin", capacity=8)) for dim in range(1, 9)], []

    def run_batch(batch, stop, report, cancelled):
        begun.append(batch)
        report(0, {})

    store = Store(tmp_path / "s.sqlite")
    monkeypatch.setattr(grids, "run_batch", run_batch)
    monkeypatch.setattr(grids, "row_of", lambda recipe, stop, result: {"key": key_of(recipe, stop)})
    monkeypatch.setitem(grids.RUNS_AT_ONCE, "cpu", 1)
    monkeypatch.setattr(store, "add", Mock(side_effect=OSError("no room")))
    with ThreadPoolExecutor(1) as one, pytest.raises(OSError, match="no room"):
        run_sweep(recipes, store, Stop(), one)
    assert len(begun) == 1


@pytest.mark.long
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


def test_an_exception_inside_a_method_leaves_the_others():
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


def test_nothing_asks_the_clock_on_the_wall():
    """What waits or measures by it is held or hurried where it jumps; the date of a file or in a name is no harm."""
    root = Path(__file__).resolve().parents[1]
    sources = [
        file for folder in ("app", "stein_core") for kind in ("*.py", "*.js") for file in (root / folder).rglob(kind)
    ]
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
    monkeypatch.setattr(recordings, "keep_compiled", lambda: None)
    assert cli.main(["nuts", "--out", str(tmp_path / "n.npz"), f"{name}={value}"]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1 and f"error: {name[2:]} = " in said[0] and len(said[0]) < 400
