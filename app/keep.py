"""Make the pictures that pages and lessons open with, see `steinlab.stage.kept`: `python -m steinlab.keep`."""

from __future__ import annotations

import ast
import gzip
import inspect
import json
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import jax
import numpy as np

from stein_core import keep_compiled
from stein_core.cli.commands import versions
from stein_core.sweep.keys import canonical
from steinlab.lesson import stand_in
from steinlab.lesson.chart import Chart
from steinlab.lesson.host import NotebookHost, use_host
from steinlab.lesson.live_stage import lesson_key
from steinlab.lesson.output import Output
from steinlab.lesson.reading import Lesson, Result, lessons, run, stands_alone
from steinlab.notebook import stage
from steinlab.pages.location import Location
from steinlab.pages.particles import Particles
from steinlab.pages.remedy.page import Remedy
from steinlab.pages.samplers.page import Samplers
from steinlab.stage import kept
from steinlab.stage.contract import View
from steinlab.stage.numbered import Numbered
from steinlab.stage.programs import capacity_of
from steinlab.stage.recorder import again, run_of, usual
from steinlab.stage.scene import SideBySide
from steinlab.stage.setup import Setup

PAGES = {Particles: 600, Location: 600, Samplers: 12_000, Remedy: 3_000}  # and the step that each opens on
POINTS = 300  # of a curve that is kept


class Wanted(NamedTuple):
    """A picture that is kept. key: of `steinlab.stage.kept`. steps: of the run."""

    key: str
    setup: Setup
    view: View
    steps: int


def wanted() -> Iterator[Wanted]:
    """Yield every picture: the first stop of each page with a stage, and the start of each stage in a lesson."""
    for page, steps in PAGES.items():
        setup = page.stops()[0]
        yield Wanted(kept.key_of(page.key, setup), setup, page.views(), steps)
    for lesson in lessons().values():
        for cell in lesson.cells:
            if cell.code and stands_alone(cell.source):
                link, metrics = of_stage(cell.source)
                setup = Setup.from_query(dict(parse_qsl(link)))[0]
                yield Wanted(lesson_key(setup, metrics), setup, SideBySide(metrics), setup.steps)


def of_stage(source: str) -> tuple[str, tuple[str, ...]]:
    """Return the link and the metrics of a call of `stage` in a notebook."""
    call = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args)
    named = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
    usual = inspect.signature(stage).parameters["metrics"].default
    return ast.literal_eval(call.args[0]), named.get("metrics", usual)


def make(one: Wanted) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Run a picture to its step. Returns what is said of it, and its arrays by name."""
    run = run_of(one.setup, one.view)
    scene = one.view.scene([stepper.spec for stepper in run.steppers])
    if one.steps:
        scene = {**scene, "backgrounds": usual(run, one.view, scene["backgrounds"])}
        run = again(run, one.view)
    moments: list[list[tuple]] = []
    numbered = isinstance(one.view, Numbered)
    for _ in range(POINTS if numbered else 1):
        run.advance(one.steps // (POINTS if numbered else 1))
        frames = run.look(one.view.measured)
        if numbered:
            moments.append(one.view.numbers(run, [frame.metrics for frame in frames], 1))
    if run.clock != one.steps:
        raise RuntimeError(f"{one.key} stopped at step {run.clock}")
    packed = one.view.pack(run, [frame.metrics for frame in frames], 1)
    states = (
        {name: [*map(np.asarray, jax.tree.leaves(own.state))] for name, own in run.live.items()} if one.steps else {}
    )
    about = {
        "scene": scene,
        "step": run.clock,
        "states": {name: len(parts) for name, parts in states.items()},
        "more": [[plain(each) for each in several] for several in moments],
    }
    arrays = {f"{name} {i}": part for name, parts in states.items() for i, part in enumerate(parts)}
    return about, {"frame": packed, **arrays}


def plain(one: tuple) -> dict[str, Any]:
    """Return a named tuple of numbers as JSON has them, NaN as None. Layers of a hierarchy are left out."""
    return {name: tidy(value) for name, value in one._asdict().items() if not name.startswith("layer")}


def tidy(value: Any) -> Any:
    """Return a number of four digits, a list of them, or None for NaN."""
    if isinstance(value, np.ndarray):
        return [tidy(float(each)) for each in value]
    return (float(f"{value:.4g}") if np.isfinite(value) else None) if isinstance(value, float) else value


def parts_of(lesson: Lesson) -> dict[str, dict[str, Any]]:
    """Run a lesson, and return what its figures and tables look like, by the key of their cell."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    host, found = NotebookHost(lambda call: None, lesson=True), {}
    with use_host(host):
        for index, cell in enumerate(lesson.cells):
            result = run(cell.source, namespace) if cell.code else Result()
            if result.problem:
                raise RuntimeError(f"lesson {lesson.key}, cell {index}: {result.problem}")
            if isinstance(result.shown, Output):
                result.shown.settle(600)
            if isinstance(result.shown, Chart):
                result.shown.show()
            if kept_part := stand_in.kept_of(result.shown):
                found[stand_in.key_of(lesson, index)] = kept_part
    for output in host.outputs:
        output.close()
    return found


def make_lessons(say: Callable[[str], None] = print) -> None:
    """Write what the figures and tables of all lessons look like."""
    found: dict[str, Any] = {}
    for lesson in lessons().values():
        found |= parts_of(lesson)
        say(f"lesson {lesson.key}: {len(found)} so far")
    # In a document of Bokeh the order of the keys counts: what refers to a model comes after it.
    text = json.dumps(found, separators=(",", ":")).encode()
    stand_in.FILE.write_bytes(gzip.compress(text, mtime=0))


def make_stages(say: Callable[[str], None] = print) -> None:
    """Write the pictures of all stages."""
    index: dict[str, Any] = {}
    parts: dict[str, np.ndarray] = {}
    for number, one in enumerate(wanted()):
        if one.key in index:  # two lessons show one stage
            continue
        about, arrays = make(one)
        name = str(number)
        recipes = [canonical(one.setup.recipe(method, capacity_of(one.setup))) for method in one.setup.methods]
        index[one.key] = {"name": name, "step": one.steps, "recipes": json.loads(json.dumps(recipes))}
        parts[f"{name} about"] = np.array(json.dumps(about))
        parts |= {f"{name} {key}": value for key, value in arrays.items()}
        say(f"{one.key}: step {one.steps}")
    index["made"] = {"date": date.today().isoformat(), **versions()}
    np.savez_compressed(kept.FILE, about=np.array(json.dumps(index)), **parts)


if __name__ == "__main__":
    keep_compiled()
    make_stages()
    make_lessons()
