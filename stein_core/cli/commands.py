"""The commands of `python -m stein_core` that take long: sweeps, the NUTS reference and recordings."""

from __future__ import annotations

import datetime
import inspect
import json
import os
import platform
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from importlib.metadata import version

import numpy as np

from stein_core.cli.job import add_job, progress, read_recipes
from stein_core.errors import short
from stein_core.experiments import recovery, table1, widths  # noqa: F401  (importing registers)
from stein_core.experiments.bands import disagreement
from stein_core.experiments.nuts import Reference, run_nuts, save_reference
from stein_core.experiments.recording import record, save_recording
from stein_core.experiments.wave import GRID, WIDTHS, dim_of, width_of
from stein_core.machine import cache_folder, device_name, keep_compiled
from stein_core.recipe import Recipe
from stein_core.registry import DIAGNOSTICS, TARGETS
from stein_core.sweep.batches import MOST_STEPS, RULES, Stop
from stein_core.sweep.grids import SWEEPS, run_sweep, source_of
from stein_core.sweep.store import Store

MOST_SEEDS = 10_000


def versions() -> dict[str, str]:
    """The device and the versions of what numbers and pictures come from."""
    packages = ("jax", "numpyro", "optax", "numpy", "panel", "bokeh", "holoviews")
    return {"device": device_name(), "python": platform.python_version(), **{name: version(name) for name in packages}}


def given_knobs(items: list[str]) -> dict[str, str]:
    """The knobs of --set KNOB=VALUE, not yet checked."""
    knobs = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"--set {short(item)!r} has no '='; allowed: KNOB=VALUE, for example method.alpha=2.")
        knobs[name] = value
    return knobs


def add_sweep(commands) -> None:
    """The arguments of `sweep`: one command for each registered sweep, and `show`."""
    sweep = commands.add_parser("sweep", help="run a grid of recipes, or go on with it; show its rows")
    names = sweep.add_subparsers(dest="sweep", required=True)
    for entry in SWEEPS.entries():
        grid = names.add_parser(entry.name, help=entry.summary)
        grid.set_defaults(act=sweep_grid)
        for name, parameter in inspect.signature(entry.make).parameters.items():
            many = isinstance(parameter.default, tuple)
            kind = type(parameter.default[0]) if many else type(parameter.default)
            if name == "knobs":
                grid.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="any other knob")
            elif many:
                text = ",".join(map(str, parameter.default))
                grid.add_argument(f"--{name}", default=text, help=f"comma-separated; default {text}")
                grid.set_defaults(**{f"{name}_kind": kind})
            else:
                grid.add_argument(
                    f"--{name}", type=kind, default=parameter.default, help=f"default {parameter.default}"
                )
        add_running(grid, entry.facts.stop or Stop())
    given = names.add_parser("recipes", help="run the recipes of a file")
    given.set_defaults(act=sweep_recipes)
    given.add_argument(
        "--file", metavar="FILE", required=True, help="JSON of Recipe.to_dict, one or a list; - is stdin"
    )
    add_running(given, Stop())
    show = names.add_parser("show", help="the rows of a store")
    show.set_defaults(act=sweep_show)
    show.add_argument("--store", metavar="FILE", help="SQLite file; default sweeps.sqlite in the cache folder")
    show.add_argument(
        "--export", metavar="FILE.json", help="write all rows, with versions and date, as the app ships them"
    )


def add_running(parser, own: Stop) -> None:
    """The arguments of every sweep: when its runs stop, what runs them, where their rows go."""
    parser.add_argument("--stop", default=own.rule, help=f"convergence rule: {', '.join(RULES)}")
    for name in ("stages", "least", "noisy", "most"):
        default = getattr(own, name)
        parser.add_argument(
            f"--{name}", type=int, default=default, help=f"see stein_core.sweep.batches.Stop; default {default}"
        )
    parser.add_argument("--workers", type=int, help="threads; default one a core up to 4")
    parser.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler, or 'local' (needs the extra `cluster`)")
    parser.add_argument("--store", metavar="FILE", help="SQLite file; default sweeps.sqlite in the cache folder")
    add_job(parser)


def add_nuts(commands) -> None:
    """The arguments of `nuts`."""
    nuts = commands.add_parser("nuts", help="the NUTS reference of the 1-D wave, written to a file")
    nuts.set_defaults(act=nuts_reference)
    which = nuts.add_mutually_exclusive_group()
    which.add_argument("--width", type=int, default=5, help="hidden units of each layer; default 5")
    which.add_argument(
        "--recipe", metavar="FILE", help="JSON of a recipe on the wave, whose data and prior count; - is stdin"
    )
    for name, default in (("chains", 4), ("warmup", 1000), ("samples", 1000), ("seed", 0)):
        nuts.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    nuts.add_argument("--spread", type=float, default=1.0, help="start, in units of the target's scale; default 1")
    nuts.add_argument("--every", type=int, metavar="K", help="keep every K-th draw in float32; default 150 in float16")
    nuts.add_argument("--out", metavar="FILE.npz", required=True)
    add_job(nuts)


def add_record(commands) -> None:
    """The arguments of `record`."""
    recording = commands.add_parser("record", help="repeat a recipe; keep norms, angles and forces at about 60 steps")
    recording.set_defaults(act=record_recipe)
    recording.add_argument("--recipe", metavar="FILE", required=True, help="JSON of Recipe.to_dict; - is stdin")
    recording.add_argument("--steps", type=int, default=1000)
    recording.add_argument("--out", metavar="FILE.npz", required=True)
    add_job(recording)


def sweep_grid(options) -> int:
    """`sweep NAME`: compute its grid and print the rows; 3 where a run has diverged."""
    settings = {}
    for name, parameter in inspect.signature(SWEEPS[options.sweep].make).parameters.items():
        if name == "knobs":
            settings[name] = given_knobs(options.set)
        elif isinstance(parameter.default, tuple):
            kind = getattr(options, f"{name}_kind")
            try:
                settings[name] = tuple(kind(item) for item in getattr(options, name).split(","))
            except ValueError:
                raise ValueError(
                    f"--{name} = {short(getattr(options, name))!r}; "
                    f"allowed: {kind.__name__} values with commas between."
                ) from None
        else:
            settings[name] = getattr(options, name)
    if options.seeds > MOST_SEEDS:
        raise ValueError(f"--seeds = {short(options.seeds)} is out of range; allowed: 1 to {MOST_SEEDS}.")
    return run_recipes(SWEEPS[options.sweep].make(**settings), options)


def sweep_recipes(options) -> int:
    """`sweep recipes`: compute the recipes of a file as a sweep."""
    return run_recipes(read_recipes(options.file), options)


def run_recipes(recipes: list[Recipe], options) -> int:
    """Compute what the store does not have yet, print the rows of `recipes`, and return the exit code."""
    stop = Stop(options.stop, options.stages, options.least, options.noisy, options.most)
    if options.workers is not None and options.workers < 1:
        raise ValueError(f"--workers = {short(options.workers)} is too small; allowed: 1 or more.")
    if options.cluster and source_of(TARGETS[recipes[0].spec.target]):
        raise ValueError("--cluster: its workers do not have what --import has registered; leave --cluster out.")
    store = opened(options.store)
    keep_compiled()
    told = set()
    with executor_of(options) as executor, progress(options, len(recipes), "row") as show:

        def report(row, done, total, left):
            told.add(row["key"])
            show(done, left, f"{row['method']} d={row['dim']}, about {left:.0f} s left", row=row)

        rows = run_sweep(recipes, store, stop, executor, report)
        for row in rows:  # those that were there
            if options.job and row["key"] not in told:
                show(len(rows), row=row)
    if not options.job:
        print_rows(rows)
    return 3 if any(row["stopped"] == "diverged" for row in rows) else 0


@contextmanager
def executor_of(options):
    """The executor that --workers and --cluster ask for; None is run_sweep's own."""
    if not options.cluster:
        with nullcontext() if options.workers is None else ThreadPoolExecutor(options.workers) as executor:
            yield executor
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise ValueError("--cluster needs Dask; install it with: pip install 'steinlab[cluster]'.") from None
    where = {"n_workers": options.workers or 2, "threads_per_worker": 1} if options.cluster == "local" else {}
    with Client(None if where else options.cluster, **where) as client, client.get_executor(pure=False) as executor:
        yield executor


def opened(path: str | None) -> Store:
    """The store there, or that of the cache folder; a damaged one is said to be set aside."""
    store = Store(path or cache_folder() / "sweeps.sqlite")
    if store.set_aside:
        print(
            f"warning: {store.path} was damaged; it is now {store.set_aside} and a new one is begun.", file=sys.stderr
        )
    return store


def sweep_show(options) -> int:
    """`sweep show`: print the rows of a store, or write them to a file that the app can ship."""
    if options.store and not os.path.isfile(options.store):
        raise ValueError(f"--store {short(options.store)!r}: there is no such file.")
    store = opened(options.store)
    rows = store.rows()
    if options.export:
        rows = [{k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in row.items()} for row in rows]
        made = datetime.date.today().isoformat()
        about = {"made": made, "by": "python -m stein_core sweep show --export", **versions()}
        with open(options.export, "w") as file:
            lines = (json.dumps(row, separators=(",", ":")) for row in rows)
            file.write(json.dumps(about)[:-1] + ', "rows": [\n' + ",\n".join(lines) + "\n]}\n")
    else:
        print_rows(rows)
    return 0


def nuts_reference(options) -> int:
    """`nuts`: sample the wave's posterior and keep the functions on the grid, with R-hat."""
    if options.width not in WIDTHS:
        raise ValueError(f"--width = {short(options.width)} is out of range; allowed: {WIDTHS[0]} to {WIDTHS[-1]}.")
    if options.every is not None and options.every < 1:
        raise ValueError(f"--every = {short(options.every)} is too small; allowed: 1 or more.")
    check_out(options.out)
    dim, knobs = dim_of(options.width), {}
    if options.recipe:
        recipe = only_recipe(options.recipe)
        if recipe.spec.target != "wave":
            raise ValueError(f"--recipe: its target is {recipe.spec.target!r}; allowed: 'wave'.")
        dim, knobs = (
            recipe.spec.dim,
            {name: value for name, value in recipe.knobs.items() if name.startswith("target.")},
        )
    keep_compiled()
    settings = {name: getattr(options, name) for name in ("chains", "warmup", "samples", "seed", "spread")}
    began = time.perf_counter()
    with progress(options, options.warmup + options.samples, "step") as show:
        values = run_nuts("wave", dim, knobs, GRID, **settings, report=lambda done, total, left: show(done, left))
    r_hat = disagreement(values)
    about = {
        "made": datetime.date.today().isoformat(),
        "by": "python -m stein_core nuts",
        "width": width_of(dim),
        **settings,
        "seconds": round(time.perf_counter() - began),
        "r_hat_max": round(float(r_hat.max()), 4),
        "r_hat": (r_hat if options.every else r_hat.round(4)).tolist(),
        **versions(),
    }
    if options.every:
        save_reference(options.out, Reference(GRID, values[:, :: options.every], about), None)
    else:
        save_reference(options.out, Reference(GRID, values, about))
    if not options.job:
        print(
            f"width {about['width']}: R-hat of f at most {r_hat.max():.3f}, median {np.median(r_hat):.3f}, "
            f"{about['seconds']} s"
        )
    return 0


def record_recipe(options) -> int:
    """`record`: repeat a recipe, its changes included, and keep what its particles do at about 60 steps."""
    if not 0 <= options.steps <= MOST_STEPS:
        raise ValueError(f"--steps = {short(options.steps)} is out of range; allowed: 0 to {MOST_STEPS}.")
    check_out(options.out)
    recipe = only_recipe(options.recipe)
    keep_compiled()
    with progress(options, options.steps, "step") as show:
        recording = record(recipe, options.steps, show)
    save_recording(options.out, recording)
    return 0


def check_out(path: str, argument: str = "--out") -> None:
    """Raises ValueError if the folder of a file that is to be written is not there."""
    if not os.path.isdir(os.path.dirname(path) or "."):
        text = "there is no such folder; allowed: a file in a folder that exists."
        raise ValueError(f"{argument} {short(path)!r}: {text}")


def only_recipe(path: str) -> Recipe:
    """The one recipe of a file. Raises ValueError if there are more."""
    recipes = read_recipes(path)
    if len(recipes) > 1:
        raise ValueError(f"--recipe {short(path)!r} has {len(recipes)} recipes; allowed: one.")
    return recipes[0]


def print_rows(rows) -> None:
    """Rows of a store as a table."""
    columns = (
        "target",
        "method",
        "dim",
        "particles",
        "alpha",
        "kernel",
        "rule",
        "scale",
        "seed",
        "stopped",
        "steps",
        "sample_variance",
    )
    rows = [{**row, "scale": row["recipe"]["knobs"].get("method.force_scale")} for row in rows]
    print("  ".join(f"{name:>9}" for name in columns))
    for row in rows:
        cells = (
            "-" if row[c] is None else f"{row[c]:.6g}" if isinstance(row[c], float) else str(row[c]) for c in columns
        )
        print("  ".join(f"{cell:>9}" for cell in cells))
    print(f"sample_variance: {DIAGNOSTICS['sample_variance'].label}", file=sys.stderr)
