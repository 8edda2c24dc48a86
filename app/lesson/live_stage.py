"""A stage for a notebook: one Session, its transport and a few of its knobs."""

from __future__ import annotations

import html
from collections.abc import Sequence
from urllib.parse import parse_qsl

import panel as pn
import panel_material_ui as pmui

from stein_core import METHODS, compile
from stein_core.base.errors import unknown
from steinlab.lesson.output import Output
from steinlab.server.background import while_wanted
from steinlab.server.streaming import Mailbox, Streamer
from steinlab.stage.kept import kept, key_of
from steinlab.stage.programs import capacity_of
from steinlab.stage.scene import SAMPLED, SideBySide
from steinlab.stage.session import Session
from steinlab.stage.setup import Setup, all_knobs
from steinlab.stage.stage import Stage
from steinlab.ui.knob_widgets import LARGE, set_value, widget

MARKS = {"attract": "attraction", "repulse": "repulsion", "guides": "guides", "trails": "trails", "draws": "true draws"}
DRAWN = ("attract", "repulse", "guides")
# Jupyter has no design of Panel's, so its buttons have no border of their own.
BORDER = ":host(.solid) .bk-btn.bk-btn-default { border: 1px solid #8888; border-radius: 4px }"


class LiveStage(Output):
    """Run a stage as `steinlab.notebook.stage` says. It computes nothing until a browser shows it."""

    def __init__(
        self,
        setup: Setup | str,
        sliders: Sequence[str],
        marks: Sequence[str] | None,
        metrics: Sequence[str],
        play: bool = False,
    ):
        super().__init__()
        self.setup = setup = read(setup)
        self.view = SideBySide(metrics)
        for names, known, kind in ((sliders, all_knobs(), "knob"), (marks or (), MARKS, "mark")):
            for name in names:
                if name not in known:
                    raise unknown(kind, name, known)
        drawn, later = DRAWN if marks is None else marks, self.host.later
        self.page = "samplers" if all(METHODS[method].facts.sampler for method in setup.methods) else "particles"
        words = {**MARKS, **SAMPLED} if self.page == "samplers" else MARKS
        named = {name: words[name] for name in words if name != "draws" or name in drawn}
        self.quiet, self.link, self.closed = False, "", False
        self.stage = Stage(
            on_message=self.on_message, marks=named, show={name: name in drawn for name in named}, embedded=True
        )
        self.streamer = Streamer(self.stage.send, self.stage.begin_channel(later))
        shipped = kept(lesson_key(setup, metrics))
        self.session = Session(setup, self.streamer, Mailbox(later, self.on_news), self.view, play, shipped)
        # In Jupyter every output would bring the 1.4 MB of panel_material_ui, which names a CDN.
        kit = pn.widgets if self.host.jupyter else pmui
        self.play, *others = [
            kit.Button(**{"name" if kit is pn.widgets else "label": label}, width=width, margin=(4, 4), on_click=act)
            for label, width, act in (
                ("Pause" if play else "Play", 88, lambda event: self.session.toggle()),
                ("Step", 72, lambda event: self.session.step()),
                ("Reset", 80, lambda event: self.session.reset()),
            )
        ]
        for button in (self.play, *others):
            if kit is pmui:
                button.param.update(size="small", variant="outlined" if button is self.play else "text")
            else:
                button.stylesheets = [BORDER]
        self.buttons = {button: button.width for button in (self.play, *others)}
        self.onward = pn.pane.HTML("", margin=(10, 8))
        self.knobs = self.dials = {name: widget(all_knobs()[name], self.on_knob, kit) for name in sliders}
        for made in self.knobs.values():
            made.param.update(width=220, min_width=160, max_width=240)
            if kit is pmui:  # a slider of the other kit's hands its styles on to its parts
                made.styles = {"flex": "1 1 160px"}
        self.show_knobs({name: setup.knobs.get(name, all_knobs()[name].default) for name in self.knobs})
        self.show_link()
        row = pn.FlexBox(self.play, *others, *self.knobs.values(), self.onward, align_items="center")
        row.sizing_mode = "stretch_width"
        self.extend([row, self.stage])

    def prepare(self) -> None:
        """Compile the programs of the stage, on the calling thread."""
        specs = [self.setup.spec(method, capacity_of(self.setup)) for method in self.setup.methods]
        with while_wanted(lambda: self.closed):
            self.view.scene(specs)
            for spec in specs:
                compile(spec, measure=self.view.measured)

    def pause(self) -> None:
        if self.session.begun:  # else no browser has shown it yet
            self.session.sleep()

    def resume(self) -> None:
        if self.session.begun:
            self.session.wake()

    def darken(self, on: bool) -> None:
        self.stage.dark = on

    def enlarge(self, on: bool, height: int) -> None:
        self.stage.lecture = on
        for made in self.knobs.values():
            made.sx = LARGE if on else {}
        for button, width in self.buttons.items():
            button.param.update(sx=LARGE if on else {}, width=2 * width if on else width)
        self.onward.visible = not on

    def light(self, force: str) -> None:
        self.stage.lit = force

    def close(self) -> None:
        self.closed = True
        self.session.close()

    def on_message(self, message: dict) -> None:
        """Handle a message of the stage."""
        if "ack" in message:
            self.streamer.ack(message["ack"])
        elif "ready" in message:
            self.streamer.ready()
            pn.state.onload(self.session.wake)  # until the document is loaded, Panel drops what changes
        elif message.get("key") == "space":  # in a lecture
            self.session.toggle()
        elif "add" in message:
            self.session.add(message["add"])
        elif "remove" in message:
            self.session.remove(message["remove"])
        elif "move" in message:
            self.session.move(message["move"], message["to"])
        elif "grab" in message:
            self.session.grab(message["grab"])

    def on_knob(self, name: str, value) -> None:
        """Pass a knob that the user has moved to the session."""
        if not self.quiet:
            self.session.turn(name, value)

    def on_news(self, news: dict) -> None:
        """Show news of the session. On the event loop."""
        if "playing" in news:
            self.play.param.update(**{"name" if self.host.jupyter else "label": "Pause" if news["playing"] else "Play"})
        if "setup" in news:
            self.show_knobs(news["setup"].knobs)
        self.show_knobs(news.get("knobs", {}))
        self.stage.param.update(**{k: news[k] for k in ("starting", "scene", "status", "alarm") if k in news})
        self.show_link()

    def show_knobs(self, values: dict) -> None:
        """Set the sliders without telling the session."""
        self.quiet = True
        for name in self.knobs.keys() & values.keys():
            set_value(self.knobs[name], all_knobs()[name], values[name])
        self.quiet = False

    def show_link(self) -> None:
        """Update the link to what runs now."""
        link = f"{self.host.app}{f'page={self.page}&' * (self.page != 'particles')}{self.session.linked().to_query()}"
        if link != self.link:
            self.link = link
            about, title = 'target="_blank" style="color: inherit; font-size: 15px"', self.page.title()
            self.onward.object = f'<a href="{html.escape(link)}" {about}>Open in {title}</a>'


def lesson_key(setup: Setup, metrics: Sequence[str]) -> str:
    """Return the key of a lesson's stage, see `steinlab.stage.kept`."""
    return key_of("lessons", setup, ",".join(metrics))


def read(setup: Setup | str) -> Setup:
    """Return a Setup, or the one that a link's text names.

    Raises:
        ValueError: with a sentence for each thing that is wrong in the link.
    """
    if isinstance(setup, Setup):
        return setup
    made, problems = Setup.from_query(dict(parse_qsl(setup)))
    if problems:
        raise ValueError(" ".join(problems))
    return made
