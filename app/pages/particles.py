"""Page "Particles": methods side by side on one target, live."""

from __future__ import annotations

import csv
import html
import io
import json
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import panel as pn
import panel_material_ui as pmui

from app.controls import WIDTH, place, widget
from app.session import FIRST_CAPACITY, Session
from app.setup import PANELS, Setup, all_knobs
from app.stream import Mailbox, Streamer
from app.views import Stage
from stein_core import METHODS, OPTIMIZERS, TARGETS, device_name

PRESETS = json.loads((Path(__file__).resolve().parents[2] / "assets" / "presets.json").read_text())
PROMPT = "Choose one thing to see …"
SPEEDS = [1, 2, 5, 10, 20, 50, 100]
SHOW = {"attract": "Attraction", "repulse": "Repulsion", "guides": "Guides", "trails": "Trails"}
DEFAULT_SHOW = ["attract", "repulse", "guides"]
HELP = (
    "Click the stage to drop a particle, double-click one (or hover and press Delete) to remove it. "
    "**Space** plays and pauses, **→** steps, **←** goes back (going on from there forgets what came later), **↑ ↓** change the speed, **R** resets."
)


def particles_page(page: pmui.Page, query: dict[str, str]) -> None:
    """Fill `page` for one visitor who came with this link."""
    setup, problems = Setup.from_query({k: v for k, v in query.items() if k not in ("theme", "show")})
    shown = [name for name in query["show"].split(",") if name in SHOW] if "show" in query else DEFAULT_SHOW
    Particles(page, setup, problems, shown)


class Particles:
    """The page's widgets, and the wiring between them, the session and the stage. Holds no state of the run."""

    def __init__(self, page: pmui.Page, setup: Setup, problems: list[str], shown: list[str]):
        document = pn.state.curdoc
        self.quiet = False  # True while widgets are set by the program: nothing they say then is the user's wish
        self.url = ""
        self.step, self.rate = 0, 0.0
        self.stage = Stage(on_message=self.heard, dark=page.dark_theme, show={name: name in shown for name in SHOW})
        page.param.watch(lambda event: self.stage.param.update(dark=event.new), "dark_theme")
        self.streamer = Streamer(self.stage.send, document.add_next_tick_callback)
        self.build(page, problems, shown)

        self.session = Session(setup, self.streamer, Mailbox(document.add_next_tick_callback, self.told))
        self.quietly(self.show_setup, setup)
        pn.state.on_session_destroyed(lambda context: self.session.close())
        pn.state.onload(self.start)

    def start(self):
        """Only now: until the document is loaded, Panel drops what changes."""
        self.session.start()
        pn.state.add_periodic_callback(self.refresh, 500)

    # ---- layout

    def build(self, page: pmui.Page, problems: list[str], shown: list[str]):
        button = {"size": "small", "margin": (4, 4)}
        choice = {"size": "small", **WIDTH}
        self.play = pmui.Button(label="Pause", icon="pause", variant="contained", width=104, on_click=self.toggle, **button)
        step = pmui.Button(label="Step", icon="skip_next", on_click=lambda e: self.session.step(), **button)
        reset = pmui.Button(label="Reset", icon="replay", on_click=lambda e: self.session.reset(), **button)
        seed = pmui.Button(label="New seed", icon="casino", on_click=self.new_seed, **button)
        self.scrubber = pmui.IntSlider(
            label="Rewind", start=0, end=1, value=0, show_value=False, sizing_mode="stretch_width", margin=(0, 16)
        )
        self.speed = pmui.DiscreteSlider(label="Steps per frame", options=SPEEDS, value=1, width=150, margin=(0, 16))
        self.reading = pmui.Typography("", variant="body2", margin=(10, 8), width=330)
        self.scrubber.param.watch(lambda event: self.quiet or self.session.rewind(event.new), "value")
        self.speed.param.watch(lambda event: self.session.speed(event.new), "value")

        names = [PROMPT, *(preset["name"] for preset in PRESETS)]
        self.preset = pmui.Select(label="Presets", options=names, value=PROMPT, **choice)
        self.about = pmui.Typography("", variant="body2", sizing_mode="stretch_width", margin=(0, 10, 6, 10))
        self.preset.param.watch(self.load_preset, "value")
        self.target = pmui.Select(label="Target", options={e.label: e.name for e in TARGETS.entries()}, **choice)
        self.dim = pmui.IntInput(label="Dimension", start=1, end=1000, value=2, **choice)
        self.methods = pmui.MultiChoice(
            label=f"Methods (1 to {PANELS})", options={e.label: e.name for e in METHODS.entries()}, max_items=PANELS,
            **WIDTH,
        )  # fmt: skip
        self.optimizer = pmui.Select(label="Optimiser", options={e.label: e.name for e in OPTIMIZERS.entries()}, **choice)
        self.target.param.watch(lambda event: self.chosen(target=event.new), "value")
        self.dim.param.watch(lambda event: self.chosen(dim=event.new), "value")
        self.methods.param.watch(self.chose_methods, "value")
        self.optimizer.param.watch(lambda event: self.chosen(optimizer=event.new), "value")
        self.knobs = {name: widget(knob, self.turned) for name, knob in all_knobs().items()}
        order = ["method.alpha", "method.particles", "kernel.name", "bandwidth.rule", "bandwidth.factor"]
        knobs = [self.knobs[name] for name in dict.fromkeys([*order, *self.knobs])]

        self.show = pmui.CheckButtonGroup(
            options={label: name for name, label in SHOW.items()}, value=shown, size="small", margin=(4, 8),
        )  # fmt: skip
        self.show.param.watch(
            lambda event: self.stage.param.update(show={name: name in event.new for name in SHOW}), "value"
        )
        export = pmui.MenuButton(
            label="Export", icon="download", size="small", margin=(4, 4),
            items=[{"label": text} for text in ("Figure as PNG", "Figure as SVG", "Copy link", "Copy as Python")],
        )  # fmt: skip
        export.on_click(self.export)
        table = pmui.FileDownload(
            label="Data as CSV", callback=self.csv, filename="steinlab.csv", size="small", margin=(4, 4), variant="text"
        )

        page.sidebar = [
            self.preset, self.about, self.target, self.dim, self.methods, *knobs[:6], self.optimizer, *knobs[6:],
        ]  # fmt: skip
        warnings = [pmui.Alert(pn.pane.HTML(html.escape(" ".join(problems))), severity="warning", title="In this link", closeable=True)] * bool(problems)
        page.main = [
            pmui.Column(
                *warnings,
                pmui.Row(self.play, step, reset, seed, self.speed, self.scrubber, sizing_mode="stretch_width"),
                pmui.Row(self.show, pmui.Row(export, table), self.reading, sizing_mode="stretch_width"),
                self.stage,
                pmui.Typography(HELP, variant="caption", sizing_mode="stretch_width", margin=(8, 10)),
                sizing_mode="stretch_width",
                margin=(4, 12),
            )
        ]

    # ---- from the user

    def heard(self, message: dict):
        """A message of the stage's: acknowledgements, clicks and keys."""
        if "ack" in message:
            self.streamer.ack(message["ack"])
        elif "ready" in message:
            self.url = ""  # an address sent before there was anyone to receive it is lost
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

    def turned(self, name, value):
        if not self.quiet:
            self.session.turn(name, value)

    def chosen(self, **fields):
        if not self.quiet:
            self.preset.value = PROMPT  # what is shown is no longer the preset
            self.session.choose(**fields)

    def chose_methods(self, event):
        if not event.new:
            pn.state.notifications.warning("At least one method must stay.")
            self.quietly(self.methods.param.update, **{"value": event.old})
        else:
            self.chosen(methods=tuple(event.new))

    def load_preset(self, event):
        found = [preset for preset in PRESETS if preset["name"] == event.new]
        self.about.object = found[0]["text"] if found else ""
        if found:
            self.session.open(Setup.from_query(dict(parse_qsl(found[0]["link"][1:])))[0])

    def export(self, item):
        label = item["label"]
        if label.startswith("Figure"):
            self.stage.export(label[-3:].lower())
        elif label == "Copy link":
            setup, _ = self.session.shown()
            self.stage.copy_link(setup.to_query() + self.view())
        else:
            self.stage.copy(self.python())

    def view(self) -> str:
        """What a link says of the looks: the theme, and what is drawn, where they are not the default."""
        drawn = [name for name in SHOW if self.stage.show[name]]
        return "&theme=dark" * self.stage.dark + f"&show={','.join(drawn)}" * (drawn != DEFAULT_SHOW)

    def python(self) -> str:
        """A script that repeats what is on screen, a block for each panel."""
        setup, capacity = self.session.shown()
        blocks = [setup.recipe(method, capacity).to_python(setup.steps) for method in setup.methods]
        return "\n".join(blocks)

    def csv(self) -> io.StringIO:
        """The picture's numbers: a row for each particle and panel."""
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
        """Set widgets without that counting as the user's wish."""
        self.quiet = True
        try:
            show(*arguments, **values)
        finally:
            self.quiet = False

    def told(self, news: dict):
        self.quietly(self.show_news, news)

    def show_news(self, news: dict):
        if "setup" in news:
            self.show_setup(news["setup"])
        if "playing" in news:
            playing = news["playing"]
            self.play.param.update(label="Pause" if playing else "Play", icon="pause" if playing else "play_arrow")
        for name, value in news.get("knobs", {}).items():
            place(self.knobs[name], all_knobs()[name], value)
        self.stage.param.update(**{k: news[k] for k in ("scene", "status", "alarm") if k in news})
        if "history" in news:
            length, position = news["history"]
            self.scrubber.param.update(end=max(length - 1, 1), value=position)
        if "step" in news:
            self.step, self.rate = news["step"], news["steps_per_second"]

    def show_setup(self, setup: Setup):
        """The widgets of another Setup."""
        specs = [setup.spec(method, FIRST_CAPACITY) for method in setup.methods]
        dims = TARGETS[setup.target].facts["dims"]
        self.target.value, self.methods.value = setup.target, list(setup.methods)
        self.optimizer.value = setup.optimizer
        self.dim.param.update(value=specs[0].dim, start=dims[0], end=dims[1], visible=dims[0] < dims[1])
        used = {name for spec in specs for name in spec.knobs()}
        for name, knob in all_knobs().items():
            self.knobs[name].visible = name in used
            place(self.knobs[name], knob, setup.knobs.get(name, knob.default))

    def refresh(self):
        """Twice a second: the readings and the address bar."""
        frames = self.streamer.acked_per_second
        self.reading.object = f"step {self.step:,} · {self.rate:,.0f} steps/s · {frames} frames/s · {device_name()}"
        if not self.session.shown()[0].linkable:
            self.reading.object += " · too long for an exact link; Copy as Python is exact"
        url = self.session.link() + self.view()
        if url != self.url:
            self.url = url
            self.stage.set_url(url)
