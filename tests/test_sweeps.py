"""Sweeps: every row once, whatever runs them, and the same numbers after a kill as without one."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stein_core import Recipe, Spec, keep_compiled
from stein_core.contract.spec import capacity_for
from stein_core.sweep import grids
from stein_core.sweep.batches import program_of
from stein_core.sweep.grids import RUNS_AT_ONCE, SWEEPS, batches_of, row_of, run_sweep
from stein_core.sweep.keys import canonical, key_of
from stein_core.sweep.stop import Stop
from stein_core.sweep.store import MAGIC, Store

ROOT = Path(__file__).parents[1]
STOP = Stop(stages=1, most=700)
# Sixteen quick runs in four batches of two programs.
GRID = {"methods": ("langevin", "ensemble"), "dims": (1, 2, 3, 4), "particles": (6,), "seeds": 4}
SCRIPT = f"""
import sys, time
from stein_core.sweep.stop import Stop
from stein_core.sweep.store import Store
from stein_core.sweep.grids import SWEEPS, run_sweep
import stein_core
stein_core.keep_compiled()
def slowly(row, done, total, left):
    print(done, flush=True)
    time.sleep(float(sys.argv[2]))
recipes = SWEEPS["variance-collapse"].make(**{GRID!r})
run_sweep(recipes, Store(sys.argv[1]), Stop(stages=1, most=700), report=slowly)
"""


def grid(**settings):
    return SWEEPS["variance-collapse"].make(**{**GRID, **settings})


def plain(rows):
    """Rows without what the clock says, by key."""
    return {row["key"]: {k: v for k, v in row.items() if k != "seconds"} for row in rows}


def differing(rows, others):
    """What two tables differ in: (key, column, value, other value), or the keys of one alone."""
    both = rows.keys() & others.keys()
    pairs = [(key, name, value, others[key].get(name)) for key in both for name, value in rows[key].items()]
    return sorted(rows.keys() ^ others.keys()) + [pair for pair in pairs if pair[2] != pair[3]]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return plain(run_sweep(grid(), Store(tmp_path_factory.mktemp("sweep") / "s.sqlite"), STOP))


# ---------------------------------------------------------------- keys, rows, batches


def test_equal_experiments_have_one_key():
    spec = Spec("gaussian", 4, "svgd", capacity=8)
    same = [Recipe(spec), Recipe(spec, {"method.alpha": 1}), Recipe(spec, {"kernel.name": "rbf", "method.alpha": 1.0})]
    assert len({key_of(recipe, STOP) for recipe in same}) == 1
    assert len({json.dumps(canonical(recipe), sort_keys=True) for recipe in same}) == 1
    other = [Recipe(spec, {"method.alpha": 2}), Recipe(spec, seed=1), Recipe(spec, {"kernel.name": "imq"}),
             Recipe(Spec("gaussian", 5, "svgd", capacity=8)),
             Recipe(Spec("gaussian", 4, "damped", capacity=8))]  # fmt: skip
    assert len({key_of(recipe, STOP) for recipe in (spec and same[0], *other)}) == 6
    assert key_of(same[0], STOP) != key_of(same[0], Stop())
    annealed = Spec(
        "gaussian", 4, "annealed", capacity=8
    )  # its horizon is 1000 by default, and a float once it is given
    assert key_of(Recipe(annealed), STOP) == key_of(Recipe(annealed, {"method.horizon": 1000}), STOP)
    assert key_of(Recipe.from_dict(json.loads(json.dumps(same[2].to_dict()))), STOP) == key_of(same[0], STOP)


def test_the_grid_multiplies_only_what_a_method_has():
    recipes = SWEEPS["variance-collapse"].make(
        methods=("svgd", "langevin", "vi"), dims=(2, 5), particles=(5, 9), alphas=(0.5, 1.0), kernels=("rbf", "imq"),
        seeds=2,
        knobs={"init.spread": 2.0, "guide.width": 0.5},
    )  # fmt: skip
    counts = {m: sum(r.spec.method == m for r in recipes) for m in ("svgd", "langevin", "vi")}
    assert counts["svgd"] == 2 * 2 * 2 * 2 * 2 and counts["vi"] == 2 * 2
    assert all(r.knobs["init.spread"] == 2.0 for r in recipes)
    assert {r.knobs.get("guide.width") for r in recipes} == {None, 0.5}  # VI alone has a guide with a width
    assert {r.knobs.get("method.alpha") for r in recipes if r.spec.method == "svgd"} == {0.5, 1.0}
    assert len({key_of(r, STOP) for r in recipes}) == len(recipes)
    row = row_of(
        recipes[0], STOP, {"metrics": {"force": None}, "steps": 7, "stopped": "steps", "changes": [], "seconds": 0.1}
    )
    assert (row["method"], row["dim"], row["particles"], row["alpha"], row["force"]) == ("svgd", 2, 5, 0.5, None)
    assert Recipe.from_dict(row["recipe"]) == recipes[0]


def test_a_guide_and_its_options_are_of_the_methods_that_have_them():
    grid = SWEEPS["variance-collapse"].make
    few = {"dims": (4,), "methods": ("svgd", "smi"), "guide": "low_rank"}
    recipes = grid(**few, knobs={"guide.rank": "3", "guide.width": 0.5})
    assert [(r.spec.guide, dict(r.spec.options)) for r in recipes] == [("point", {}), ("low_rank", {"guide.rank": 3})]
    assert recipes[1].knobs["guide.width"] == 0.5
    assert key_of(recipes[1], Stop()) != key_of(grid(**few, knobs={"guide.rank": 4, "guide.width": 0.5})[1], Stop())
    with pytest.raises(ValueError, match="'lowrank'; did you mean 'low_rank'"):
        grid(dims=(4,), guide="lowrank")
    with pytest.raises(ValueError, match="unknown knob 'guide.rank'"):
        grid(dims=(4,), knobs={"guide.rank": 3})


def test_batches_depend_on_the_grid_alone():
    recipes = grid()
    batches = batches_of(recipes, STOP, 6)
    assert sorted(key_of(r, STOP) for b in batches for r in b) == sorted(key_of(r, STOP) for r in recipes)
    assert all(len({program_of(r, STOP) for r in b}) == 1 and len(b) <= 6 for b in batches)
    again = batches_of(recipes[::-1], STOP, 6)
    assert [[key_of(r, STOP) for r in b] for b in again] == [[key_of(r, STOP) for r in b] for b in batches]


# ---------------------------------------------------------------- what runs them


@pytest.mark.long
def test_on_threads_every_row_comes_once_with_a_report(undisturbed, tmp_path):
    store, reports = Store(tmp_path / "s.sqlite"), []
    recipes = grid()
    with ThreadPoolExecutor(2) as executor:
        rows = run_sweep(recipes + recipes[:3], store, STOP, executor, lambda *report: reports.append(report))
        assert executor.submit(int, 3).result() == 3  # it is the caller's: still open
    assert [row["key"] for row in rows] == [key_of(r, STOP) for r in recipes]
    assert differing(plain(rows), undisturbed) == [] == differing(plain(store.rows()), undisturbed)
    assert [done for _, done, _, _ in reports] == list(range(1, len(recipes) + 1))
    assert {total for _, _, total, _ in reports} == {len(recipes)}
    left = [seconds for *_, seconds in reports]
    assert min(left) >= 0 and left[-1] == pytest.approx(0, abs=1e-6)

    assert plain(run_sweep(recipes, store, STOP, report=lambda *_: pytest.fail("nothing was left"))) == undisturbed
    assert len(run_sweep(recipes[:5], store, STOP)) == 5


def test_a_row_without_the_newest_diagnostic_is_computed_again_and_replaced(undisturbed, tmp_path):
    store, recipes = Store(tmp_path / "s.sqlite"), grid()[:4]
    keys = [key_of(recipe, STOP) for recipe in recipes]
    old, new = dict(undisturbed[keys[0]]), {**undisturbed[keys[1]], "force": -1.0}
    del old["stein_trace"]
    for row in (old, new):
        store.add(row)
    fresh = []
    rows = run_sweep(recipes, store, STOP, report=lambda row, *_: fresh.append(row["key"]))
    assert set(fresh) == {keys[0], keys[2], keys[3]}
    assert rows[0]["stein_trace"] == undisturbed[keys[0]]["stein_trace"] and rows[1]["force"] == -1.0
    store.add(old)  # by another process of the earlier version
    assert store.rows(keys[:1])[0]["stein_trace"] is not None


@pytest.mark.long
def test_on_a_cluster_of_two_workers(undisturbed, tmp_path):
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    store, reports = Store(tmp_path / "s.sqlite"), []
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client, client.get_executor(pure=False) as executor:
        client.run(os.chdir, ROOT)
        if os.environ.get("STEINLAB_CACHE"):
            client.run(keep_compiled)
        rows = run_sweep(grid(), store, STOP, executor, lambda *report: reports.append(report))
        ran = set(client.run(lambda: "stein_core.sweep.batches" in sys.modules).values())
    assert ran == {True}  # both worked
    assert differing(plain(rows), undisturbed) == [] and len(reports) == len(rows) == len(store.rows())


# ---------------------------------------------------------------- kill, cancel, damage


def started(path, pause):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, path, str(pause)], stdout=subprocess.PIPE, text=True, env=environment
    )


@pytest.mark.long
def test_killed_in_the_middle_and_started_again(undisturbed, tmp_path):
    path = str(tmp_path / "s.sqlite")
    process = started(path, 30)
    assert process.stdout.readline().strip() == "1"  # one row is stored, and it sleeps
    process.send_signal(signal.SIGKILL)
    assert process.wait(20) == -signal.SIGKILL
    store = Store(path)
    before = plain(store.rows())
    assert store.set_aside is None and 1 <= len(before) < len(undisturbed)
    fresh = []
    rows = run_sweep(grid(), store, STOP, report=lambda row, *_: fresh.append(row["key"]))
    assert differing(plain(rows), undisturbed) == [] and not set(fresh) & set(before)
    assert len(fresh) == len(set(fresh)) == len(rows) - len(before) and len(store.rows()) == len(rows)


@pytest.mark.long
def test_two_processes_on_one_store(undisturbed, tmp_path):
    path = str(tmp_path / "s.sqlite")
    processes = [started(path, 0), started(path, 0)]
    assert [p.wait(200) for p in processes] == [0, 0]
    for process in processes:
        process.stdout.close()
    assert differing(plain(Store(path).rows()), undisturbed) == [] and len(Store(path).rows()) == len(undisturbed)


def test_two_processes_that_begin_a_store_wait_for_each_other(tmp_path):
    other = sqlite3.connect(tmp_path / "s.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")  # as it is while the other one makes its table
    end = threading.Timer(0.3, other.execute, ["COMMIT"])
    end.start()
    assert Store(tmp_path / "s.sqlite").rows() == [] and end.finished.is_set()


def test_interrupted_keeps_what_has_finished(undisturbed, tmp_path):
    """As by Ctrl-C."""
    store, seen = Store(tmp_path / "s.sqlite"), []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it

    def interrupt(row, *_):
        seen.append(row)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)

    with ThreadPoolExecutor(1) as executor, pytest.raises(KeyboardInterrupt):
        run_sweep(grid(), store, STOP, executor, interrupt)
    signal.signal(signal.SIGINT, before)
    kept = plain(store.rows())
    assert 3 <= len(kept) < len(undisturbed) and kept.items() <= undisturbed.items()
    assert differing(plain(run_sweep(grid(), store, STOP)), undisturbed) == []


def test_an_error_in_one_batch_leaves_the_others(undisturbed, tmp_path, monkeypatch):
    original = grids.run_batch

    def broken(batch, *rest):
        if batch[0].spec.method == "ensemble":
            raise RuntimeError("out of memory")
        return original(batch, *rest)

    monkeypatch.setattr(grids, "run_batch", broken)
    store = Store(tmp_path / "s.sqlite")
    with pytest.raises(RuntimeError, match="out of memory"):
        run_sweep(grid(), store, STOP)
    kept = plain(store.rows())
    assert {row["method"] for row in kept.values()} == {"langevin"} and len(kept) == len(undisturbed) / 2
    monkeypatch.undo()
    assert differing(plain(run_sweep(grid(), store, STOP)), undisturbed) == []


def test_a_damaged_store_is_set_aside(tmp_path):
    path, damaged = tmp_path / "s.sqlite", MAGIC + b"not a database at all" * 200
    path.write_bytes(damaged)
    store = Store(path)
    assert store.set_aside.parent == tmp_path and store.set_aside.read_bytes() == damaged
    store.add({"key": "a", "v": 1})
    store.add({"key": "a", "v": 2})  # the first one stays
    store.close()
    again = Store(path)
    assert again.set_aside is None and again.rows() == [{"key": "a", "v": 1}] and again.rows(["b"]) == []
    with pytest.raises(ValueError, match="there is no such folder"):
        Store(tmp_path / "no" / "s.sqlite")


@pytest.mark.parametrize("text", [b"x,y\n1,2\n", b"{}", b"SQLite format 4" + b"." * 5000, b"\0" * 8192])
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(tmp_path, text):
    path = tmp_path / "results.csv"
    path.write_bytes(text)
    with pytest.raises(ValueError, match="results.csv' is no SQLite file, and is left as it is"):
        Store(path)
    assert [file.name for file in tmp_path.iterdir()] == ["results.csv"] and path.read_bytes() == text


def test_a_file_that_has_taken_the_place_of_a_store_is_left_as_it_is(tmp_path):
    path = tmp_path / "s.sqlite"
    store = Store(path)
    store.add({"key": "a", "text": "a" * 9000})
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    text = b"my own notes. " * 2000
    path.write_bytes(text)
    store._db.execute("PRAGMA shrink_memory")
    with pytest.raises(ValueError, match="is no SQLite file"):
        store.rows()
    assert path.read_bytes() == text and not list(tmp_path.glob("*damaged*"))


def test_an_empty_file_becomes_a_store(tmp_path):
    (tmp_path / "s.sqlite").touch()
    store = Store(tmp_path / "s.sqlite")
    store.add({"key": "a"})
    assert store.rows() == [{"key": "a"}] and not store.set_aside


def harm(store, path):
    """Damage inside a store: its first page, which says that it is a database, is as it was."""
    for key in "abc":
        store.add({"key": key, "text": key * 9000})
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 3)
    store._db.execute("PRAGMA shrink_memory")  # it reads the file again, as after many other rows


@pytest.mark.parametrize("opened", [False, True])
def test_damage_inside_a_store_is_found_whether_it_is_open_or_not(tmp_path, opened):
    path = tmp_path / "s.sqlite"
    store = Store(path)
    harm(store, path)
    if not opened:
        store.close()
        store = Store(path)
        assert store.set_aside
    assert store.rows() == [] and store.set_aside.stat().st_size > 4 * 4096
    store.add({"key": "d"})
    assert store.rows(["a", "d"]) == [{"key": "d"}]
    store.close()
    assert Store(path).rows() == [{"key": "d"}]


def test_of_two_that_find_a_store_damaged_the_second_takes_what_the_first_has_begun(tmp_path):
    path = tmp_path / "s.sqlite"
    first, second = Store(path), Store(path)
    harm(first, path)
    second._db.execute("PRAGMA shrink_memory")
    assert first.rows() == [] and first.set_aside
    first.add({"key": "d"})
    assert second.rows() == [{"key": "d"}] and not second.set_aside and len(list(tmp_path.glob("*damaged-*[0-9]"))) == 1


def test_a_locked_store_is_not_a_damaged_one(tmp_path, monkeypatch):
    path = tmp_path / "s.sqlite"
    monkeypatch.setattr("stein_core.sweep.store.PATIENCE", 0.1)
    holder = sqlite3.connect(path)
    holder.execute("CREATE TABLE something (x)")
    holder.commit()
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        Store(path)
    holder.rollback()
    holder.close()
    assert [file.name for file in tmp_path.iterdir() if "damaged" in file.name] == []


def test_a_diverged_run_is_a_row(tmp_path):
    recipe = Recipe(
        Spec("gaussian", 2, "langevin", capacity=capacity_for(6)), {"method.particles": 6, "method.step_size": 1000.0}
    )
    (row,) = run_sweep([recipe], Store(tmp_path / "s.sqlite"), STOP)
    assert row["stopped"] == "diverged" and row["steps"] < 10 and RUNS_AT_ONCE["cpu"] >= 1
