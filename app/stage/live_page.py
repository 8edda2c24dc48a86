"""Base of the pages with a running stage: the controls of a Session, its links, exports and read-outs."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from secrets import token_hex
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import panel as pn
import panel_material_ui as pmui

from stein_core import compile, device_name
from steinlab.server.folders import ASSETS
from steinlab.server.loop import soon
from steinlab.server.streaming import Mailbox, Streamer
from steinlab.stage.choices import Choices
from steinlab.stage.contract import View
from steinlab.stage.hand_over import csv_of, runs_of
from steinlab.stage.kept import kept, key_of
from steinlab.stage.law_line import LawLine
from steinlab.stage.lecture import QUIET, SWITCH, Lecture
from steinlab.stage.programs import Programs, capacity_of
from steinlab.stage.replay import replay_page
from steinlab.stage.seen import SEE, Seen, knobs_of
from steinlab.stage.session import Session
from steinlab.stage.setup import Setup
from steinlab.stage.stage import ReadOuts, Stage
from steinlab.stage.tour import Tour
from steinlab.stage.transport import Transport
from steinlab.ui import link

PRESETS = json.loads((ASSETS / "presets.json").read_text())
NOTHING = "none"  # what a link says when no mark is drawn
# Items with "·" between them, as in a legend.
KEYS = (
    "Keys: **Space** play or pause · **→** step · **←** back (playing from an earlier frame discards the later ones) · "
    "**↑ ↓** speed · **R** reset · **P** lecture · *Fit arrows* lengthens the arrows of small forces"
)


@dataclass(frozen=True)
class Look:
    """How a run is shown. show: names of a page's marks, in its order. on: lecture mode. see: what a class sees."""

    show: tuple[str, ...]
    on: bool = False
    see: Seen = ()


class Live:
    """Wire the widgets of a page to one Session and one Stage. The session holds the state of the run.

    A subclass builds `sidebar` and `main` from the pieces made here. Contract: `steinlab.contents`.

    Attributes:
        key: of the page.
        plain: Setup of a bare link.
        presets: dicts of "name", "caption", "link" and "text": the tour.
        views: makes a view of the page, see `steinlab.stage.contract.View`.
        marks: name -> label of what can be drawn.
        drawn: names that are drawn at first.
        speed: steps per frame at first.
        lecture: lecture mode; its `around` are components that it does not show.
    """

    key: str
    plain: Setup
    presets: list[dict]
    views: Callable[[], View]
    marks: dict[str, str]
    drawn: list[str]
    speed = 1

    def __init__(self, shell, query: dict[str, str], view, problems: Iterable[str] = (), *first):
        of_look, query = link.split(self.look_fields(), query)
        look, unseen = link.read(self.look_fields(), of_look, Look(tuple(self.drawn)))
        setup, wrong = Setup.from_query(query, self.plain)
        problems = [*problems, *unseen.values(), *wrong]
        if unfit := self.unfit(setup):
            setup, problems = self.plain, [*problems, unfit]
        later = soon(pn.state.curdoc)
        self.shell = shell
        self.see = look.see
        self.quiet = False  # True while the program sets widgets: their events are then not the user's
        self.step, self.rate = 0, 0.0
        self.transport = Transport(lambda: self.session, self.on_knob, self.toggle, lambda dim: self.chosen(dim=dim))
        self.stage = Stage(
            on_message=self.on_message,
            dark=shell.frame.dark_theme,
            marks=self.marks,
            show={name: name in look.show for name in self.marks},
            slot=token_hex(8),
        )
        self.read_outs = ReadOuts(key=self.stage.slot, dark=shell.frame.dark_theme, sizing_mode="stretch_width")
        shell.frame.param.watch(self.darken, "dark_theme")
        self.streamer = Streamer(self.stage.send, self.stage.begin_channel(later))
        self.tour = Tour(self.presets, self.go, lambda on: self.session.play(not on), shell.presentation.forth)
        turned = (self._enlarge, self.transport.lecture, self.tour.lecture)
        self.lecture = Lecture(shell, self.tour.move, *turned, on=look.on)
        self.lecture.around.append(self.tour.about)
        self.lecture.stripped += [self.transport.strip, self.tour.strip]
        self.law = LawLine(later)
        self.lecture.around.append(self.law.text)
        self.choices = Choices(self.chosen, self.on_knob, self.new_seed, *first)
        self.make_exports()
        self.reading = pmui.Typography("", variant="caption", margin=(4, 10))
        self.warnings = [
            pmui.Alert(
                pn.pane.HTML(html.escape(" ".join(problems))), severity="warning", title="In this link", closeable=True
            )
        ] * bool(problems)
        first = not query and not problems and not look.on  # a bare address opens on an answer that is shipped
        if first:
            setup = self.stops()[0]
        shipped = self.kept = kept(key_of(self.key, setup)) if first else None
        self.session = Session(
            setup, self.streamer, Mailbox(later, self.on_news), view, kept=shipped, most=self.plain.most
        )
        pn.state.on_session_destroyed(lambda context: self.session.close())
        if setup in self.stops():
            self.tour.at_stop(self.stops().index(setup))

    @classmethod
    def look_fields(cls) -> tuple[link.Field, ...]:
        """The table of a Look's link."""
        mark = link.one_of("mark", cls.marks)

        def parse(text: str) -> tuple[str, ...]:
            chosen = {mark(name) for name in link.names(text) if text != NOTHING}
            return tuple(name for name in cls.marks if name in chosen)

        show = link.Field("show", parse, lambda show: link.text_of(show) or NOTHING)
        return show, SWITCH, SEE

    @classmethod
    def unfit(cls, setup: Setup) -> str:
        """Say what of a link this page cannot show, or return ""."""
        return ""

    @classmethod
    def view_of(cls, query: dict[str, str]) -> tuple[View, dict[str, str], list[str]]:
        """Return the view of a link, the other fields, and one sentence for everything that was wrong."""
        return cls.views(), query, []

    @classmethod
    def prepare(cls, query: dict[str, str]) -> None:
        """Compile what a link needs, on the calling thread."""
        setup, view = Setup.from_query(query, cls.plain)[0], cls.views()
        programs = Programs(setup, capacity_of(setup), view.measured)
        view.scene(programs.specs)
        for spec in programs.specs:
            compile(spec, measure=view.measured, **programs.how)

    # ---- the pieces

    def open(self, query: dict[str, str]):
        """Show the Setup of a link."""
        setup, problems = Setup.from_query(link.split(self.look_fields(), query)[1], self.plain)
        if unfit := self.unfit(setup):
            setup, problems = self.plain, [*problems, unfit]
        if problems:
            pn.state.notifications.warning(" ".join(problems))
        self.tour.leave()
        self.session.open(setup)
        if setup in self.stops():
            self.tour.at_stop(self.stops().index(setup))

    def make_exports(self):
        self.fit = pmui.Button(label="Fit arrows", icon="straighten", on_click=lambda event: self.stage.fit(), **QUIET)
        table = pmui.FileDownload(
            label="Data as CSV", callback=lambda: csv_of(self.session), filename="steinlab.csv", **QUIET
        )
        check = pmui.Button(label="Diagnose this run", icon="fact_check", on_click=self.diagnose, **QUIET)
        self.exports = pmui.FlexBox(self.fit, table, check, align_items="center", margin=0)

    @classmethod
    def stops(cls) -> list[Setup]:
        """Return what the stops of the tour show."""
        return [Setup.from_query(dict(parse_qsl(stop["link"])), cls.plain)[0] for stop in cls.presets]

    def top(self, *more) -> list:
        """Return what stands over the stage: the caption, the tour, and what else a page has."""
        return [self.tour.row(*more, self.lecture.leave), self.tour.about]

    def darken(self, event):
        """Use the dark theme, or the light one."""
        self.stage.dark = self.read_outs.dark = event.new

    # ---- what the shell asks

    def show(self):
        self.lecture.show()
        self.session.wake()

    def hide(self):
        self.lecture.hide()
        self.session.sleep()

    def refresh(self):
        frames = self.streamer.acked_per_second
        self.reading.object = f"{self.rate:,.0f} steps/s · {frames} frames/s · {device_name()}"
        if not self.session.shown()[0].linkable:
            self.reading.object += " · too long for an exact link; Copy as Python is exact"

    def link(self) -> str:
        return self.link_of(self.session.linked())

    def link_of(self, setup: Setup) -> str:
        """Return the link of `setup`, with the names of what is drawn if they differ from the default."""
        look = Look(tuple(name for name in self.marks if self.stage.show.get(name)), self.lecture.on, self.see)
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
        elif "move" in message:
            self.session.move(message["move"], message["to"])
        elif "grab" in message:
            self.session.grab(message["grab"])
        elif "key" in message:
            {
                "space": self.toggle,
                "right": self.session.step,
                "left": self.session.back,
                "r": self.session.reset,
                "up": lambda: self.transport.faster(1),
                "down": lambda: self.transport.faster(-1),
            }[message["key"]]()

    def _enlarge(self, on: bool):
        self.stage.lecture = on

    def toggle(self, event=None):
        self.session.toggle()

    def new_seed(self, event):
        self.session.reset(int(np.random.default_rng().integers(1_000_000)))

    def on_knob(self, name, value):
        if not self.quiet:
            self.session.turn(name, value)
            self.tour.changed()
            self.quietly(self.transport.show, {"knobs": {name: value}})
            self.quietly(self.choices.turn, {name: value})
            self.law.turn({name: value})

    def chosen(self, **fields):
        if not self.quiet:
            self.tour.leave()  # what is shown is no longer the stop
            self.session.choose(**fields)

    def go(self, stop: dict) -> list[str]:
        """Open a stop of the tour; return what of its link is refused."""
        setup, problems = Setup.from_query(dict(parse_qsl(stop["link"])), self.plain)
        self.session.open(setup)
        return problems

    @property
    def shares(self) -> dict[str, Callable[[], None]]:
        """What the bar offers to share."""
        return {
            "Copy link": lambda: self.shell.copy_link(self.link_of(self.session.shown()[0])),
            "Copy as Python": lambda: self.shell.browser.copy(self.python()),
            "Figure as PNG": lambda: self.stage.export("png"),
            "Figure as SVG": lambda: self.stage.export("svg"),
            "Replay as one page": lambda: self.stage.export("html", replay_page()),
            "Film as WebM": lambda: self.stage.export("webm"),
        }

    def diagnose(self, event=None):
        """Hand what is on screen to page "Your posterior"."""
        if runs := runs_of(self.session):
            self.shell.diagnose(runs)
        else:
            pn.state.notifications.info("The run has not begun yet.")

    def python(self) -> str:
        """Return a script that repeats what is on screen, with a block for each method."""
        setup, capacity = self.session.shown()
        near = setup.near_of(capacity)
        blocks = [setup.recipe(method, capacity).to_python(setup.steps, near) for method in setup.methods]
        return "\n".join(blocks)

    # ---- for a class

    def class_sees(self) -> dict[str, Any]:
        """Return what a class reads beside the stage: settings, and which parts its lecturer shows."""
        setup, _ = self.session.shown()
        present = {**setup.knobs, **{name: value for _, name, value in setup.changes}}
        return {"knobs": knobs_of(setup, present), "see": {part: list(chosen) for part, chosen in self.see}}

    def refresh_class(self) -> None:
        """Send the newest frame again."""
        self.streamer.ready()

    # ---- from the session, on the event loop

    def quietly(self, show, *arguments, **values):
        """Set widgets without telling the session."""
        self.quiet = self.transport.quiet = True
        try:
            show(*arguments, **values)
        finally:
            self.quiet = self.transport.quiet = False

    def on_news(self, news: dict):
        self.quietly(self.show_news, news)

    def show_news(self, news: dict):
        if "setup" in news:
            self.show_setup(news["setup"])
        if "knobs" in news:
            self.choices.turn(news["knobs"])
            self.law.turn(news["knobs"])
        if "many" in news:
            self.choices.many.offer(news["many"])
        if "rest" in news:
            self.law.rest(news["rest"])
        self.transport.show(news)
        self.stage.param.update(**{k: news[k] for k in ("starting", "scene", "status", "alarm") if k in news})
        if "scene" in news:
            note = news["scene"].get("note", "")
            self.choices.note.param.update(object=html.escape(note), visible=bool(note))
        if "step" in news:
            self.step, self.rate = news["step"], news["steps_per_second"]

    def adapt(self, setup: Setup):
        """Show and hide what differs on this page from others."""

    def show_setup(self, setup: Setup):
        """Set the widgets to another Setup."""
        self.choices.show(setup)
        self.adapt(setup)
        self.choices.tidy(self.sidebar)  # once: what is put in and taken out again leaves models behind
        self.law.show(setup)
