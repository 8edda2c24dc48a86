"""The command `sweep`, and what the commands that take long share."""

from __future__ import annotations

import datetime
import inspect
import json
import os
import platform
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path

import jax

from stein_core.base.devices import pin
from stein_core.base.errors import short
from stein_core.base.machine import cache_folder, device_name, keep_compiled
from stein_core.cli.files import IMPORTED, run_file
from stein_core.cli.job import add_job, progress, read_recipes
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import DIAGNOSTICS
from stein_core.papers import recovery, widths  # noqa: F401  (importing registers)
from stein_core.sweep import remedies  # noqa: F401  (importing registers)
from stein_core.sweep.grids import SWEEPS, run_sweep
from stein_core.sweep.stop import RULES, Stop
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
    add_json(show)


def add_running(parser, own: Stop) -> None:
    """The arguments of every sweep: when its runs stop, what runs them, where their rows go."""
    parser.add_argument("--stop", default=own.rule, help=f"convergence rule: {', '.join(RULES)}")
    for name in ("stages", "least", "noisy", "most"):
        default = getattr(own, name)
        parser.add_argument(
            f"--{name}", type=int, default=default, help=f"see stein_core.sweep.stop.Stop; default {default}"
        )
    parser.add_argument("--workers", type=int, help="threads; default one a core up to 4")
    parser.add_argument(
        "--devices", type=int, help="devices that take runs in turn; default: all GPUs, or one on a CPU"
    )
    parser.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler, or 'local' (needs the extra `cluster`)")
    parser.add_argument("--store", metavar="FILE", help="SQLite file; default sweeps.sqlite in the cache folder")
    add_json(parser)
    add_job(parser)


def add_json(parser) -> None:
    """The argument of a sweep whose rows another program reads."""
    parser.add_argument("--json", action="store_true", help="print one JSON object, with the list `rows`")


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
    store = opened(options.store)
    keep_compiled()
    told = set()
    with executor_of(options) as executor, progress(options, len(recipes), "row") as show:

        def report(row, done, total, left):
            told.add(row["key"])
            show(done, left, f"{row['method']} d={row['dim']}, about {left:.0f} s left", row=row)

        rows = run_sweep(recipes, store, stop, executor, report, options.devices)
        for row in rows:  # those that were there
            if options.job and row["key"] not in told:
                show(len(rows), row=row)
    if not options.job:
        print_rows(rows, options.json)
    return 3 if any(row["stopped"] == "diverged" for row in rows) else 0


@contextmanager
def executor_of(options):
    """The executor that --workers and --cluster ask for; None is run_sweep's own."""
    if not options.cluster:
        with nullcontext() if options.workers is None else ThreadPoolExecutor(options.workers) as executor:
            yield executor
        return
    try:
        from dask.distributed import Client, WorkerPlugin
    except ImportError:
        raise ValueError("--cluster needs Dask; install it with: pip install 'steinlab[cluster]'.") from None
    if (devices := getattr(options, "devices", None)) is not None:
        raise ValueError(f"--devices = {devices} with --cluster, whose workers have one each; allowed: none.")
    local = {"n_workers": options.workers or max(2, jax.device_count()), "threads_per_worker": 1}
    where = local if options.cluster == "local" else {}

    class Pins(WorkerPlugin):
        """Give each worker of a machine a device of its own."""

        def __init__(self, workers):
            by_host: dict[str, list[str]] = {}
            for address, about in sorted(workers.items()):
                by_host.setdefault(about["host"], []).append(address)
            self.places = {address: place for each in by_host.values() for place, address in enumerate(each)}

        def setup(self, worker):
            pin(self.places.get(worker.address, zlib.crc32(worker.address.encode())))  # some come later

    class Imports(WorkerPlugin):
        """Run the files of --import on each worker, which may have no such files."""

        def __init__(self):
            self.texts = [(os.path.basename(path), Path(path).read_bytes()) for path in IMPORTED]

        def setup(self, worker):
            for name, text in self.texts:
                file = Path(tempfile.mkdtemp(dir=worker.local_directory)) / name
                file.write_bytes(text)
                run_file(str(file), "--import")

    with Client(None if where else options.cluster, **where) as client, client.get_executor(pure=False) as executor:
        client.register_plugin(Pins(client.scheduler_info(-1)["workers"]), name="steinlab devices")
        if IMPORTED:
            client.register_plugin(Imports(), name="steinlab imports")
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
        print_rows(rows, options.json)
    return 0


def check_out(path: str, argument: str = "--out", endings: tuple[str, ...] = ()) -> None:
    """Refuse a file that cannot be written, before anything is computed.

    Args:
        path: the file.
        argument: the option that names it, for messages.
        endings: of its name, if the ending says what is written.

    Raises:
        ValueError: another ending; there is no such folder; it is a folder, or may not be written.
    """
    folder, allowed = os.path.dirname(path) or ".", "allowed: a file in a folder that exists."
    if endings and not path.endswith(endings):
        raise ValueError(f"{argument} {short(path)!r}: unknown format; allowed: {', '.join(endings)}.")
    if not os.path.isdir(folder):
        raise ValueError(f"{argument} {short(path)!r}: there is no such folder; {allowed}")
    if os.path.isdir(path):
        raise ValueError(f"{argument} {short(path)!r} is a folder; {allowed}")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise ValueError(f"{argument} {short(path)!r} may not be written; allowed: a place where you may write.")


def only_recipe(path: str) -> Recipe:
    """The one recipe of a file. Raises ValueError if there are more."""
    recipes = read_recipes(path)
    if len(recipes) > 1:
        raise ValueError(f"--recipe {short(path)!r} has {len(recipes)} recipes; allowed: one.")
    return recipes[0]


def print_rows(rows, as_json: bool) -> None:
    """Rows of a store, as a table or as one JSON object."""
    if as_json:
        print(json.dumps({"rows": rows}))
        return
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
