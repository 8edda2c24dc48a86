"""Base of the pages with a running stage: the controls of a Session, its links, exports and read-outs."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

import numpy as np
import panel as pn
import panel_material_ui as pmui

from app.server.folders import ASSETS
from app.server.limits import LIMITS
from app.server.loop import soon
from app.server.streaming import Mailbox, Streamer
from app.stage.session import FIRST_CAPACITY, Session
from app.stage.setup import Setup, all_knobs
from app.stage.stage import Stage
from app.ui import link
from app.ui.knob_widgets import WIDTH, NumberField, set_value, widget
from stein_core import GUIDES, METHODS, OPTIMIZERS, TARGETS, device_name
from stein_core.recipe import MAX_DRAWS

PRESETS = json.loads((ASSETS / "presets.json").read_text())
PROMPT = "Choose one thing to see …"
SPEEDS = [1, 2, 5, 10, 20, 50, 100]
NOTHING = "none"  # what a link says when no mark is drawn
BUTTON = {"size": "small", "margin": (4, 4)}
CHOICE = {"size": "small", **WIDTH}
BELOW = {
    "& .MuiSlider-valueLabel": {"top": 56},
    "& .MuiSlider-valueLabel::before": {"display": "none"},
}  # above the slider, the app bar would cover it
# Items with "·" between them, as in a legend.
KEYS = (
    "Keys: **Space** play or pause · **→** step · **←** back (playing from an earlier frame discards the later ones) · "
    "**↑ ↓** speed · **R** reset · *Fit arrows* lengthens the arrows of small forces"
)


@dataclass(frozen=True)
class Look:
    """What of a run is drawn. show: names of a page's marks, in its order."""

    show: tuple[str, ...]


class Live:
    """Wire the widgets of a page to one Session and one Stage. The session holds the state of the run.

    A subclass builds `sidebar` and `main` from the pieces made here. See `app.shell` for the contract of a page.

    Attributes:
        plain: Setup of a bare link.
        presets: dicts of "name", "link" and "text".
        marks: name -> label of what can be drawn.
        drawn: names that are drawn at first.
    """

    plain: Setup
    presets: list[dict]
    marks: dict[str, str]
    drawn: list[str]

    def __init__(self, shell, query: dict[str, str], view, problems: Iterable[str] = ()):
        of_look, query = link.split(self.look_fields(), query)
        look, unseen = link.read(self.look_fields(), of_look, Look(tuple(self.drawn)))
        drawn = list(look.show)
        setup, wrong = Setup.from_query(query, self.plain)
        problems = [*problems, *unseen.values(), *wrong]
        if unfit := self.unfit(setup):
            setup, problems = self.plain, [*problems, unfit]
        later = soon(pn.state.curdoc)
        self.shell = shell
        self.quiet = False  # True while the program sets widgets: their events are then not the user's
        self.step, self.rate = 0, 0.0
        self.stage = Stage(
            on_message=self.on_message, dark=shell.frame.dark_theme, show={name: name in drawn for name in self.marks}
        )
        shell.frame.param.watch(lambda event: self.stage.param.update(dark=event.new), "dark_theme")
        self.streamer = Streamer(self.stage.send, later)
        self.make_transport()
        self.make_choices()
        self.make_exports(drawn)
        self.warnings = [
            pmui.Alert(
                pn.pane.HTML(html.escape(" ".join(problems))), severity="warning", title="In this link", closeable=True
            )
        ] * bool(problems)
        self.session = Session(setup, self.streamer, Mailbox(later, self.on_news), view)
        pn.state.on_session_destroyed(lambda context: self.session.close())

    @classmethod
    def look_fields(cls) -> tuple[link.Field, ...]:
        """The table of a Look's link."""
        mark = link.one_of("mark", cls.marks)

        def parse(text: str) -> tuple[str, ...]:
            chosen = {mark(name) for name in link.names(text) if text != NOTHING}
            return tuple(name for name in cls.marks if name in chosen)

        return (link.Field("show", parse, lambda show: link.text_of(show) or NOTHING),)

    def unfit(self, setup: Setup) -> str:
        """Say what of a link this page cannot show, or return ""."""
        return ""

    # ---- the pieces

    def make_transport(self):
        self.play = pmui.Button(
            label="Pause", icon="pause", variant="contained", width=104, on_click=self.toggle, **BUTTON
        )
        step = pmui.Button(label="Step", icon="skip_next", on_click=lambda e: self.session.step(), **BUTTON)
        reset = pmui.Button(label="Reset", icon="replay", on_click=lambda e: self.session.reset(), **BUTTON)
        seed = pmui.Button(label="New seed", icon="casino", on_click=self.new_seed, **BUTTON)
        self.scrubber = pmui.IntSlider(
            label="Rewind",
            start=0,
            end=1,
            value=0,
            show_value=False,
            margin=(0, 16),
            styles={"flex": "1 1 160px"},
            sx=BELOW,
        )
        self.speed = pmui.DiscreteSlider(label="Steps per frame", options=SPEEDS, value=1, width=150, margin=(0, 16))
        self.reading = pmui.Typography("", variant="body2", margin=(10, 8), width=330)
        self.scrubber.param.watch(lambda event: self.quiet or self.session.rewind(event.new), "value")
        self.speed.param.watch(lambda event: self.session.speed(event.new), "value")
        self.transport = pmui.FlexBox(
            self.play, step, reset, seed, self.speed, self.scrubber, sizing_mode="stretch_width"
        )

    def make_choices(self):
        names = [PROMPT, *(preset["name"] for preset in self.presets)]
        self.preset = pmui.Select(label="Presets", options=names, value=PROMPT, **CHOICE)
        self.about = pmui.Typography("", variant="body2", sizing_mode="stretch_width", margin=(0, 10, 6, 10))
        self.preset.param.watch(self.load_preset, "value")
        self.target = pmui.Select(label="Target", options={e.label: e.name for e in TARGETS.listed()}, **CHOICE)
        self.dim = NumberField("Dimension", start=1, end=1000, value=2)
        self.guide = pmui.Select(label="Guide", options={e.label: e.name for e in GUIDES.entries()}, **CHOICE)
        self.optimizer = pmui.Select(
            label="Optimiser", options={e.label: e.name for e in OPTIMIZERS.entries()}, **CHOICE
        )
        self.draws = NumberField("Draws per particle and step", start=1, end=MAX_DRAWS, value=10)
        for name in ("target", "dim", "guide", "optimizer", "draws"):
            getattr(self, name).param.watch(lambda event, name=name: self.chosen(**{name: event.new}), "value")
        knobs = {
            name: replace(knob, label=f"{knob.label} (at Reset)") if name.startswith(("init.", "guide.")) else knob
            for name, knob in all_knobs().items()
        }
        self.knobs = {name: widget(knob, self.on_knob) for name, knob in knobs.items()}
        order = ["method.alpha", "method.particles", "kernel.name", "bandwidth.rule", "bandwidth.factor"]
        self.sliders = [self.knobs[name] for name in dict.fromkeys([*order, *self.knobs])]

    def make_exports(self, drawn: list[str]):
        self.show_marks = pmui.CheckButtonGroup(
            options={label: name for name, label in self.marks.items()},
            value=drawn,
            size="small",
            margin=(4, 8),
            sx={"flexWrap": "wrap", "& button": {"whiteSpace": "nowrap", "width": "auto !important"}},
        )
        self.fit = pmui.Button(
            label="Fit arrows",
            icon="straighten",
            variant="text",
            size="small",
            margin=(4, 4),
            on_click=lambda event: self.stage.fit(),
        )
        self.show_marks.param.watch(
            lambda event: self.stage.param.update(show={name: name in event.new for name in self.marks}), "value"
        )
        export = pmui.MenuButton(
            label="Export",
            icon="download",
            size="small",
            margin=(4, 4),
            items=[{"label": text} for text in ("Figure as PNG", "Figure as SVG", "Copy link", "Copy as Python")],
        )
        export.on_click(self.export)
        table = pmui.FileDownload(
            label="Data as CSV", callback=self.csv, filename="steinlab.csv", size="small", margin=(4, 4), variant="text"
        )
        self.exports = pmui.Row(export, table)

    # ---- what the shell asks

    def show(self):
        self.session.wake()

    def hide(self):
        self.session.sleep()

    def refresh(self):
        frames = self.streamer.acked_per_second
        self.reading.object = f"step {self.step:,} · {self.rate:,.0f} steps/s · {frames} frames/s · {device_name()}"
        if not self.session.shown()[0].linkable:
            self.reading.object += " · too long for an exact link; Copy as Python is exact"

    def link(self) -> str:
        return self.link_of(self.session.linked())

    def link_of(self, setup: Setup) -> str:
        """Return the link of `setup`, with the names of what is drawn if they differ from the default."""
        look = Look(tuple(name for name in self.marks if self.stage.show[name]))
        of_look = link.write(self.look_fields(), look, Look(tuple(self.drawn)))
        return setup.to_query(self.plain) + f"&{of_look}" * bool(of_look)

    # ---- from the user

    def on_message(self, message: dict):
        """Handle a message of the stage: acknowledgements, clicks and keys."""
        if "ack" in message:
            self.streamer.ack(message["ack"])
        elif "ready" in message:
            self.streamer.ready()
        elif "add" in message:
            self.session.add(message["add"])
        elif "remove" in message:
            self.session.remove(message["remove"])
        elif "key" in message:
            index = SPEEDS.index(self.speed.value)
            {
                "space": self.toggle,
                "right": self.session.step,
                "left": self.session.back,
                "r": self.session.reset,
                "up": lambda: self.speed.param.update(value=SPEEDS[min(index + 1, len(SPEEDS) - 1)]),
                "down": lambda: self.speed.param.update(value=SPEEDS[max(index - 1, 0)]),
            }[message["key"]]()

    def toggle(self, event=None):
        self.session.toggle()

    def new_seed(self, event):
        self.session.reset(int(np.random.default_rng().integers(1_000_000)))

    def on_knob(self, name, value):
        if not self.quiet:
            self.session.turn(name, value)

    def chosen(self, **fields):
        if not self.quiet:
            self.preset.value = PROMPT  # what is shown is no longer the preset
            self.session.choose(**fields)

    def load_preset(self, event):
        found = [preset for preset in self.presets if preset["name"] == event.new]
        self.about.object = ""
        if found:
            setup, problems = Setup.from_query(dict(parse_qsl(found[0]["link"])), self.plain)
            self.about.object = " ".join(
                [found[0]["text"], *problems]
            )  # this server may allow less than the preset asks for
            self.session.open(setup)

    def export(self, item):
        label = item["label"]
        if label.startswith("Figure"):
            self.stage.export(label[-3:].lower())
        elif label == "Copy link":
            self.shell.copy_link(self.link_of(self.session.shown()[0]))
        else:
            self.shell.browser.copy(self.python())

    def python(self) -> str:
        """Return a script that repeats what is on screen, with a block for each method."""
        setup, capacity = self.session.shown()
        blocks = [setup.recipe(method, capacity).to_python(setup.steps) for method in setup.methods]
        return "\n".join(blocks)

    def csv(self) -> io.StringIO:
        """Return the numbers of the frame on screen, a row for each particle and method."""
        (setup, _), frames, out = self.session.shown(), self.session.frames, io.StringIO()
        d = frames[0].locations.shape[1] if frames else 0
        kinds = ("location", "sd", "attraction", "repulsion")
        writer = csv.writer(out)
        writer.writerow(["method", "step", "particle", *(f"{kind}[{i}]" for kind in kinds for i in range(d))])
        for method, frame in zip(setup.methods, frames):
            table = np.hstack([frame.locations, frame.scales, frame.attract[:, :d], frame.repulse[:, :d]])
            writer.writerows([method, frame.step, i, *row] for i, row in enumerate(table.tolist()))
        out.seek(0)
        return out

    # ---- from the session, on the event loop

    def quietly(self, show, *arguments, **values):
        """Set widgets without telling the session."""
        self.quiet = True
        try:
            show(*arguments, **values)
        finally:
            self.quiet = False

    def on_news(self, news: dict):
        self.quietly(self.show_news, news)

    def show_news(self, news: dict):
        if "setup" in news:
            self.show_setup(news["setup"])
        if "playing" in news:
            playing = news["playing"]
            self.play.param.update(label="Pause" if playing else "Play", icon="pause" if playing else "play_arrow")
        for name, value in news.get("knobs", {}).items():
            set_value(self.knobs[name], all_knobs()[name], value)
        self.stage.param.update(**{k: news[k] for k in ("starting", "scene", "status", "alarm") if k in news})
        if "history" in news:
            length, position = news["history"]
            self.scrubber.param.update(end=max(length - 1, 1), value=position)
        if "step" in news:
            self.step, self.rate = news["step"], news["steps_per_second"]
            self.scrubber.value_label = f"step {self.step:,}"  # its own number counts frames

    def show_setup(self, setup: Setup):
        """Set the widgets to another Setup."""
        specs = [setup.spec(method, FIRST_CAPACITY) for method in setup.methods]
        dims = TARGETS[setup.target].facts.dims
        self.target.value, self.optimizer.value = setup.target, setup.optimizer
        step = TARGETS[setup.target].facts.dim_step
        self.dim.param.update(
            value=specs[0].dim, start=dims[0], end=min(dims[1], LIMITS.dim), step=step, visible=dims[0] < dims[1]
        )
        free = [spec for spec in specs if len(METHODS[spec.method].facts.guides) > 1]
        self.guide.visible = bool(free)
        if free:
            guides = METHODS[free[0].method].facts.guides
            self.guide.param.update(options={GUIDES[name].label: name for name in guides}, value=free[0].guide)
        self.draws.param.update(value=setup.draws, visible=any(spec.has_density for spec in specs))
        used = {name for spec in specs for name in spec.knobs()}
        for name, knob in all_knobs().items():
            self.knobs[name].visible = name in used
            set_value(self.knobs[name], knob, setup.knobs.get(name, knob.default))
