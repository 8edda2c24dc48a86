"""`bench posteriors`: fits of twelve posteriors against their reference draws, and verdicts against the truth."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import replace
from typing import Any, Iterator

import jax
import numpy as np

from stein_core.cli.commands import check_out
from stein_core.diagnosis import diagnose
from stein_core.diagnosis.reference import nuts
from stein_core.errors import short, unknown
from stein_core.experiments.posteriordb import POSTERIORS, posterior
from stein_core.fitting import fit
from stein_core.machine import keep_compiled
from stein_core.models import from_numpyro
from stein_core.types import Target

SD, MEAN = 0.2, 0.3  # errors from which a posterior counts as wrong
FITS = {  # label -> method, knobs
    "SMI (default)": ("smi", {}),
    "SVGD 100": ("svgd", {}),
    "SVGD 20, median_log": ("svgd", {"method.particles": 20, "bandwidth.rule": "median_log"}),
    "VI": ("vi", {}),
    "SVGD 20, alpha 0.01": ("svgd", {"method.particles": 20, "method.alpha": 0.01}),
}


def add_bench_posteriors(commands) -> None:
    """Add the arguments of `bench posteriors`."""
    bench = commands.add_parser("posteriors", help="fits and verdicts on twelve posteriors of posteriordb")
    bench.add_argument("--only", metavar="NAME,...", help="some of them")
    bench.add_argument("--fits", metavar="LABEL,...", help="some of the fits")
    bench.add_argument("--no-nuts", action="store_true", help="leave out all that starts from draws of NUTS")
    bench.add_argument("--json", metavar="FILE", help="write the rows there")
    bench.set_defaults(act=run_bench_posteriors)


def run_bench_posteriors(options) -> int:
    """`bench posteriors`: a row for each posterior and way to draws, then how often the verdict was right."""
    keep_compiled()
    if options.json:
        check_out(options.json, "--json")
    names = options.only.split(",") if options.only else list(POSTERIORS)
    labels = options.fits.split(",") if options.fits else list(FITS)
    for kind, given, allowed in (("posterior", names, POSTERIORS), ("fit", labels, FITS)):
        for name in given:
            if name not in allowed:
                raise unknown(kind, name, allowed)
    rows = []
    print(f"{'posterior':<26}{'draws':<22}{'mean err':>9}{'sd ratio':>16}  {'verdict':<8}{'seconds':>8}")
    for name in names:
        for row in rows_of(name, labels, not options.no_nuts):
            rows.append(row)
            sds = f"{row['least sd']:.2f} to {row['most sd']:.2f}"
            said = ("ok" if row["ok"] else "wrong") + ("" if row["ok"] is not row["wrong"] else " !")
            print(
                f"{short(name)[:25]:<26}{row['draws']:<22}{row['mean error']:>9.2f}{sds:>16}  {said:<8}"
                f"{row['seconds']:>8.1f}",
                flush=True,
            )
    for wrong, words in ((True, "wrong ones flagged"), (False, "right ones flagged")):
        these = [row for row in rows if row["wrong"] is wrong]
        print(f"{words}: {sum(not row['ok'] for row in these)} of {len(these)}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 0


def rows_of(name: str, labels: list[str], with_nuts: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each way to draws of one posterior: errors against the reference draws, and the verdict."""
    model, arguments, reference = posterior(name)
    with warnings.catch_warnings(), jax.enable_x64():
        warnings.simplefilter("ignore")
        target = from_numpyro(model, *arguments)
    for label in labels:
        began = time.perf_counter()
        method, knobs = FITS[label]
        made = fit(target, method=method, knobs=knobs, progress=False)
        report = diagnose(made)
        yield row_of(name, label, target, made.draws, report, reference, time.perf_counter() - began)
    if not with_nuts:
        return
    began = time.perf_counter()
    chains = nuts(target)
    flat, seconds = chains.reshape(-1, target.dim), time.perf_counter() - began
    mean, sd = flat.mean(axis=0), flat.std(axis=0)
    hotter = replace(target, log_density=lambda theta: 0.5 * target.log_density(theta), data=None, remake=None)
    for label, draws in (
        ("NUTS", chains),
        ("NUTS, shifted", chains + 0.5 * sd),
        ("NUTS, shrunk", mean + 0.7 * (chains - mean)),
        ("NUTS of density^0.5", None),
    ):
        draws = nuts(hotter) if draws is None else draws
        report = diagnose(draws, target)
        yield row_of(name, label, target, draws.reshape(-1, target.dim), report, reference, seconds)


def row_of(name, label, target: Target, draws, report, reference, seconds) -> dict[str, Any]:
    """Return a row: the worst errors over the reported parameters, whether they are large, and what the report says."""
    with jax.enable_x64():
        found = reference.columns(target.constrain(draws))
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
        "seconds": seconds,
    }
