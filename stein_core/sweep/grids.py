"""Sweeps: grids of recipes -> tidy rows in an SQLite file, resumable, on any executor.

A row is keyed by the hash of its recipe and stop rule: what is in the store is not computed again, so a sweep that was
killed goes on where it was. What is computed together depends on the grid alone, never on what is already there, so a
resumed sweep gives the values that an undisturbed one gives.
"""

from __future__ import annotations

import datetime
import hashlib
import inspect
import itertools
import json
import os
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Executor, ThreadPoolExecutor, wait
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Iterable
from uuid import uuid4

import jax

from stein_core.errors import short, unknown
from stein_core.facts import SweepFacts
from stein_core.machine import device_name, keep_compiled
from stein_core.recipe import Recipe
from stein_core.registry import BANDWIDTHS, DIAGNOSTICS, GUIDES, KERNELS, METHODS, OPTIMIZERS, TARGETS, Entry, Registry
from stein_core.spec import Options, Spec, all_options, capacity_for
from stein_core.sweep.batches import Stop, program_of, run_batch
from stein_core.sweep.store import Store

SWEEPS = Registry("sweep", SweepFacts)
RESULTS = 3  # part of every key: to be raised when the core's numbers change, so that old rows are not taken for new
RUNS_AT_ONCE = {"cpu": 8, "gpu": 128}  # runs that go side by side on one device


@SWEEPS.register("variance-collapse", label="Variance collapse", reference="SMI paper, fig. 2; Ba et al. 2022, fig. 4")
def variance_collapse(
    methods=("svgd", "annealed", "vi", "smi"),
    dims=(1, 2, 4, 8, 10, 20, 40, 60, 80, 100),
    particles=(20,),
    alphas=(1.0,),
    kernels=("rbf",),
    rules=("median_log",),
    seeds=1,
    target="gaussian",
    guide="",
    knobs=None,
) -> list[Recipe]:
    """Every method in every dimension, for each particle count, alpha, kernel and bandwidth rule, with seeds 0, 1 ...

    guide: for the methods that allow it. knobs: any other knob or option, for the methods that have it. Settings that a
    method does not have (alpha for Langevin, the particle count of VI) do not multiply its rows.

    Raises:
        ValueError: a knob or an option that no method has, or that the grid sets; a guide that no method allows.
    """
    if seeds < 1:
        raise ValueError(f"seeds = {short(seeds)} is too small; allowed: 1 or more.")
    own = {
        "method.particles": "particles",
        "method.alpha": "alphas",
        "kernel.name": "kernels",
        "bandwidth.rule": "rules",
    }
    knobs = dict(knobs or {})
    options = Options({name: knobs.pop(name) for name in list(knobs) if name in all_options()})

    def spec_of(method, dim, capacity=8):
        own_guide = guide if guide in METHODS[method].facts.guides else None
        return Spec(target, dim, method, own_guide, capacity=capacity, options=options)

    specs = [spec_of(method, dim) for method in methods for dim in dims[:1]]
    if guide and all(spec.guide != guide for spec in specs):
        raise unknown("guide for these methods:", guide, {g: 0 for s in specs for g in METHODS[s.method].facts.guides})
    known = dict.fromkeys(name for spec in specs for name in (*spec.knobs(), *spec.options) if name not in own)
    for name in (*knobs, *options):
        if name in own:
            raise ValueError(f"knob {short(name)!r} is an axis of the grid; allowed: {own[name]}.")
        if name not in known:
            raise unknown("knob", name, known)
    for registry, names in ((KERNELS, kernels), (BANDWIDTHS, rules)):
        for name in names:
            registry[name]  # also where no method has a kernel, a wrong name is said
    recipes = {}
    for method, dim, n, alpha, kernel, rule, seed in itertools.product(
        methods, dims, particles, alphas, kernels, rules, range(seeds)
    ):
        spec = spec_of(method, dim, capacity_for(n))
        wanted = {
            **knobs,
            "method.particles": n,
            "method.alpha": alpha,
            "kernel.name": kernel,
            "bandwidth.rule": rule,
        }
        without = idle_knobs(method)
        recipe = Recipe(spec, {k: v for k, v in wanted.items() if k in spec.knobs() and k not in without}, seed)
        recipes[json.dumps(canonical(recipe))] = recipe
    return list(recipes.values())


def idle_knobs(method: str) -> set[str]:
    """The common knobs that change nothing for a method: nothing interacts, or it has but one particle."""
    facts = METHODS[method].facts
    idle = set() if facts.interacts else {"kernel.name", "bandwidth.rule", "bandwidth.factor"}
    return idle | ({"method.particles"} if facts.single else set())


def canonical(recipe: Recipe) -> dict[str, Any]:
    """Recipe.to_dict with every knob that counts at its own value, default or not, and without the capacity, which
    changes nothing: equal experiments have equal dicts. (An entry that is registered anew keeps its name.)"""
    without = idle_knobs(recipe.spec.method)
    knobs = {k: recipe.knobs.get(k, knob.default) for k, knob in recipe.spec.knobs().items() if k not in without}
    knobs = {k: float(v) if isinstance(v, int) else v for k, v in sorted(knobs.items())}
    plain = {**recipe.to_dict(), "knobs": knobs}  # options that follow from the dimension are not written
    del plain["capacity"]
    return plain


def key_of(recipe: Recipe, stop: Stop) -> str:
    """Return the hash that names a row. If a user's file registered an entry, another text of it gives another hash."""
    sources = [source for entry in entries_in(recipe) if (source := source_of(entry))]
    text = json.dumps([RESULTS, canonical(recipe), asdict(stop), *sources], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def entries_in(recipe: Recipe) -> list[Entry]:
    """The entries that a recipe names: its method, target, guide and optimizer, and its choices."""
    spec, knobs = recipe.spec, recipe.spec.knobs()
    entries = [METHODS[spec.method], TARGETS[spec.target], GUIDES[spec.guide], OPTIMIZERS[spec.optimizer]]
    return entries + [
        knob.choices[recipe.knobs.get(name, knob.default)] for name, knob in knobs.items() if knob.choices
    ]


def files_of(recipes: Iterable[Recipe]) -> list[str]:
    """The files that another process has to import (`--import FILE.py`) before it can run these recipes.

    Raises:
        ValueError: an entry was registered by no file, but in a lesson or at a prompt.
    """
    entries = dict.fromkeys(entry for recipe in recipes for entry in entries_in(recipe))
    files = {}
    for entry in [*entries, *DIAGNOSTICS.entries()]:
        if is_ours(entry):
            continue
        try:
            file = os.path.abspath(inspect.getsourcefile(entry.make) or "")
        except TypeError:  # no function, no class
            file = ""
        if os.path.isfile(file):
            files[file] = None
        elif entry in entries:  # a diagnostic is only left out of the rows
            raise ValueError(
                f"{short(entry.name)!r} was registered by no file, so no other process can run it; allowed: entries "
                "of a file, as `panel serve app --setup FILE.py` has them."
            )
    return list(files)


def is_ours(entry: Entry) -> bool:
    """Whether stein_core itself has registered an entry."""
    return (getattr(entry.make, "__module__", None) or "").startswith("stein_core.")


def is_complete(row: dict[str, Any]) -> bool:
    """Whether a row has every diagnostic of ours: an earlier version may have stored it without the newest."""
    return all(entry.name in row for entry in DIAGNOSTICS.entries() if is_ours(entry))


@lru_cache(maxsize=1024)
def source_of(entry: Entry) -> str:
    """Return the hash of the file that registered an entry, "" for our own. Without a file it is always new."""
    if is_ours(entry):
        return ""
    try:
        return hashlib.sha256(Path(inspect.getsourcefile(entry.make)).read_bytes()).hexdigest()
    except (TypeError, OSError):
        return uuid4().hex


def row_of(recipe: Recipe, stop: Stop, result: dict[str, Any]) -> dict[str, Any]:
    """One tidy row: what was run, as plain columns and as the whole recipe, what came out, and when and on what."""
    spec = recipe.spec
    knobs = {k: recipe.knobs.get(k, knob.default) for k, knob in spec.knobs().items()}
    single = METHODS[spec.method].facts.single
    return {
        "key": key_of(recipe, stop),
        "target": spec.target,
        "method": spec.method,
        "dim": spec.dim,
        "particles": 1 if single else int(knobs["method.particles"]),
        "alpha": knobs.get("method.alpha"),
        "kernel": knobs["kernel.name"],
        "rule": knobs["bandwidth.rule"],
        "seed": recipe.seed,
        "stopped": result["stopped"],
        "steps": result["steps"],
        "seconds": round(result["seconds"], 3),
        "made": datetime.date.today().isoformat(),
        "device": device_name(),
        "jax": jax.__version__,
        **result["metrics"],
        "recipe": {**recipe.to_dict(), "changes": result["changes"]},
    }


def batches_of(recipes: Iterable[Recipe], stop: Stop, most: int) -> list[list[Recipe]]:
    """Recipes that share a program, at most `most` together, small dimensions first; it depends on nothing else."""
    groups: dict[tuple, list[Recipe]] = {}
    for recipe in recipes:
        groups.setdefault(program_of(recipe, stop), []).append(recipe)
    batches = []
    for group in groups.values():
        group.sort(key=lambda r: (r.spec.dim, r.seed, key_of(r, stop)))
        count = -(-len(group) // most)
        size = -(-len(group) // count)  # equal ones: a small last batch would be another program
        batches += [group[i : i + size] for i in range(0, len(group), size)]
    return sorted(batches, key=lambda batch: (batch[-1].spec.dim, key_of(batch[0], stop)))


def run_sweep(
    recipes: list[Recipe],
    store: Store,
    stop: Stop = Stop(),
    executor: Executor | None = None,
    report: Callable[[dict[str, Any], int, int, float], None] | None = None,
) -> list[dict[str, Any]]:
    """Compute what the store does not have yet, and return the rows of `recipes` in their order.

    executor: any concurrent.futures.Executor (a process or cluster one gets picklable work); default: threads, one a
    core up to 4. report: called with (row, done, total, seconds left) as rows are stored; the last is an estimate.
    A run that diverges is a row that says so; any other exception is passed on, after the other batches have finished.
    Raises OSError, at once, if the store takes no more rows.
    """
    keys = {key_of(recipe, stop): recipe for recipe in recipes}
    have = {row["key"]: row for row in store.rows(keys) if is_complete(row)}
    most = RUNS_AT_ONCE.get(jax.default_backend(), RUNS_AT_ONCE["gpu"])
    batches = [b for b in batches_of(keys.values(), stop, most) if any(key_of(r, stop) not in have for r in b)]
    left = sum(_cost(r) for batch in batches for r in batch if key_of(r, stop) not in have)
    began, spent, lock = time.perf_counter(), 0.0, threading.Lock()
    interrupted = threading.Event()  # threads stop where they are

    def keep(recipe: Recipe, result: dict[str, Any]):
        nonlocal spent
        row = row_of(recipe, stop, result)
        with lock:
            if row["key"] in have:
                return
            try:
                store.add(row)
            except OSError:
                interrupted.set()
                raise
            have[row["key"]] = row
            spent += _cost(recipe)
            seconds = (time.perf_counter() - began) * (left - spent) / spent
            if report:
                report(row, len(have), len(keys), seconds)

    own = executor or ThreadPoolExecutor(min(4, os.cpu_count() or 1), "sweep")
    here = isinstance(own, ThreadPoolExecutor)
    futures = {}
    for batch in batches:
        if here:
            work = own.submit(_run_here, batch, stop, keep, interrupted.is_set)
        else:
            work = own.submit(_run_there, batch, stop)
        futures[work] = batch
    failure = None
    try:
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in finished:
                if future.exception():
                    failure = failure or future.exception()
                elif not here:
                    for recipe, result in zip(futures[future], future.result()):
                        keep(recipe, result)
    except BaseException:  # Ctrl-C
        interrupted.set()
        raise
    finally:
        for waiting in futures:
            waiting.cancel()
        if executor is None:
            own.shutdown()
    if failure:
        raise failure
    return [have[key] for key in keys if key in have]


def _run_there(batch, stop):
    keep_compiled()  # in a process of its own
    return run_batch(batch, stop)


def _run_here(batch, stop, keep, interrupted):
    if not interrupted():
        run_batch(batch, stop, lambda i, result: keep(batch[i], result), interrupted)


def _cost(recipe: Recipe) -> float:
    """Rough work of one recipe, for the estimate of the time left."""
    n = recipe.knobs.get("method.particles", recipe.spec.capacity)
    return 1e5 + n * (n + recipe.spec.dim) * recipe.spec.draws * (n if recipe.spec.has_density else 1)
