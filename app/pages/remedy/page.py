"""Page "Which remedy": SVGD beside methods that change it in one place, with what each keeps and what it costs."""

from __future__ import annotations

import html
import json
import weakref
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import panel as pn
import panel_material_ui as pmui

from stein_core import METHODS, Spec, target_of
from steinlab.pages.remedy import slots
from steinlab.pages.remedy.figures import Reach, Road
from steinlab.pages.remedy.view import RemedyView, Seen, exact_widths, gradients_of, of_target, seen_before
from steinlab.server.background import LOOKERS
from steinlab.server.folders import ASSETS
from steinlab.server.limits import LIMITS
from steinlab.server.loop import soon
from steinlab.stage.live_page import KEYS, PRESETS, Live
from steinlab.stage.programs import FIRST_CAPACITY
from steinlab.stage.setup import Setup
from steinlab.ui import link
from steinlab.ui.colours import darken, looks_of
from steinlab.ui.groups import group

OF_THE_ROAD = ("method.particles", "method.step_size")
LAW_DIMS = tuple(sorted({*np.geomspace(1, 1000, 36).round().astype(int).tolist(), 10, 20, 50, 100}))
# Of the stage and of the figures, by the number of methods: three cards take the whole width.
WIDTHS = {1: ("1 1 420px", "2 1 420px"), 2: ("3 1 520px", "2 1 380px"), 3: ("1 1 100%", "1 1 100%")}
HELP = (
    "A remedy moves the place where SVGD rests, or only the road to it. Share: a variance divided by the exact one. No "
    "direction lies outside the range from *least* to *most*."
)
HEADS = (
    ("", ""),
    ("mean variance", "mean over the coordinates, as a share of the exact one"),
    ("by its law", "on a standard normal with these settings"),
    ("least", "variance along the direction that has lost most, as a share of the exact one"),
    ("most", "variance along the direction that has kept most, as a share of the exact one"),
    ("ms a step", "measured on this machine, all particles"),
    ("gradients a step", "of the target, all particles; a Hessian counts as one for each coordinate"),
)
CSS = """<style>
.remedies { border-collapse: collapse; font-size: 15px; line-height: 1.5; }
.remedies th { text-align: right; font-weight: 500; padding: 4px 14px; color: var(--mui-palette-text-secondary); }
.remedies td { text-align: right; padding: 4px 14px; font-variant-numeric: tabular-nums; white-space: nowrap;
  border-top: 1px solid var(--mui-palette-divider); }
.remedies td:first-child { text-align: left; }
.remedies .dot { display: inline-block; width: 10px; height: 10px; border-radius: 5px; margin-right: 8px; }
.wide { overflow-x: auto; }
</style>"""


@dataclass(frozen=True)
class Look:
    """What a link says of the view. axes: the two coordinates that are drawn, from 0."""

    axes: tuple[int, int] = (0, 1)


def _axes(text: str) -> tuple[int, int]:
    words = text.split(",")
    known = len(words) == 2 and all(word.isdecimal() and 1 <= int(word) <= LIMITS.dim for word in words)
    if not known or words[0] == words[1]:
        raise ValueError(
            f"axes = {text!r} in the link; allowed: two coordinates from 1 to {LIMITS.dim}, for example 1,2."
        )
    return int(words[0]) - 1, int(words[1]) - 1


VIEW = (link.Field("axes", _axes, lambda axes: ",".join(str(axis + 1) for axis in axes)),)


@lru_cache(maxsize=1)
def shipped() -> list[dict]:
    """Return the rows that come with the app: runs of the sweep `remedies`."""
    return json.loads((ASSETS / "remedies.json").read_text())["rows"]


def laws_of(setup: Setup, methods: tuple[str, ...]) -> dict[str, tuple[list[int], list[float]]]:
    """Return the law of each method that has one: dimensions, and variances on a standard normal. It is slow: call it
    on a thread."""
    laws = {}
    for name in methods:
        spec = Spec("gaussian", method=name, optimizer=setup.spec(name, FIRST_CAPACITY).optimizer)
        known = spec.knobs()
        knobs = {k: knob.default for k, knob in known.items()} | {k: v for k, v in setup.knobs.items() if k in known}
        found = [(d, METHODS[name].facts.law(d, int(knobs["method.particles"]), knobs)) for d in LAW_DIMS]
        if pairs := [(d, float(value)) for d, value in found if np.isfinite(value)]:
            laws[name] = tuple(map(list, zip(*pairs)))
    return laws


class Remedy(Live):
    """Page "Which remedy"; see `steinlab.contents` for the contract of a page."""

    key = "remedy"
    plain = Setup(
        "gaussian",
        ("svgd", "random_subspace"),
        dim=min(50, LIMITS.dim),
        optimizer="sgd",
        knobs={"method.particles": min(20, LIMITS.particles), "method.step_size": 0.2},
    )
    presets = PRESETS["remedy"]
    views = RemedyView
    marks = {
        "attract": "attraction",
        "repulse": "repulsion",
        "trails": "trails",
        "draws": "exact draws",
    }
    drawn = ["attract", "repulse", "draws"]
    speed = 5

    def __init__(self, shell, query: dict[str, str]):
        self.newest: list[Seen] = []
        self.waiting, self.wanted, self.laws, self.exact = False, None, {}, (np.nan, np.nan)
        self.later = soon(pn.state.curdoc)
        self.view, query, problems = self.view_of(query)
        self.view.on_seen = self.on_seen
        self.slots = slots.Slots(lambda methods: self.chosen(methods=methods), shell.frame.dark_theme)
        self.reach, self.road = Reach(shell.frame.dark_theme), Road(shell.frame.dark_theme)
        super().__init__(shell, query, self.view, problems)
        select = {"size": "small", "width": 130, "margin": (6, 8)}
        self.axes = [pmui.Select(label=label, **select) for label in ("Across", "Up")]
        for axis in self.axes:
            axis.param.watch(self.on_axes, "value")
        across = pmui.Row(*self.axes, margin=0)
        self.transport.speed.value = self.speed
        self.numbers = pn.pane.HTML("", sizing_mode="stretch_width", margin=(4, 10))
        self.sidebar = self.arranged()
        figures = [pn.pane.Bokeh(one.figure, sizing_mode="stretch_width") for one in (self.reach, self.road)]
        text = {"variant": "body2", "sizing_mode": "stretch_width", "margin": (4, 10)}
        column = {"margin": (4, 4)}
        self.left = pmui.Column(self.stage, self.transport.row, self.read_outs, self.law.text, min_width=340, **column)
        self.right = pmui.FlexBox(
            *(pmui.Column(each, min_width=330, styles={"flex": "1 1 330px"}) for each in figures), **column
        )
        body = pmui.FlexBox(self.left, self.right, sizing_mode="stretch_width", align_items="flex-start")
        foot = [
            pmui.FlexBox(self.exports, self.reading, align_items="center", sizing_mode="stretch_width"),
            pmui.Typography(f"{HELP} {KEYS}", variant="caption", sizing_mode="stretch_width", margin=(4, 10)),
        ]
        self.about = pmui.Typography(
            "Mean variance and directions are shares of the exact ones; n exact draws have the range of the last row.",
            **text,
        )
        self.lecture.around += [*self.warnings, *foot, across, self.about, self.slots.row]
        self.main = [
            pmui.Column(
                *self.warnings,
                *self.top(across),
                self.slots.row,
                body,
                self.numbers,
                self.about,
                *foot,
                sizing_mode="stretch_width",
                margin=(4, 12),
            )
        ]
        self.quietly(self.show_setup, self.session.linked())
        if self.kept:  # the numbers of the shipped run
            for moments in self.kept.more:
                self.newest = [seen_before(one) for one in moments]
                self.road.add(self.newest)
            self.draw()

    def arranged(self) -> list:
        """Return the groups of the sidebar, with one for what the remedies have of their own."""
        choices = self.choices
        alike = {knob.name for knob in METHODS["svgd"].knobs}
        names = [name for each in slots.remedies().values() for name in each]
        own = dict.fromkeys(f"method.{k.name}" for name in names for k in METHODS[name].knobs if k.name not in alike)
        choices.of_rest.body[:] = [choices.knobs[name] for name in choices.rest if name not in own]
        remedy = group("Remedy", *(choices.knobs[name] for name in own))
        return [choices.posterior, remedy, choices.repulsion, choices.of_optimizer, choices.of_start, choices.of_rest]

    # ---- what the shell and the base ask

    @classmethod
    def view_of(cls, query: dict[str, str]) -> tuple[RemedyView, dict[str, str], list[str]]:
        of_view, rest = link.split(VIEW, query)
        seen, problems = link.read(VIEW, of_view, Look())
        return RemedyView(seen.axes), rest, [*problems.values()]

    @classmethod
    def unfit(cls, setup: Setup) -> str:
        return slots.unfit(setup.methods)

    def open(self, query: dict[str, str]):
        of_view, query = link.split(VIEW, query)
        if of_view:
            self.view.axes = link.read(VIEW, of_view, Look())[0].axes
        super().open(query)

    def show_setup(self, setup: Setup):
        super().show_setup(setup)
        self.slots.show(setup.methods)
        for column, width in zip((self.left, self.right), WIDTHS[len(setup.methods)]):
            column.styles = {"flex": width}
        spec = setup.spec("svgd", FIRST_CAPACITY)
        names = {name: i for i, name in enumerate(target_of(spec).coordinates)}
        for axis, at in zip(self.axes, self.view.drawn(spec.dim)):
            axis.param.update(options=names, value=min(at, spec.dim - 1), visible=spec.dim > 2)

    def darken(self, event):
        super().darken(event)
        self.slots.draw(event.new)
        for one in (self.reach, self.road):
            darken(one.figure, event.new)

    def link_of(self, setup: Setup) -> str:
        of_view = link.write(VIEW, Look(self.view.axes), Look())
        return super().link_of(setup) + f"&{of_view}" * bool(of_view)

    def on_axes(self, event):
        across, up = (axis.value for axis in self.axes)
        if self.quiet or across is None or up is None:
            return
        if across == up:
            pn.state.notifications.warning("Choose two different coordinates.")
            self.quietly(event.obj.param.update, value=event.old)
            return
        self.view.axes = across, up
        self.session.redraw_scene()
        self.session.redraw()

    # ---- numbers

    def on_seen(self, moments: list[Seen]):
        """Keep the newest numbers and ask the event loop to draw them. On the worker's thread."""
        self.newest = moments
        if not self.waiting:
            self.waiting = True
            self.later(self.draw)

    def draw(self):
        """Draw the newest numbers."""
        self.waiting = False
        if not self.newest:
            return
        setup = self.session.shown()[0]
        self.ask(setup)
        self.road.add(self.newest)
        spec = setup.spec("svgd", FIRST_CAPACITY)
        rows = [row for row in shipped() if fits(row, self.present)]
        self.reach.draw(self.newest, spec.dim, self.laws, rows)
        self.road.draw(self.newest)
        self.numbers.object = self.table(setup, spec)

    def ask(self, setup: Setup):
        """Have laws and exact draws computed on a thread, if they are of other settings."""
        now = dict(setup.knobs) | {name: value for _, name, value in setup.changes if "." in name}
        spec, n = setup.spec("svgd", FIRST_CAPACITY), int(now.get("method.particles", 20))
        key = setup.target, spec, setup.methods, tuple(sorted(now.items())), n
        if key == self.wanted:
            return
        self.wanted = key
        self.present = present = replace(setup, knobs=now, changes=(), steps=0)

        own = weakref.ref(self)  # a thread must not keep a page that is closed meanwhile

        def there() -> Remedy | None:
            page = own()
            return page if page is not None and getattr(page, "wanted", None) == key else None

        def look():
            if there():
                found = laws_of(present, setup.methods) if setup.target == "gaussian" else {}
                exact = exact_widths(spec, of_target(spec, now), n)
                if page := there():
                    page.later(lambda: show(found, exact))

        def show(laws, exact):
            if page := there():
                page.laws, page.exact = laws, exact
                page.draw()

        LOOKERS.submit(look)

    def table(self, setup: Setup, spec: Spec) -> str:
        """Return the numbers of each method as HTML."""
        dark, lines = self.stage.dark, []
        n = max((len(frame.locations) for frame in self.session.frames), default=self.present.particles)
        for one, look in zip(self.newest, looks_of([each.method for each in self.newest])):
            dims, values = self.laws.get(one.method, ([], []))
            law = float(np.interp(spec.dim, dims, values)) if spec.dim in dims else np.nan
            dot = f'<span class="dot" style="background: {look.dark if dark else look.colour}"></span>'
            cells = [
                dot + html.escape(METHODS[one.method].label), *map(share, (one.variance, law, one.least, one.most)),
                f"{1e3 * one.seconds:.3g}" if one.seconds else "–", f"{gradients_of(one.method, n, spec.dim):,}",
            ]  # fmt: skip
            lines.append("".join(f"<td>{cell}</td>" for cell in cells))
        exact = [f"{n} exact draws", share(1.0), "", *map(share, self.exact), "", ""]
        lines.append("".join(f"<td>{cell}</td>" for cell in exact))
        head = "".join(f'<th title="{html.escape(tip)}">{html.escape(name)}</th>' for name, tip in HEADS)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f'{CSS}<div class="wide"><table class="remedies"><tr>{head}</tr>{body}</table></div>'


def share(value: float) -> str:
    """Return a share as text."""
    return f"{value:.3g}" if np.isfinite(value) else "–"


def fits(row: dict, setup: Setup) -> bool:
    """Return whether a shipped run has the settings of this page, but for its dimension, its seed and its steps."""
    if row["target"] != setup.target or row["particles"] != setup.particles or row["method"] not in setup.methods:
        return False
    theirs, known = row["recipe"]["knobs"], setup.spec(row["method"], FIRST_CAPACITY).knobs()
    moving = [name for name in known if not name.startswith("init.") and name not in OF_THE_ROAD]
    return all(theirs.get(k, known[k].default) == setup.knobs.get(k, known[k].default) for k in moving)
