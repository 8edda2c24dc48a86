"""`bench posteriors`: fits of twelve posteriors against their reference draws, and verdicts against the truth."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from stein_core.base.errors import short, unknown
from stein_core.base.machine import keep_compiled
from stein_core.cli.bench_calibrate import add_bench_calibrate
from stein_core.cli.bench_device import add_bench_device
from stein_core.cli.bench_rest import add_bench_rest
from stein_core.cli.commands import check_out
from stein_core.contract.target import Target
from stein_core.posterior import Evidence, diagnose
from stein_core.posterior.fit import fit
from stein_core.posterior.reading import evidence_of
from stein_core.posterior.reference import CHAINS, SAMPLES, WARMUP, nuts
from stein_core.targets.own.decentring import best_target
from stein_core.targets.posteriordb import CENTRED, POSTERIORS, posterior

SD, MEAN = 0.2, 0.3  # errors from which a posterior counts as wrong
DEFAULT = "SMI (default)"
FITS = {  # label -> method, knobs
    DEFAULT: ("smi", {}),
    "SVGD 100": ("svgd", {}),
    "SVGD 20, median_log": ("svgd", {"method.particles": 20, "bandwidth.rule": "median_log"}),
    "VI": ("vi", {}),
    "SVGD 20, alpha 0.01": ("svgd", {"method.particles": 20, "method.alpha": 0.01}),
}


def add_bench(commands) -> None:
    """Add the arguments of `bench`."""
    what = commands.add_parser("bench", help="how right fits and verdicts are, and how fast steps")
    kinds = what.add_subparsers(dest="what", metavar="WHAT", required=True)
    bench = kinds.add_parser("posteriors", help="fits and verdicts on posteriors of posteriordb")
    bench.add_argument("--only", metavar="NAME,...", help="some of them")
    bench.add_argument("--fits", metavar="LABEL,...", help="some of the fits")
    bench.add_argument("--no-nuts", action="store_true", help="leave out all that starts from draws of NUTS")
    bench.add_argument("--keep", metavar="FOLDER", help="write all draws there; those that are there are not made anew")
    bench.add_argument("--json", metavar="FILE", help="write the rows there")
    bench.set_defaults(act=run_bench_posteriors)
    add_bench_calibrate(kinds)
    add_bench_rest(kinds)
    add_bench_device(kinds)


def run_bench_posteriors(options) -> int:
    """`bench posteriors`: a row for each posterior and way to draws, then how often the verdict was right."""
    keep_compiled()
    if options.json:
        check_out(options.json, "--json")
    names = options.only.split(",") if options.only else [*POSTERIORS, *CENTRED]
    labels = options.fits.split(",") if options.fits else list(FITS)
    for kind, given, allowed in (("posterior", names, [*POSTERIORS, *CENTRED]), ("fit", labels, FITS)):
        for name in given:
            if name not in allowed:
                raise unknown(kind, name, allowed)
    rows = []
    print(f"{'posterior':<26}{'draws':<22}{'mean err':>9}{'sd ratio':>16}  {'verdict':<8}{'seconds':>8}")
    for name in names:
        for row in rows_of(name, labels, not options.no_nuts, options.keep):
            rows.append(row)
            same = row.get("seconds to default")
            sds = f"{row['least sd']:.2f} to {row['most sd']:.2f}"
            said = {True: "ok", False: "wrong", None: "?"}[row["ok"]] + " !" * (row["ok"] is row["wrong"])
            print(
                f"{short(name)[:25]:<26}{row['draws']:<22}{row['mean error']:>9.2f}{sds:>16}  {said:<8}"
                f"{row['seconds']:>8.1f}{f'  as near as SMI after {same:.1f}' if same else ''}",
                flush=True,
            )
    for wrong, words in ((True, "wrong ones flagged"), (False, "right ones flagged")):
        these = [row for row in rows if row["wrong"] is wrong]
        print(f"{words}: {sum(row['ok'] is False for row in these)} of {len(these)}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 0


def rows_of(name: str, labels: list[str], with_nuts: bool, keep: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield a row for each way to draws of one posterior: errors against the reference draws, and the verdict."""
    model, arguments, reference = posterior(name)
    with warnings.catch_warnings(), jax.enable_x64():
        warnings.simplefilter("ignore")
        target = best_target(model, *arguments)

    def fitted(label):
        method, knobs = FITS[label]
        return evidence_of(fit(target, method=method, knobs=knobs, progress=False), None)

    once = cache(lambda: nuts(target))

    def sampled(change=lambda chains: chains):
        return evidence_of(change(once()), target)

    def flattened():
        flat = replace(target, log_density=lambda theta: 0.5 * target.log_density(theta), data=None, remake=None)
        return evidence_of(nuts(flat), target)

    def shrunk(chains):
        mean = chains.mean(axis=(0, 1))
        return mean + 0.7 * (chains - mean)

    ways = {label: partial(fitted, label) for label in labels}
    if with_nuts:
        ways |= {
            "NUTS": sampled,
            "NUTS, shifted": partial(sampled, lambda chains: chains + 0.5 * chains.std(axis=(0, 1))),
            "NUTS, shrunk": partial(sampled, shrunk),
            "NUTS of density^0.5": flattened,
        }
    goal = None
    for label, make in ways.items():
        seen, seconds = kept(keep and Path(keep, f"{name} {label}.npz"), make)
        seen = replace(seen, modes=target.start.modes or None)
        row = row_of(name, label, target, seen, reference, seconds)
        if label == DEFAULT:
            goal = row["mean error"]
        if label == "NUTS" and goal is not None:
            row["seconds to default"] = seconds_to(goal, target, seen, reference, seconds)
        yield row


def seconds_to(goal: float, target: Target, seen: Evidence, reference, seconds: float) -> float | None:
    """Return the seconds after which NUTS has every mean as near as `goal` and keeps it so; None if it never does.

    Its seconds are shared out by steps, so that compiling counts as a step like any other: a little too early.

    Args:
        goal: the worst error of a mean, in sds of the reference.
        target, seen, reference: see `row_of`.
        seconds: of the whole run.
    """
    with jax.enable_x64():
        found = reference.columns(target.constrain(seen.draws)).reshape(CHAINS, SAMPLES, -1)
    means = np.cumsum(found.mean(axis=0), axis=0) / np.arange(1, SAMPLES + 1)[:, None]
    far = np.flatnonzero((np.abs(means - reference.mean) / reference.sd).max(axis=1) > goal)
    first = far[-1] + 1 if len(far) else 0
    return None if first == SAMPLES else float(seconds * (WARMUP + first + 1) / (WARMUP + SAMPLES))


def kept(path: Path | None, make: Callable[[], Evidence]) -> tuple[Evidence, float]:
    """Return what `make` makes, and its seconds; if there is a path, from the file there, which is written once."""
    if path and path.is_file():
        with np.load(path, allow_pickle=False) as file:
            found = {key: file[key] if file[key].ndim else file[key].item() for key in file}
        seconds, names = found.pop("seconds"), tuple(str(each) for each in found.pop("names"))
        return Evidence(names=names, **found), seconds
    began = time.perf_counter()
    seen = make()
    seconds = time.perf_counter() - began
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        known = {field.name: getattr(seen, field.name) for field in fields(Evidence) if field.name != "modes"}
        np.savez_compressed(path, seconds=seconds, **{key: each for key, each in known.items() if each is not None})
    return seen, seconds


def row_of(name, label, target: Target, seen: Evidence, reference, seconds: float) -> dict[str, Any]:
    """Return a row: the worst errors over the reported parameters, whether they are large, and what the report says."""
    with jax.enable_x64():
        found = reference.columns(target.constrain(seen.draws))
    began = time.perf_counter()
    report = diagnose(seen)
    errors = np.abs(found.mean(axis=0) - reference.mean) / reference.sd
    ratios = found.std(axis=0, ddof=1) / reference.sd
    wrong = bool(errors.max() > MEAN or ratios.min() < 1 - SD or ratios.max() > 1 + SD)
    return {
        "posterior": name,
        "draws": label,
        "mean error": float(errors.max()),
        "least sd": float(ratios.min()),
        "most sd": float(ratios.max()),
        "wrong": wrong,
        "ok": report.ok,
        "verdict": report.verdict,
        "seconds": seconds + time.perf_counter() - began,
    }
