"""`bench rest`: how often a run is called at rest too early, and how late, over targets, methods and step sizes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stein_core.base.errors import unknown
from stein_core.contract.registry import METHODS
from stein_core.contract.spec import Spec, whole_number
from stein_core.runs.cache import compile
from stein_core.runs.rest import LEAST, WINDOW, Rest

TARGETS = (
    ("gaussian", 2), ("gaussian", 50), ("correlated", 2), ("banana", 2), ("ring", 2), ("two_modes", 2), ("funnel", 2),
    ("stackloss", None),
)  # fmt: skip
METHODS_TRIED = {"svgd": 20, "smi": 5}  # method -> particles
SIZES = {"adam": (0.005, 0.05, 0.2), "adagrad": (0.05, 0.5), "sgd": (0.01, 0.1, 0.5)}
EVERY = 10  # steps between two looks
FAR = 0.1  # sds that a mean may be off the end's, and share that an sd may be
END = 0.5  # of a run, the last part, whose mean is what it comes to


class Tried(NamedTuple):
    """Hold what became of one run.

    Args:
        case: target, dimension, method, optimiser and step size.
        stop: the step at which it was called at rest; None if never.
        settled: the step from which on means and sds stay within FAR of those of the end.
        off: how far they were off when it was called at rest.
        diverged: whether it did.
    """

    case: tuple
    stop: int | None
    settled: int
    off: float
    diverged: bool


def add_bench_rest(kinds) -> None:
    """Add the arguments of `bench rest`."""
    bench = kinds.add_parser("rest", help="how often a run is called at rest too early, and how late")
    bench.add_argument("--steps", type=int, default=20_000, help="of each run")
    bench.add_argument("--targets", default=",".join(dict.fromkeys(name for name, _ in TARGETS)), help="of these")
    bench.add_argument("--seed", type=int, default=0)
    bench.add_argument("--json", action="store_true", help="print all runs as JSON")
    bench.set_defaults(act=run_bench_rest)


def run_bench_rest(options) -> int:
    """`bench rest`: print a row for each target and method."""
    steps = whole_number("--steps", options.steps, 2000, 10**6)
    names, known = options.targets.split(","), dict.fromkeys(name for name, _ in TARGETS)
    for name in names:
        if name not in known:
            raise unknown("target of `bench rest`", name, known)
    found = list(tried([each for each in TARGETS if each[0] in names], steps, options.seed))
    if options.json:
        print(json.dumps([one._asdict() for one in found]))
        return 0
    print("target            method  runs  early  late (median, worst)  never  diverged")
    for (target, dim, method), rows in itertools.groupby(found, key=lambda one: one.case[:3]):
        print(line(f"{target} {dim or ''}", METHODS[method].label, list(rows)))
    print(line("all", "", found))
    return 0


def line(target: str, method: str, rows: list[Tried]) -> str:
    """Return one row of the table."""
    stopped = [one for one in rows if one.stop is not None]
    late = [one.stop / max(one.settled, LEAST) for one in stopped] or [np.nan]
    early, diverged = sum(one.off > FAR for one in stopped), sum(one.diverged for one in rows)
    never = len(rows) - len(stopped) - diverged
    return (
        f"{target:16}  {method:6}  {len(rows):4}  {early:5}  {np.median(late):12.1f} {max(late):8.1f}  {never:5}  "
        f"{diverged:8}"
    )


def tried(targets, steps: int, seed: int) -> Iterator[Tried]:
    """Yield what became of each run."""
    for (target, dim), (method, count), optimizer in itertools.product(targets, METHODS_TRIED.items(), SIZES):
        draws = {"draws": 10} if method == "smi" else {}
        spec = Spec.fitting(target=target, dim=dim, method=method, optimizer=optimizer, capacity=32, **draws)
        for size in SIZES[optimizer]:
            knobs = {"method.particles": count, "method.step_size": size}
            yield _one((target, dim, method, optimizer, size), spec, knobs, steps, seed)


def _one(case: tuple, spec: Spec, knobs: dict[str, Any], steps: int, seed: int) -> Tried:
    stepper, rest = compile(spec, measure=False), Rest(spec)
    state, moments, stop = stepper.reset(seed, knobs), [], None
    for _ in range(steps // EVERY + 1):
        frame = stepper.look(state, knobs, False)
        if not frame.finite:
            return Tried(case, stop, 0, 0.0, True)
        variance = frame.locations.var(axis=0) + np.mean(frame.scales**2, axis=0)
        moments.append(np.stack([frame.locations.mean(axis=0), variance]))
        if stop is None and rest.add(frame, knobs):
            stop = frame.step
        state = stepper.advance(state, knobs, EVERY)
    off = away(np.array(moments, float), stepper.target.truth.variance)
    far = np.flatnonzero(off > FAR)
    settled = EVERY * (int(far[-1]) + 1) if len(far) else 0
    return Tried(case, stop, settled, float(off[stop // EVERY]) if stop is not None else 0.0, False)


def away(moments: np.ndarray, exact: np.ndarray | None = None) -> np.ndarray:
    """Return how far the moments of each look are from those of the end.

    Both are means: of the last quarter of the run so far, which is what a watch compares, and of the second half of
    the whole run. The sds of all coordinates are compared together: a simplex of few points may turn for ever.

    Args:
        moments: (looks, 2, d) means and variances.
        exact: (d,) variances of the target, in whose units those of a run are; None for those of its end.

    Returns:
        (looks,) the larger of the worst shift in sds, and the relative change of the sd.
    """
    sums = np.cumsum(np.concatenate([np.zeros((1, *moments.shape[1:])), moments]), axis=0)
    at = np.arange(1, len(moments) + 1)
    before = at - np.maximum(1, (WINDOW * at).astype(int))
    smooth = (sums[at] - sums[before]) / (at - before)[:, None, None]
    mean, variance = moments[int((1 - END) * len(moments)) :].mean(axis=0)
    shift = np.abs(smooth[:, 0] - mean).max(axis=1) / np.sqrt(variance.mean())
    unit = variance if exact is None else np.asarray(exact, float)
    ratio = np.mean(smooth[:, 1] / unit, axis=1) / np.mean(variance / unit)
    return np.maximum(shift, np.abs(np.sqrt(ratio) - 1))
