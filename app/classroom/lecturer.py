"""What a lecturer has of a class: the code, the question, the answers, and what the class sees."""

from __future__ import annotations

import html
import logging
import time
import weakref
from typing import Any

import panel as pn
import panel_material_ui as pmui
import segno
from tornado.ioloop import IOLoop

from steinlab.classroom.answers import Answers
from steinlab.classroom.asking import Asking
from steinlab.classroom.page import KINDS
from steinlab.classroom.room import Room
from steinlab.classroom.rooms import ROOMS, readable
from steinlab.classroom.runs import Runs, facts_of, law_of
from steinlab.classroom.showing import Showing
from steinlab.server.errors import note
from steinlab.stage.stage import Stage
from steinlab.stage.training_stage import TrainingStage

log = logging.getLogger(__name__)

SHOWN = ("scene", "marks", "show", "starting", "status", "alarm", "lecture")  # of a stage
TRAINED = ("scene", "points", "nuts", "lecture")  # of one on which networks train
WIDE = 420  # pixels of the drawer
BESIDE = {f"@media (min-width: {2 * WIDE}px)": {"paddingRight": f"{WIDE}px"}}
LOCAL = ("localhost", "127.0.0.1", "[::1]")
CODE = """
.join { display: grid; grid-template-columns: 148px 1fr; gap: 4px 16px; align-items: center; font-size: 15px }
.join svg { width: 148px; height: 148px; grid-row: 1 / 4; background: #fff; padding: 6px; border-radius: 6px }
.join b { font-size: 30px; letter-spacing: .04em; font-variant-numeric: tabular-nums; white-space: nowrap }
.join span { overflow-wrap: anywhere }
.join .hint { grid-column: 1 / 3 }
.large { justify-items: center; display: grid; gap: 12px; text-align: center; font-size: 26px }
.large svg { width: min(56vh, 86vw); height: auto; background: #fff; padding: 12px; border-radius: 8px }
.large b { font-size: clamp(44px, 9vw, 120px); letter-spacing: .05em }
"""


class Lecturer:
    """Open a class, show it what is on screen, and gather what it answers.

    Args:
        shell: the frame of the pages.

    Attributes:
        drawer: the component; None before a class was begun.
        room: the class; None if there is none.
    """

    def __init__(self, shell):
        self.shell = weakref.proxy(shell)  # which holds this
        self.room: Room | None = None
        self.runs: Runs | None = None
        self.drawer: pmui.Drawer | None = None
        self.base, self.page, self.watcher, self.version = "", None, None, -1
        pn.state.on_session_destroyed(lambda context, own=weakref.ref(self): own() and own().leave())

    # ---- begin and end

    def toggle(self, event=None) -> None:
        """Begin a class, or show or hide what there is of it."""
        if self.room is None:
            try:
                room, key = ROOMS.begin()
            except (ValueError, OSError) as error:
                return pn.state.notifications.warning(note(log, "class", error), duration=8000)
            self.shell.browser.keep_class(f"{room.code} {key}")
            self._lead(room)
        else:
            self._open(not self.drawer.open)

    def resume(self, text: str) -> None:
        """Lead the class that this browser tab led before it was loaded again.

        Args:
            text: code and key, as `Browser.keep_class` was given them.
        """
        code, _, key = text.partition(" ")
        if self.room is None and code:
            if room := ROOMS.resume(code, key):
                self._lead(room)
            else:
                self.shell.browser.keep_class("")

    def _lead(self, room: Room) -> None:
        self.room = room
        room.lead(self)
        loop = IOLoop.current()
        self.runs = Runs(room, loop.add_callback)
        if self.drawer is None:
            self._build()
        self._open(True)
        self.version = -1
        self.tick()

    def end(self, event=None) -> None:
        """End the class. Nothing of it stays."""
        room, self.room, self.runs = self.room, None, None
        self._turn_away()
        ROOMS.end(room)
        self.shell.browser.keep_class("")
        self.large.open = self.sure.open = False
        self._open(False)
        self.shell.bar.name_class("")

    def leave(self) -> None:
        """The lecturer's page has ended; the class waits for the lecturer."""
        if self.room:
            self.room.abandon(self)
        self._turn_away()
        self.room = self.runs = None

    def taken_over(self) -> None:
        """Another page of the lecturer leads the class now."""
        self._turn_away()
        self.room = self.runs = None
        if self.drawer:
            self._open(False)

    # ---- what the class sees

    def tick(self) -> None:
        """Follow the lecturer to another page, and show what is new. Twice a second."""
        if self.room is None:
            return
        self.room.seen = time.monotonic()
        page = self.shell.page
        if page is not self.page:
            self._turn_away()
            self._turn_to(page)
        if self.watcher:
            self.room.publish(caption=page.tour.text.object, **page.class_sees())
        if self.room.version != self.version:
            self.version = self.room.version
            self._show()
        self.shell.bar.name_class(f"{readable(self.room.code)} · {len(self.room.followers)}")

    def _turn_to(self, page) -> None:
        self.page, room = page, self.room
        room.forget_frames()
        stage = getattr(page, "stage", None)
        if not isinstance(stage, (Stage, TrainingStage)):
            label = self.shell.known[self.shell.key].label
            return room.publish(away=f"The lecturer is on page {label}.")
        trains = isinstance(stage, TrainingStage)
        names, kind = TRAINED if trains else SHOWN, type(stage).__name__ if trains else "Stage"
        if trains:
            KINDS[kind] = type(stage)

        def tell(*events):
            room.publish(**{event.name: event.new for event in events})

        def take(frame):
            room.take(frame, int(frame[1]) if trains else 0, 0 if trains else int(frame[2]))

        self.watcher = stage, stage.param.watch(tell, list(names)), take
        stage.listeners = (*stage.listeners, take)
        own = {name: getattr(stage, name) for name in names}
        room.publish(away="", kind=kind, caption="", knobs=[], legend="", **own)
        page.refresh_class()  # which sends the newest frame again
        self.showing.show(page)

    def _turn_away(self) -> None:
        if self.watcher:
            stage, watcher, take = self.watcher
            if "scene" in stage._param__private.values:  # else the page has ended already
                stage.param.unwatch(watcher)
                stage.listeners = tuple(one for one in stage.listeners if one is not take)
        self.page = self.watcher = None

    # ---- what the lecturer sees

    def _build(self) -> None:
        text = {"variant": "text", "size": "small", "margin": (0, 4)}
        self.joining = pn.pane.HTML("", stylesheets=[CODE], margin=(8, 12), sizing_mode="stretch_width")
        self.big = pn.pane.HTML("", stylesheets=[CODE], sizing_mode="stretch_width")
        self.large = pmui.Dialog(self.big, title="Join the class", open=False, full_screen=True, show_close_button=True)
        show = pmui.Button(label="Show large", icon="fullscreen", on_click=self._show_large, **text)
        end = pmui.Button(label="End the class", icon="logout", on_click=lambda event: self._ask_end(True), **text)
        hide = pmui.Button(label="Hide", icon="chevron_right", on_click=self.toggle, **text)
        self.sure = pmui.Dialog(
            pmui.Typography("All answers are forgotten. Download them first if you need them.", margin=(4, 8)),
            pmui.Row(
                pmui.Button(label="End it", on_click=self.end, **text),
                pmui.Button(label="Cancel", on_click=lambda event: self._ask_end(False), **text),
            ),
            title="End the class?",
            open=False,
        )
        self.asking = Asking(self.ask, lambda: self.shell.page)
        self.answers = Answers(self)
        self.showing = Showing()
        self.drawer = pmui.Drawer(
            pmui.Row(hide, show, end, margin=(60, 4, 0, 4)),
            self.joining,
            self.answers.column,
            self.asking.column,
            self.showing.column,
            anchor="right",
            variant="persistent",
            size=WIDE,
            open=False,
        )
        self.shell.main.extend([self.drawer, self.large, self.sure])

    def _open(self, on: bool) -> None:
        """Open the drawer beside the page, or close it."""
        self.drawer.open = on
        self.shell.main.sx = BESIDE if on else {}
        if on:
            self.shell.frame.sidebar_open = False

    def _show(self) -> None:
        code, here = readable(self.room.code), len(self.room.followers)
        base = self.base.rstrip("/")
        address = f"{base}/class/{self.room.code}"
        picture = segno.make(address, error="m").svg_inline(border=1, omitsize=True)
        where = html.escape(f"{base}/class".split("://")[-1])
        host = base.split("://")[-1].split("/")[0].rsplit(":", 1)[0]
        hint = (
            '<span class="hint">This address leads nowhere on a phone. Open the app by this computer\'s name or IP '
            "address.</span>"
            if host in LOCAL
            else ""
        )
        told = f"{here} follow{'s' * (here == 1)}"
        self.joining.object = (
            f'<div class="join">{picture}<b>{code}</b><span>{where}</span><span>{told}</span>{hint}</div>'
        )
        self.big.object = f'<div class="large"><span>{where}</span><b>{code}</b>{picture}</div>'
        self.answers.show(self.room)

    def _show_large(self, event) -> None:
        self.large.open = True

    def _ask_end(self, on: bool) -> None:
        self.sure.open = on

    # ---- questions

    def ask(self, facts: dict[str, Any]) -> str:
        """Put a question; return what is wrong with it, or ""."""
        if knob := facts.pop("knob", ""):
            if not isinstance(getattr(self.shell.page, "stage", None), Stage):
                return "Open a page with a running stage: its target and method are those of the runs."
        try:
            if knob:
                facts = facts_of(knob, self.shell.page.session.shown()[0].to_query()) | facts
            self.room.ask(facts)
            if knob:
                self.runs.prepare()
        except ValueError as error:
            return str(error)
        self.tick()
        return ""

    def reveal(self, on: bool, outcome: float | int | None) -> None:
        """Show the class what it has answered."""
        question = self.room.question
        law = law_of(question) if on and question.knob else None
        self.room.reveal(on, outcome, law)
        self.tick()
