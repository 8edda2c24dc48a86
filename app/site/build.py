"""`steinlab site OUT`: write the stage of page Particles as static files, which need no server and no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from stein_core import METHODS, TARGETS
from stein_core.web import HELPERS, program_of
from steinlab.pages.particles import Particles
from steinlab.site import chapters, essay, lessons
from steinlab.site.figures import Figure, Place
from steinlab.site.texts import own, texts, within
from steinlab.stage.replay import replay_page
from steinlab.stage.scene import SideBySide
from steinlab.stage.stage import HERE as STAGE, plain_script, plain_style
from steinlab.ui.colours import looks_of
from steinlab.ui.text import CSS as PROSE

HERE = Path(__file__).parent
TARGETS_HERE = (
    "banana", "two_modes", "three_modes", "ring", "cross", "funnel", "gaussian", "correlated", "student", "oring",
)  # fmt: skip
MANY = (Place("gaussian", 50),)  # what the whole site offers beside them
METHODS_HERE = (
    "svgd", "smi", "vi", "damped", "noisy", "two_kernels", "random_subspace", "blocks", "newton", "accelerated",
    "langevin", "mala", "map",
)  # fmt: skip
CAPACITIES = (32, 64, 200)  # a program costs what its capacity costs
READY = "// what is given before the page asks for it"
GIVE = "steinlab.given[name] = what;"
SHEET, SCRIPT = '<link rel="stylesheet" href="steinlab.css">', '<script src="steinlab.js"></script>'
OWN = '<script src="{}.js"></script>'
MEASURED = ("sample_variance", "force", "stein_trace")
KNOBS = ("method.particles", "method.alpha", "method.step_size", "bandwidth.factor", "kernel.name", "bandwidth.rule")
MORE = ("init.shift", "init.spread", "target.rho")  # what a link and a figure may set, too


def index(places: Sequence[Place], methods: Sequence[str], figures: Iterable[Figure]) -> dict[str, Any]:
    """Return what the page offers: posteriors, methods and knobs."""
    every = Place("autoregression", 10)  # it has every knob of MORE
    known = {**every.spec("svgd", 1).knobs(), **places[0].spec("svgd", 1).knobs()}
    shown = tuple(dict.fromkeys([*methods, *(name for one in figures for name in one.shown)]))
    looks = dict(zip(shown, looks_of(shown)))

    def knob(name: str) -> dict[str, Any]:
        one = known[name]
        low, high = (1, CAPACITIES[-1]) if name == "method.particles" else (one.low, one.high)
        about = {"label": one.label or name, "help": one.help, "low": low, "high": high, "scale": one.scale}
        choices = [{"name": e.name, "label": e.label} for e in one.choices.entries()] if one.choices else None
        return about | {"choices": choices, "value": float(one.traced(one.default))}

    return {
        "targets": [{"name": one.key, "target": one.target, "dim": one.dim, "label": one.label} for one in places],
        "methods": [
            {"name": name, "label": METHODS[name].label, "colour": look.colour, "dark": look.dark}
            | {"offered": name in methods}
            for name, look in looks.items()
        ],
        "knobs": {name: knob(name) for name in (*KNOBS, *MORE)},
        "capacities": CAPACITIES,
        "usual": {"target": places[0].target, "methods": methods[:2]},
        "marks": Particles.marks,
        "show": {name: name in Particles.drawn for name in Particles.marks},
    }


def given(name: str, what: str) -> str:
    """Return a script that hands its content to the page."""
    return f"steinlab.give({json.dumps(name)}, {what});\n"


def scene_of(place: Place, methods: Sequence[str]) -> dict[str, Any]:
    """Return what stands still: the background of a posterior, and a card for each method."""
    view = SideBySide(MEASURED)
    scenes = [view.scene([place.spec(method, CAPACITIES[0])]) for method in methods]
    cards = {method: scene["cards"][0] for method, scene in zip(methods, scenes)}
    return {"background": scenes[0]["backgrounds"][0], "cards": cards}


def needed(
    places: Sequence[Place], methods: Sequence[str], figures: Iterable[Figure]
) -> dict[Place, dict[str, set[int]]]:
    """Return the programs of the lab and of figures: place -> method -> capacities."""
    found: dict[Place, dict[str, set[int]]] = {}
    for place in places:
        found[place] = {method: set(CAPACITIES) for method in methods}
    for figure in figures:
        for method in figure.shown:
            found.setdefault(figure.place, {}).setdefault(method, set()).add(CAPACITIES[0])
    return found


def parts(wanted: dict[Place, dict[str, set[int]]]) -> Iterator[tuple[str, str]]:
    """Yield (name, JavaScript expression) of what the page loads when it is needed: scenes and programs."""
    for place, methods in wanted.items():
        yield f"scenes/{place.key}", json.dumps(scene_of(place, tuple(methods)))
        for method, capacities in methods.items():
            for capacity in sorted(capacities):
                program = program_of(place.spec(method, capacity), MEASURED)
                yield f"programs/{place.key}-{method}-{capacity}", f"() => ({program})"  # a worker makes it again


def style() -> str:
    """Return the style sheet: the tokens of both themes, the text's, the stage's, and the page's own."""
    sheets = (STAGE / "chart.css", HERE / "site.css")
    return "\n".join([PROSE, plain_style(), *(sheet.read_text(encoding="utf-8") for sheet in sheets)])


def code(places: Sequence[Place], methods: Sequence[str], figures: Iterable[Figure]) -> str:
    """Return what every page needs: what programs call, the stage as the app has it, and a run that plays on it."""
    stage = within(f"{plain_script()}\nObject.assign(steinlab, {{ render, StageModel }});")
    offered = json.dumps(index(places, methods, figures))
    begin = f"const steinlab = {{ index: {offered}, given: {{}}, helpers: {json.dumps(HELPERS)} }};"
    begin += f"\nsteinlab.give = (name, what) => {{ {GIVE} }};"
    common = ["const $ = (id) => document.getElementById(id), { index } = steinlab;", own("engine"), own("player")]
    return "\n".join([HELPERS, begin, READY, stage, *common])


def build(
    out: Path,
    targets: Sequence[str] = TARGETS_HERE,
    methods: Sequence[str] = METHODS_HERE,
    told: bool = False,
    taught: Sequence[str] = lessons.CHOSEN,
    say: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Write the site.

    Args:
        out: a folder, which is made; or a file that ends in .html, which then holds the lab with all that it needs.
        targets, methods: what the lab offers; a target needs two dimensions. The first target and the first two methods
            are what it opens with.
        told: whether the folder opens with the essay, has lessons, and offers the normal in 50 dimensions, too.
        taught: keys of these lessons.
        say: say(done, total) is called for each scene, program and drawing.

    Returns:
        The bytes that were written.

    Raises:
        ValueError: an unknown name, or a program that has no translation.
    """
    check(targets, methods)
    pages = [lessons.page_of(lessons.lessons()[key]) for key in taught] if told else []
    figures = [*essay.FIGURES.values(), *chapters.FIGURES.values()] if told else []
    figures += [figure for one in pages for figure in one.figures.values()]
    places = (*map(Place, targets), *(MANY if told else ()))
    wanted, made = needed(places, methods, figures), [("replay.js", given("replay", json.dumps(replay_page())))]
    total = sum(1 + sum(map(len, each.values())) for each in wanted.values()) + sum(one.drawn for one in pages)
    coming = chain(parts(wanted), *(one.parts() for one in pages))
    for number, (name, what) in enumerate(coming):
        made.append((f"{name}.js", given(name, what)))
        say(number + 1, total)
    sheet, common, lab = style(), code(places, methods, figures), (HERE / "lab.html").read_text(encoding="utf-8")
    if out.suffix == ".html":
        common = common.replace(READY, "\n".join(text for _, text in made))
        files = {out: inlined(lab, sheet, {SCRIPT: common, OWN.format("lab"): within(own("lab"))})}
    else:
        named = [("lab.html" if told else "index.html", lab), ("steinlab.css", sheet), ("steinlab.js", common)]
        readable = {"target", "dim", "methods", "seed", *KNOBS, *MORE}
        named += [("lab.js", within(own("lab"))), *made, *(texts(targets, readable, pages) if told else ())]
        files = {out / name: text for name, text in named}
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return sum(len(text.encode()) for text in files.values())


def inlined(page: str, sheet: str, scripts: dict[str, str]) -> str:
    """Return a page that holds its style sheet and its scripts."""
    page = page.replace(SHEET, f"<style>{sheet}</style>")
    for tag, text in scripts.items():
        page = page.replace(tag, f"<script>{text.replace('</', '<' + chr(92) + '/')}</script>")
    return page


def check(targets: Sequence[str], methods: Sequence[str]) -> None:
    """Raise ValueError for what a site cannot offer."""
    for name in targets:
        low, high = TARGETS[name].facts.dims
        if not low <= 2 <= high or TARGETS[name].facts.data:
            raise ValueError(f"target {name!r} cannot be on a site; allowed: targets of two dimensions without data.")
    for name in methods:
        facts = METHODS[name].facts
        if facts.sampler or facts.functions:
            raise ValueError(f"method {name!r} cannot be on a site; allowed: methods of page Particles.")
