"""steinlab or python -m stein_core: serve | site | list | run | fit | diagnose | calibrate | sweep | record ..."""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import time
from pathlib import Path

import numpy as np
from jax.errors import JaxRuntimeError
from tqdm import tqdm

from stein_core import (
    BANDWIDTHS,
    DIAGNOSTICS,
    GUIDES,
    KERNELS,
    METHODS,
    OPTIMIZERS,
    TARGETS,
    Frame,
    Recipe,
    Spec,
    capacity_for,
    compile,
    device_name,
    keep_compiled,
    stream,
)
from stein_core.base.errors import short, unknown
from stein_core.base.machine import single_thread_lapack
from stein_core.cli.bench_posteriors import add_bench
from stein_core.cli.calibrate import add_calibrate
from stein_core.cli.commands import add_sweep, check_out, given_knobs, versions
from stein_core.cli.files import IMPORTED, run_file
from stein_core.cli.job import INTERRUPTED, end_with, end_with_interrupt
from stein_core.cli.posterior import add_posterior
from stein_core.cli.recordings import add_nuts, add_record
from stein_core.cli.serve import add_serve, run_server
from stein_core.cli.site import add_site
from stein_core.cli.tables import add_tables
from stein_core.contract.facts import MAX_CAPACITY
from stein_core.contract.spec import all_options
from stein_core.runs.nearness import error_of, said, without_pairs

NOBODY_READS = 141  # 128 + SIGPIPE
LINE = 80  # characters of a default that `list` prints in full


class Parser(argparse.ArgumentParser):
    """Its messages repeat no more of a long value than ours do."""

    def error(self, message):
        super().error(short(message))


def parser() -> Parser:
    """All commands with their options; `act` is what carries one out."""
    prog = "steinlab" if Path(sys.argv[0]).stem == "steinlab" else "python -m stein_core"
    parser = Parser(
        prog=prog,
        description="Stein particle inference: the app, and everything behind it without a page.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--import", action="append", metavar="FILE.py", help="run this first; what it registers can be named"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    add_serve(commands)
    add_site(commands)
    commands.add_parser("list", help="what is registered").set_defaults(act=list_registered)
    commands.add_parser("info", help="versions and the device").set_defaults(act=info)
    run = commands.add_parser("run", help="run one recipe")
    run.set_defaults(act=run_recipe)
    run.add_argument("--target", default="oring")
    run.add_argument("--dim", type=int, help="dimension, where the target has a choice")
    run.add_argument("--method", default="smi")
    run.add_argument("--guide", help="the method's own by default")
    run.add_argument("--particles", type=int, default=20)
    run.add_argument("--kernel", default="rbf")
    run.add_argument("--bandwidth", default="median_log")
    run.add_argument("--optimizer", default="adam")
    run.add_argument("--draws", type=int, default=10, help="Monte Carlo draws per particle and step")
    run.add_argument("--steps", type=int, default=1000)
    run.add_argument("--seed", type=int, default=0)
    run.add_argument(
        "--devices", type=int, help="devices that share the particles; default: one, beyond 4,096 all GPUs"
    )
    run.add_argument(
        "--near", type=float, metavar="TOLERANCE", help="leave out smaller values of the RBF kernel; the error is said"
    )
    text = "any knob or option, e.g. method.alpha=2"
    run.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help=text)
    run.add_argument("--every", type=int, metavar="K", help="keep a frame every K steps (with --out)")
    run.add_argument("--out", metavar="FILE.npz", help="where the frames go")
    run.add_argument("--json", action="store_true", help="print one JSON object")
    add_posterior(commands)
    add_calibrate(commands)
    add_sweep(commands)
    add_nuts(commands)
    add_record(commands)
    add_bench(commands)
    add_tables(commands)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code: 0, 2 for a wrong name or value, 3 for a run that diverged."""
    single_thread_lapack()
    try:
        known = parser()
        options, options.others = known.parse_known_args(import_files(arguments))
        if options.others and options.act is not run_server:
            known.error(f"unrecognized arguments: {' '.join(options.others)}")
        if getattr(options, "job", None) is not None:
            end_with(options.job)
        return options.act(options)
    except BrokenPipeError:  # `process` ends quietly
        raise
    except OSError as error:
        problem = (
            f"{error.strerror or str(error).rstrip('.')}{f': {short(error.filename)!r}' if error.filename else ''}."
        )
    except sqlite3.Error as error:  # locked, read-only, a full disk
        problem = f"--store {short(options.store or 'of the cache folder')!r}: {error}."
    except ValueError as error:
        problem = str(error)
    except JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        problem = f"{str(error).splitlines()[0].rstrip('.')}. Take fewer particles, draws or dimensions."
    print(f"error: {problem}", file=sys.stderr)
    return 2


def process() -> int:
    """Carry out `main` as a process, and return the exit code that a shell expects: 130 after Ctrl-C, and 141 if
    nobody reads the output any more, as in `list | head`."""
    end_with_interrupt()
    try:
        code = main()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tells of it when it ends
        return NOBODY_READS


def import_files(arguments: list[str] | None) -> list[str]:
    """Run the files of every `--import FILE.py`, which may register entries, and return the other arguments."""
    first = Parser(prog="python -m stein_core", add_help=False, allow_abbrev=False)
    first.add_argument("--import", action="append", default=[], dest="files", metavar="FILE.py")
    found, rest = first.parse_known_args(arguments)
    IMPORTED[:] = map(os.path.abspath, found.files)
    for file in found.files:
        run_file(file, "--import")
    return rest


def list_registered(options) -> int:
    """`list`: every entry of every registry, and the knobs of every run."""
    for registry in (TARGETS, METHODS, GUIDES, KERNELS, BANDWIDTHS, OPTIMIZERS, DIAGNOSTICS):
        print(f"{registry.kind}s")
        for entry in registry.entries():
            print(f"  {entry.name:<18} {entry.summary}  [{entry.reference}]")
            for knob in entry.knobs:
                print(f"      {registry.kind}.{knob.name:<14} {knob.help}; default {brief(knob.default)}")
            for option in entry.options:
                span = ", ".join(option.choices) or f"{option.low} to {option.high}"
                print(f"      {registry.kind}.{option.name:<14} {option.help}; default {brief(option.default)}; {span}")
        print()
    print("knobs of every run")
    for name, knob in Spec().knobs().items():
        span = ", ".join(knob.choices) if knob.choices else f"{knob.low:g} to {knob.high:g}"
        print(f"  {name:<18} {knob.help}; default {brief(knob.default)}; {span}")
    return 0


def brief(value) -> str:
    """Return a default as one line says it: of a long table how many entries it has, and the first."""
    text = str(value)
    return text if len(text) <= LINE else f"{len(value)} entries, the first {value[0]}"


def info(options) -> int:
    """`info`: versions and the device."""
    for name, value in versions().items():
        print(f"{name:<9} {value}")
    return 0


def run_recipe(options) -> int:
    """`run`: one recipe from its start; 3 where it has diverged."""
    knobs = {
        "method.particles": options.particles,
        "kernel.name": options.kernel,
        "bandwidth.rule": options.bandwidth,
    }
    given = given_knobs(options.set)
    static = {name: value for name, value in given.items() if name in all_options()}
    knobs |= {name: value for name, value in given.items() if name not in static}
    if not 1 <= options.particles <= MAX_CAPACITY:
        raise ValueError(f"--particles = {short(options.particles)} is out of range; allowed: 1 to {MAX_CAPACITY}.")
    if options.out:
        check_out(options.out)
    if options.steps < 0:
        raise ValueError(f"--steps = {short(options.steps)} is negative; allowed: 0 or more.")
    if options.every is not None and options.every < 1:
        raise ValueError(f"--every = {short(options.every)} is too small; allowed: 1 or more.")
    if bool(options.every) != bool(options.out):
        raise ValueError("--every and --out go together: --every K --out FILE.npz.")
    spec = Spec(
        options.target,
        options.dim,
        options.method,
        options.guide,
        options.optimizer,
        options.draws,
        capacity_for(options.particles),
        static,
    )
    known = [*spec.knobs(), *spec.options]
    for name in given:
        if name not in known:
            raise unknown("knob", name, known)
    recipe = Recipe(spec, knobs, options.seed)
    keep_compiled()
    how = {"measure": True if options.near is None else without_pairs(), "near": options.near}
    how["devices"] = options.devices
    stepper = compile(spec, **how)

    chunk = options.every or max(1, min(1000, options.steps // 100))
    frames: list[Frame] = []
    started = time.perf_counter()
    with tqdm(total=options.steps, unit="step", disable=None, file=sys.stderr) as bar:
        for frame in stream(recipe, options.steps, chunk, **how):
            if not options.out:
                frames.clear()
            frames.append(frame)
            bar.update(frame.step - bar.n)
    seconds = time.perf_counter() - started
    last = frames[-1]

    if options.out:
        save(options.out, recipe, frames)
    result = {
        "recipe": recipe.to_dict(),
        "steps": last.step,
        "device": device_name(),
        "steps_per_second": round(last.step / seconds, 1),
        "metrics": {k: v if np.isfinite(v) else None for k, v in last.metrics.items()},
    }
    if options.near is not None:
        result["near"] = error_of(stepper, recipe, last)
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{options.method} on {options.target}, step {last.step}, {result['steps_per_second']} steps/s")
        for name, value in result["metrics"].items():
            print(f"  {name:<18} {'undefined' if value is None else format(value, '.6g')}")
        if options.near is not None:
            print(said(result["near"]))
    if not last.finite:
        print(f"error: diverged at step {last.step + 1}; try a smaller method.step_size.", file=sys.stderr)
        return 3
    return 0


def save(path: str, recipe: Recipe, frames: list[Frame]) -> None:
    """Frames as an .npz of plain arrays, first axis the frame: step, particles, ..., one array per metric, and the
    recipe as JSON text. Reads back with numpy.load(path, allow_pickle=False)."""
    arrays = {
        k: np.stack([getattr(f, k) for f in frames])
        for k in Frame.__dataclass_fields__
        if k not in ("metrics", "extra")
    }
    arrays |= {name: np.array([f.metrics.get(name, np.nan) for f in frames]) for name in DIAGNOSTICS}
    np.savez_compressed(path, recipe=json.dumps(recipe.to_dict()), **arrays)
