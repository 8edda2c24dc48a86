"""`calibrate`: fit data sets that a model made, and say whether the procedure is right on average."""

from __future__ import annotations

import json
from pathlib import Path

import jax

from stein_core.base.errors import short
from stein_core.cli.commands import check_out, executor_of, given_knobs
from stein_core.cli.files import arrays_of, model_of, without_name
from stein_core.cli.job import add_job, progress
from stein_core.cli.posterior import EXAMPLE
from stein_core.contract.registry import TARGETS
from stein_core.posterior.calibration import calibrate
from stein_core.targets.posteriordb import posterior
from stein_core.targets.posteriors import MODELS

MODEL = f"FILE.py:NAME of a NumPyro model, posteriordb/NAME, or a target: {', '.join(MODELS)}"


def add_calibrate(commands) -> None:
    """Add the arguments of `calibrate`."""
    made = commands.add_parser("calibrate", help="fit data sets that a model made: is a method right on average?")
    made.set_defaults(act=calibrate_model)
    made.add_argument("model", metavar="MODEL", help=MODEL)
    made.add_argument("--data", metavar="FILE.npz", help="arguments of the model, by name")
    made.add_argument("--method", default="smi", help="of `list`; or laplace, nuts")
    made.add_argument("--n", type=int, default=200, help="data sets")
    made.add_argument("--particles", type=int)
    made.add_argument("--guide", help="the method's own by default")
    made.add_argument("--steps", type=int, default=400, help="of a round")
    made.add_argument("--around", default="prior", help="truths of the prior, or of the posterior of the data")
    made.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="any knob, method.alpha=0.1 say")
    made.add_argument("--store", metavar="FILE.npz", help="goes on with a run that was ended")
    made.add_argument("--workers", type=int, help="of --cluster local; default 2")
    made.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler, or 'local' (needs the extra `cluster`)")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--out", metavar="FILE.html", help="where the report goes")
    made.add_argument("--ranks", metavar="FILE.csv", help="where the ranks go: a column for each parameter")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    add_job(made)


def calibrate_model(options) -> int:
    """`calibrate`: exit code 0, or 4 if the procedure is not calibrated."""
    for name, ending in (("out", ".html"), ("ranks", ".csv")):
        if getattr(options, name):
            check_out(getattr(options, name), f"--{name}", (ending,))
    data = arrays_of(options.data, "--data", limit=False) if options.data else {}
    arguments: tuple = ()
    if options.model.startswith(EXAMPLE):
        model, arguments, _ = posterior(options.model.removeprefix(EXAMPLE))
    elif ":" in options.model:
        model = model_of(options.model)
    elif options.model.endswith(".py"):
        raise without_name(options.model)
    elif (name := TARGETS[options.model].name) in MODELS:
        model, given = MODELS[name]
        with jax.enable_x64():
            arguments = given()
    else:
        raise ValueError(
            f"model = {short(options.model)!r} has no data that it could make; allowed: {', '.join(MODELS)}, "
            "posteriordb/NAME, or FILE.py:NAME."
        )
    with executor_of(options) as executor, progress(options, options.n, "data set") as report:
        try:
            made = calibrate(
                model, *arguments, method=options.method, n=options.n, particles=options.particles,
                guide=options.guide, around=options.around, steps=options.steps,
                knobs=given_knobs(options.set), seed=options.seed, store=options.store,
                executor=executor if options.cluster else None,
                progress=lambda done, total: report(done, total=total), kwargs=data,
            )  # fmt: skip
        except TypeError as error:
            there = f"--data has: {', '.join(data) or 'nothing'}"
            raise ValueError(f"model {short(options.model)!r}: {short(error)}; {there}.") from error
    if options.out:
        made.to_html(options.out)
    if options.ranks:
        Path(options.ranks).write_text(made.to_csv(), encoding="utf-8")
    print(json.dumps(made.to_dict()) if options.json else made)
    return 0 if made.ok or options.job is not None else 4
