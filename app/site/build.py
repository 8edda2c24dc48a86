"""`steinlab site OUT`: write the stage of page Particles as static files, which need no server and no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from stein_core import METHODS, TARGETS, Spec
from stein_core.web import HELPERS, program_of
from steinlab.pages.particles import Particles
from steinlab.stage.scene import SideBySide
from steinlab.stage.stage import HERE as STAGE, SCRIPTS
from steinlab.ui.colours import looks_of
from steinlab.ui.theme import script, variables

HERE = Path(__file__).parent
TARGETS_HERE = (
    "banana", "two_modes", "three_modes", "ring", "cross", "funnel", "gaussian", "correlated", "student", "oring",
)  # fmt: skip
METHODS_HERE = (
    "svgd", "smi", "vi", "damped", "noisy", "two_kernels", "random_subspace", "blocks", "newton", "accelerated",
    "langevin", "mala", "map",
)  # fmt: skip
CAPACITIES = (32, 128)  # a program costs what its capacity costs
READY = "// what is given before the page asks for it"
GIVE = "steinlab.given[name] = what;"
SHEET, SCRIPT = '<link rel="stylesheet" href="steinlab.css">', '<script src="steinlab.js"></script>'
MEASURED = ("sample_variance", "force", "stein_trace")
KNOBS = ("method.particles", "method.alpha", "method.step_size", "bandwidth.factor", "kernel.name", "bandwidth.rule")


def spec_of(target: str, method: str, capacity: int) -> Spec:
    """Return the spec of a program of the site, as page Particles has it."""
    return Spec.fitting(target=target, dim=2, method=method, draws=10, capacity=capacity)


def index(targets: Sequence[str], methods: Sequence[str]) -> dict[str, Any]:
    """Return what the page offers: posteriors, methods and knobs."""
    known, looks = spec_of(targets[0], "svgd", CAPACITIES[-1]).knobs(), looks_of(methods)

    def knob(name: str) -> dict[str, Any]:
        one = known[name]
        low, high = (1, CAPACITIES[-1]) if name == "method.particles" else (one.low, one.high)
        about = {"label": one.label or name, "help": one.help, "low": low, "high": high, "scale": one.scale}
        choices = [{"name": e.name, "label": e.label} for e in one.choices.entries()] if one.choices else None
        return about | {"choices": choices, "value": float(one.traced(one.default))}

    return {
        "targets": [{"name": name, "label": TARGETS[name].label} for name in targets],
        "methods": [
            {"name": name, "label": METHODS[name].label, "colour": look.colour, "dark": look.dark}
            for name, look in zip(methods, looks)
        ],
        "knobs": {name: knob(name) for name in KNOBS},
        "capacities": CAPACITIES,
        "usual": {"target": targets[0], "methods": methods[:2]},
        "marks": Particles.marks,
        "show": {name: name in Particles.drawn for name in Particles.marks},
    }


def given(name: str, what: str) -> str:
    """Return a script that hands its content to the page."""
    return f"steinlab.give({json.dumps(name)}, {what});\n"


def scene_of(target: str, methods: Sequence[str]) -> dict[str, Any]:
    """Return what stands still: the background of a posterior, and a card for each method."""
    view = SideBySide(MEASURED)
    scenes = [view.scene([spec_of(target, method, CAPACITIES[0])]) for method in methods]
    cards = {method: scene["cards"][0] for method, scene in zip(methods, scenes)}
    return {"background": scenes[0]["backgrounds"][0], "cards": cards}


def parts(targets: Sequence[str], methods: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, JavaScript expression) of what the page loads when it is needed: scenes and programs."""
    for target in targets:
        yield f"scenes/{target}", json.dumps(scene_of(target, methods))
        for method in methods:
            for capacity in CAPACITIES:
                yield f"programs/{target}-{method}-{capacity}", program_of(spec_of(target, method, capacity), MEASURED)


def style() -> str:
    """Return the style sheet: the tokens of both themes, the stage's, and the page's own."""
    themes = f":root, .stage {{ {variables('light')} }} [data-theme=dark], .stage.dark {{ {variables('dark')} }}"
    return "\n".join([themes, *(file.read_text(encoding="utf-8") for file in (STAGE / "stage.css", HERE / "site.css"))])


def code(targets: Sequence[str], methods: Sequence[str]) -> str:
    """Return the script of the page: what programs call, the stage as the app has it, and the page's own."""
    stage = script(*map(STAGE.joinpath, SCRIPTS)).replace("export function render", "function render")
    own = "\n".join((HERE / name).read_text(encoding="utf-8") for name in ("engine.js", "lab.js"))
    offered = json.dumps(index(targets, methods))
    begin = f"const steinlab = {{ index: {offered}, given: {{}} }};\nsteinlab.give = (name, what) => {{ {GIVE} }};"
    return "\n".join(
        [HELPERS, begin, READY, "(() => {", stage, "steinlab.render = render;", "})();", "(() => {", own, "})();"]
    )


def build(
    out: Path,
    targets: Sequence[str] = TARGETS_HERE,
    methods: Sequence[str] = METHODS_HERE,
    say: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Write the site.

    Args:
        out: a folder, which is made; or a file that ends in .html, which then holds everything.
        targets, methods: what it offers; a target needs two dimensions. The first target and the first two methods are
            what it opens with.
        say: say(done, total) is called for each scene and program.

    Returns:
        The bytes that were written.

    Raises:
        ValueError: an unknown name, or a program that has no translation.
    """
    check(targets, methods)
    page, total = (HERE / "lab.html").read_text(encoding="utf-8"), len(targets) * (1 + len(methods) * len(CAPACITIES))
    made = []
    for number, (name, what) in enumerate(parts(targets, methods)):
        made.append((f"{name}.js", given(name, what)))
        say(number + 1, total)
    sheet, script = style(), code(targets, methods)
    if out.suffix == ".html":
        script = script.replace(READY, "\n".join(text for _, text in made)).replace("</", "<\\/")
        page = page.replace(SHEET, f"<style>{sheet}</style>").replace(SCRIPT, f"<script>{script}</script>")
        files = {out: page}
    else:
        named = [("index.html", page), ("steinlab.css", sheet), ("steinlab.js", script), *made]
        files = {out / name: text for name, text in named}
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return sum(len(text.encode()) for text in files.values())


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
