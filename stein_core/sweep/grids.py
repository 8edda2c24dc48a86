"""Sweeps: grids of recipes -> tidy rows in an SQLite file, resumable, on any executor.

A row is keyed by the hash of its recipe and stop rule: what is in the store is not computed again, so a sweep that was
killed goes on where it was. What is computed together depends on the grid alone, never on what is already there, so a
resumed sweep gives the values that an undisturbed one gives.
"""

from __future__ import annotations

import datetime
import itertools
import json
import threading
import time
from concurrent.futures import Executor
from functools import partial
from typing import Any, Callable, Iterable

import jax

from stein_core.base.errors import short, unknown
from stein_core.base.machine import device_name, keep_compiled
from stein_core.contract.facts import SweepFacts
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import BANDWIDTHS, KERNELS, METHODS, Registry
from stein_core.contract.spec import Spec, all_options, capacity_for
from stein_core.sweep.batches import program_of, run_batch
from stein_core.sweep.keys import canonical, idle_knobs, is_complete, key_of
from stein_core.sweep.stop import Stop
from stein_core.sweep.store import Store
from stein_core.sweep.work import run_all

SWEEPS = Registry("sweep", SweepFacts)
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
    options = {name: knobs.pop(name) for name in list(knobs) if name in all_options()}

    def spec_of(method, dim, capacity=8):
        return Spec.fitting(target=target, dim=dim, method=method, guide=guide, capacity=capacity, options=options)

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
    devices: int | None = None,
) -> list[dict[str, Any]]:
    """Compute what the store does not have yet, and return the rows of `recipes` in their order.

    executor: any concurrent.futures.Executor (a process or cluster one gets picklable work); default: threads, one a
    core up to 4. devices: how many take batches in turn; None for all GPUs, or for one on a CPU. report: called with
    (row, done, total, seconds left) as rows are stored; the last is an estimate. A run that diverges is a row that says
    so; any other exception is passed on, after the other batches have finished. Raises OSError, at once, if the store
    takes no more rows, and ValueError if there are not so many devices.
    """
    keys = {key_of(recipe, stop): recipe for recipe in recipes}
    have = {row["key"]: row for row in store.rows(keys) if is_complete(row)}
    most = RUNS_AT_ONCE.get(jax.default_backend(), RUNS_AT_ONCE["gpu"])
    batches = [b for b in batches_of(keys.values(), stop, most) if any(key_of(r, stop) not in have for r in b)]
    left = sum(_cost(r) for batch in batches for r in batch if key_of(r, stop) not in have)
    began, spent, lock = time.perf_counter(), 0.0, threading.Lock()

    def keep(recipe: Recipe, result: dict[str, Any]):
        nonlocal spent
        row = row_of(recipe, stop, result)
        with lock:
            if row["key"] in have:
                return
            store.add(row)
            have[row["key"]] = row
            spent += _cost(recipe)
            seconds = (time.perf_counter() - began) * (left - spent) / spent
            if report:
                report(row, len(have), len(keys), seconds)

    def here(batch: list[Recipe], stopped: threading.Event) -> list:
        if not stopped.is_set():
            try:
                run_batch(batch, stop, lambda i, result: keep(batch[i], result), stopped.is_set)
            except OSError:  # the store takes no more rows
                stopped.set()
                raise
        return []  # each row has been kept

    def take(batch: list[Recipe], results: list[dict[str, Any]]):
        for recipe, result in zip(batch, results):
            keep(recipe, result)

    run_all(batches, here, partial(_elsewhere, stop=stop), take, executor, devices)
    return [have[key] for key in keys if key in have]


def _elsewhere(batch: list[Recipe], stop: Stop) -> list[dict[str, Any]]:
    keep_compiled()  # in a process of its own
    return run_batch(batch, stop)


def _cost(recipe: Recipe) -> float:
    """Rough work of one recipe, for the estimate of the time left."""
    n = recipe.knobs.get("method.particles", recipe.spec.capacity)
    return 1e5 + n * (n + recipe.spec.dim) * recipe.spec.draws * (n if recipe.spec.has_density else 1)
