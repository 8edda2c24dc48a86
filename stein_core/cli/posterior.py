"""`fit` and `diagnose`: a posterior of one's own on the command line."""

from __future__ import annotations

import json
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from stein_core.base.errors import short
from stein_core.base.machine import keep_compiled
from stein_core.cli.commands import check_out, given_knobs
from stein_core.cli.files import arrays_of, inference_data_of, model_of, without_name
from stein_core.cli.job import add_job, progress
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import TARGETS
from stein_core.contract.spec import Spec, target_of
from stein_core.contract.target import Target
from stein_core.posterior import diagnose, weigh
from stein_core.posterior.fit import choices_of, fit
from stein_core.posterior.fitted import fit_of
from stein_core.posterior.reference import compared, nuts
from stein_core.runs.assembly import problem_of
from stein_core.targets.own.decentring import best_target
from stein_core.targets.own.numpyro_models import from_numpyro
from stein_core.targets.posteriordb import posterior

EXAMPLE = "posteriordb/"  # before the name of one of posteriordb's posteriors


def add_posterior(commands) -> None:
    """Add the arguments of `fit` and `diagnose`."""
    shared = {
        "metavar": "MODEL",
        "help": "FILE.py:NAME of a NumPyro model, the name of a target, posteriordb/NAME, or a .json of a run's recipe",
    }
    made = commands.add_parser("fit", help="fit a posterior of your own, check it, and say whether to trust it")
    made.set_defaults(act=fit_posterior)
    made.add_argument("model", **shared)
    made.add_argument("--method", default="smi")
    made.add_argument("--particles", type=int)
    made.add_argument("--guide", help="by default full normals for SMI up to 30 coordinates, else the method's own")
    made.add_argument("--steps", type=int, help="of a round; 500 by default, 2,000 for points")
    made.add_argument("--coordinates", default="whitened", help="whitened, scaled or raw")
    made.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="any knob, method.alpha=0.1 say")
    made.add_argument("--draws", metavar="FILE.npz", help="where the draws go, by the names of the model's sites")
    checked = commands.add_parser("diagnose", help="check draws that you have")
    checked.set_defaults(act=diagnose_draws)
    checked.add_argument(
        "draws", metavar="FILE", help=".npz or .csv with `draws` (n, d), or an array for each site; or ArviZ's .nc"
    )
    checked.add_argument("--model", **shared)
    checked.add_argument("--name", default="", help="what the report calls the draws; by default their file")
    checked.add_argument("--particles", action="store_true", help="they are particles, no random draws")
    for parser in (made, checked):
        parser.add_argument("--data", metavar="FILE.npz", help="arguments of the model, by name")
        parser.add_argument("--reference", choices=["nuts"], help="compare with a run of NUTS")
        parser.add_argument("--weigh", action="store_true", help="give draws Stein weights, and say what changes")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--out", metavar="FILE.html", help="where the report goes; .json for numbers")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_job(parser)


def fit_posterior(options) -> int:
    """`fit`: exit code 0, or 4 if the report says that the posterior is wrong."""
    _check_out(options)
    if options.draws:
        check_out(options.draws, "--draws", (".npz",))
    if options.steps is not None and options.steps < 4:
        raise ValueError(f"--steps = {short(options.steps)} is too small; allowed: 4 or more.")
    knobs = given_knobs(options.set)
    choices_of(options.method, options.particles, options.guide, options.coordinates, knobs, options.seed)
    keep_compiled()
    target = _target(options, best_target)
    with progress(options, options.steps or 0, "step") as report:
        made = fit(
            target,
            method=options.method,
            particles=options.particles,
            guide=options.guide,
            steps=options.steps,
            coordinates=options.coordinates,
            knobs=knobs,
            seed=options.seed,
            progress=lambda done, total: report(done, total=total),
        )
    if options.draws:
        np.savez_compressed(options.draws, **made.values)
    reference, further = _reference(options, target)
    return _report(
        options,
        diagnose(weigh(made) if options.weigh else made, reference=reference),
        {
            "seconds": made.seconds,
            "gradients": made.gradients,
            "rounds": made.rounds,
            "particles": len(made.frame.particles),
            **further,
        },
    )


def diagnose_draws(options) -> int:
    """`diagnose`: exit code 0, or 4 if the report says that the draws are wrong."""
    _check_out(options)
    keep_compiled()
    target, scores = None, None
    if options.model and not _is_recipe(options):
        target = _target(options)
    if options.draws.endswith(".nc"):
        what = inference_data_of(options.draws, "draws")
    else:
        found = arrays_of(options.draws, "draws")
        scores = found.pop("scores", None)
        found.pop("lp", None)
        what = found.get("draws", found)
        if _is_recipe(options):
            if "particles" not in found:
                raise ValueError(f"draws {short(options.draws)!r} has no array 'particles'; a recipe is read for them.")
            step = int(found["step"]) if "step" in found else None
            what = fit_of(_recipe(options), found["particles"], options.seed, step)
            reference, further = _reference(options, what.target)
            what = weigh(what) if options.weigh else what
            return _report(options, diagnose(what, reference=reference, name=options.name), further)
    reference, further = _reference(options, target)
    known = {"particles": options.particles, "name": options.name or Path(options.draws).name}
    if options.weigh:
        what, target, scores = weigh(what, target, scores), None, None
    return _report(options, diagnose(what, target, scores, reference, **known), further)


def _check_out(options) -> None:
    if options.out:
        check_out(options.out, endings=(".html", ".json"))


def _is_recipe(options) -> bool:
    return bool(options.model) and options.model.endswith(".json")


def _recipe(options) -> Recipe:
    try:
        with open(options.model, encoding="utf-8") as file:
            return Recipe.from_dict(json.load(file))
    except (OSError, json.JSONDecodeError, AttributeError) as error:
        raise ValueError(f"--model {short(options.model)!r} cannot be read as a recipe: {short(error)}.") from None


def _target(options, make=from_numpyro) -> Target:
    data = arrays_of(options.data, "--data", limit=False) if options.data else {}
    arguments: tuple = ()
    if options.model.startswith(EXAMPLE):
        model, arguments, _ = posterior(options.model.removeprefix(EXAMPLE))
    elif _is_recipe(options):
        recipe = _recipe(options)
        with jax.enable_x64():
            found = problem_of(recipe.spec, recipe.knobs.traced).target
            return replace(found, name=str(recipe.spec.target))
    elif ":" in options.model:
        model = model_of(options.model)
    elif options.model.endswith(".py"):
        raise without_name(options.model)
    else:
        with jax.enable_x64():
            return replace(target_of(Spec(TARGETS[options.model].name, method="svgd")), name=options.model)
    with warnings.catch_warnings(record=True) as caught, jax.enable_x64():
        warnings.simplefilter("always")
        try:
            target = make(model, *arguments, seed=options.seed, **data)
        except TypeError as error:
            there = f"--data has: {', '.join(data) or 'nothing'}"
            raise ValueError(f"model {short(options.model)!r}: {short(error)}; {there}.") from error
    for each in caught:
        print(f"note: {each.message}", file=sys.stderr)
    return replace(target, name=options.model)


def _reference(options, target: Target | None):
    """Return draws of NUTS and their "reference_seconds" if they are asked for, else None."""
    if options.reference and target is None:
        raise ValueError("--reference nuts needs a density; allowed: together with --model.")
    began = time.perf_counter()
    draws = nuts(target, options.seed) if options.reference else None
    return draws, {"reference_seconds": time.perf_counter() - began} if options.reference else {}


def _report(options, report, facts) -> int:
    said, seen = report.to_dict() | facts, report.evidence
    if seen.reference is not None:
        said["reference"] = compared(seen.draws, seen.reference, seen.names)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(json.dumps(said, indent=1) if options.out.endswith(".json") else report.to_html())
    if options.json:
        print(json.dumps(said))
    else:
        print(report)
        for row in said.get("reference", ()):
            print(f"  against NUTS: {row['coordinate']}: mean {row['mean error']:+.3f} sd, sd x {row['sd ratio']:.3f}")
    return 4 if report.ok is False and options.job is None else 0
