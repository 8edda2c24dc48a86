"""The commands that write a file of what a run does: the NUTS reference of the wave, and a recording."""

from __future__ import annotations

import datetime
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np

from stein_core.base.bands import disagreement
from stein_core.base.errors import short
from stein_core.base.machine import keep_compiled
from stein_core.cli.commands import check_out, only_recipe, versions
from stein_core.cli.job import add_job, progress
from stein_core.cli.site import folder_of_app
from stein_core.contract.spec import Spec
from stein_core.papers.recording import record, save_recording
from stein_core.papers.wave_nuts import Reference, run_nuts, save_reference
from stein_core.sweep.stop import MOST_STEPS
from stein_core.targets import small_networks as network_data, wave
from stein_core.targets.wave import WIDTHS, dim_of, width_of

ENDINGS = (".html", ".webm", ".gif")  # of what is made of a link
RECIPE_STEPS = 1000
LOOK = {"every": None, "theme": None, "size": 720, "marks": None}  # options of a link, by default
GRIDS = {"wave": wave.GRID, "gap_regression": network_data.GRID[:, None]}


def add_nuts(commands) -> None:
    """The arguments of `nuts`."""
    nuts = commands.add_parser(
        "nuts", help="a NUTS reference of the 1-D wave or of the regression with a gap, written to a file"
    )
    nuts.set_defaults(act=nuts_reference)
    which = nuts.add_mutually_exclusive_group()
    which.add_argument("--width", type=int, default=5, help="hidden units of each layer; default 5")
    which.add_argument(
        "--recipe",
        metavar="FILE",
        help=f"JSON of a recipe on {' or '.join(GRIDS)}, whose network, data and prior count; - is stdin",
    )
    for name, default in (("chains", 4), ("warmup", 1000), ("samples", 1000), ("seed", 0)):
        nuts.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    nuts.add_argument("--spread", type=float, default=1.0, help="start, in units of the target's scale; default 1")
    nuts.add_argument("--every", type=int, metavar="K", help="keep every K-th draw in float32; default 150 in float16")
    nuts.add_argument("--out", metavar="FILE.npz", required=True)
    add_job(nuts)


def add_record(commands) -> None:
    """The arguments of `record`."""
    recording = commands.add_parser(
        "record", help="a run of a link as a page, a film or a GIF; or what a recipe's particles do at about 60 steps"
    )
    recording.set_defaults(act=record_run)
    which = recording.add_mutually_exclusive_group(required=True)
    text = "of a page with a run, in quotes: an address or its query"
    which.add_argument("link", metavar="LINK", nargs="?", help=text)
    which.add_argument("--recipe", metavar="FILE", help="JSON of Recipe.to_dict; - is stdin")
    text = "default: those of LINK, or 300 frames, and for networks all; of a recipe 1000"
    recording.add_argument("--steps", type=int, help=text)
    text = f"{', '.join(ENDINGS)} of LINK; FILE.npz of a recipe, with norms, angles and forces"
    recording.add_argument("--out", metavar="FILE", required=True, help=text)
    look = recording.add_argument_group("with LINK")
    text = "steps from one frame to the next; default that of the page, and for networks what makes 300 frames"
    look.add_argument("--every", type=int, metavar="K", help=text)
    look.add_argument("--theme", choices=("light", "dark"), help="default: that of LINK, or light")
    look.add_argument("--size", type=int, choices=(720, 1080), help="height of a film or GIF; default 720")
    look.add_argument(
        "--marks", metavar="A,B", help="of attract,repulse,guides,trails,draws; default: those of LINK or its page"
    )
    recording.set_defaults(**LOOK)
    add_job(recording)


def nuts_reference(options) -> int:
    """`nuts`: sample a regression's posterior and keep the functions on the grid, with R-hat."""
    if options.width not in WIDTHS:
        raise ValueError(f"--width = {short(options.width)} is out of range; allowed: {WIDTHS[0]} to {WIDTHS[-1]}.")
    if options.every is not None and options.every < 1:
        raise ValueError(f"--every = {short(options.every)} is too small; allowed: 1 or more.")
    check_out(options.out)
    spec, knobs = Spec("wave", dim_of(options.width), "map"), {}
    if options.recipe:
        recipe = only_recipe(options.recipe)
        spec = recipe.spec
        if spec.target not in GRIDS:
            raise ValueError(f"--recipe: its target is {spec.target!r}; allowed: {', '.join(map(repr, GRIDS))}.")
        knobs = {name: value for name, value in recipe.knobs.items() if name.startswith("target.")}
    grid, own = GRIDS[spec.target], {f"target.{name}": value for name, value in spec.options_of("target").items()}
    keep_compiled()
    settings = {name: getattr(options, name) for name in ("chains", "warmup", "samples", "seed", "spread")}
    began = time.perf_counter()
    with progress(options, options.warmup + options.samples, "step") as show:
        values = run_nuts(
            spec.target, spec.dim, knobs, grid, **settings, report=lambda *news: show(news[0], news[2]), options=own
        )
    r_hat = disagreement(values)
    about = {
        "made": datetime.date.today().isoformat(),
        "by": "python -m stein_core nuts",
        "width": width_of(spec.dim) if spec.target == "wave" else own["target.width"],
        **settings,
        "seconds": round(time.perf_counter() - began),
        "r_hat_max": round(float(r_hat.max()), 4),
        "r_hat": (r_hat if options.every else r_hat.round(4)).tolist(),
        **versions(),
    }
    if options.every:
        save_reference(options.out, Reference(grid.ravel(), values[:, :: options.every], about), None)
    else:
        save_reference(options.out, Reference(grid.ravel(), values, about))
    if not options.job:
        print(
            f"width {about['width']}: R-hat of f at most {r_hat.max():.3f}, median {np.median(r_hat):.3f}, "
            f"{about['seconds']} s"
        )
    return 0


def record_run(options) -> int:
    """`record`: a link, or a recipe."""
    if options.recipe is None:
        return record_link(options)
    if given := [f"--{name}" for name, usual in LOOK.items() if getattr(options, name) != usual]:
        raise ValueError(f"{', '.join(given)} cannot go with --recipe; allowed: with LINK.")
    return record_recipe(options)


def record_link(options) -> int:
    """`record LINK`: write the run of a link as a page that plays it, a film or a GIF; 3 where it has diverged."""
    folder_of_app("record")
    check_out(options.out, endings=ENDINGS)
    of_app = import_module("steinlab.site.record")
    wanted = of_app.read(options.link, options.theme, options.marks)
    steps = wanted.steps if options.steps is None else options.steps
    every = wanted.every(steps) if options.every is None else options.every
    keep_compiled()
    began = time.perf_counter()
    with progress(options, steps, wanted.unit) as show:
        size, diverged = of_app.record(
            wanted, Path(options.out), steps, every, options.size, lambda step, text: show(step, text=text)
        )
    if not options.job:
        print(f"{size / 1e6:.2f} MB in {time.perf_counter() - began:.0f} s; open {options.out}")
    if diverged:
        print(f"error: {diverged}", file=sys.stderr)
    return 3 if diverged else 0


def record_recipe(options) -> int:
    """`record --recipe`: repeat a recipe, its changes included, and keep what its particles do at about 60 steps."""
    steps = RECIPE_STEPS if options.steps is None else options.steps
    if not 0 <= steps <= MOST_STEPS:
        raise ValueError(f"--steps = {short(steps)} is out of range; allowed: 0 to {MOST_STEPS}.")
    check_out(options.out, endings=(".npz",))
    recipe = only_recipe(options.recipe)
    keep_compiled()
    with progress(options, steps, "step") as show:
        recording = record(recipe, steps, show)
    save_recording(options.out, recording)
    return 0
