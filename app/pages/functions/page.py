"""Page "Function space": ensembles of networks that repel as functions, live, beside the exact band."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np
import panel as pn
import panel_material_ui as pmui

from app.pages.functions.controls import Controls
from app.pages.functions.nuts import NutsPanel
from app.pages.functions.parts import HELP, HINT, KEYS, MARKS, PRESETS, curves_file, table
from app.pages.functions.session import FunctionSession
from app.pages.functions.setup import MOST, MOST_STEPS, PAPER, FunctionSetup, all_knobs
from app.pages.functions.stage import FunctionStage
from app.server.loop import soon
from app.server.streaming import Mailbox, Streamer
from app.stage.hand_over import runs_of_training
from app.stage.lecture import Lecture, large
from app.stage.tour import Tour
from app.stage.training_transport import Transport
from app.ui.job_bar import MIDDLE, TEXT, Pausable
from app.ui.legend import coloured, legend, legend_pane, sentence_pane
from app.ui.toggle import toggle
from stein_core import device_name

PACES = [1, 5, 20, 100]  # steps per frame
LARGE = {False: (MARKS[False][0], MARKS[False][3]), True: MARKS[True][:1]}  # the legend of a lecture


class FunctionsPage:
    """Page "Function space"; see `app.shell` for the contract of a page.

    Attributes:
        setup: what is shown; the session trains it.
    """

    def __init__(self, shell, query: dict[str, str]):
        self.shell, self.later = shell, soon(pn.state.curdoc)
        # Panel drops changes until the document is loaded. The stage moves before that, so news has to wait.
        self.loaded = lambda call: self.later(lambda: pn.state.onload(call))
        talks, query, unread = Lecture.of_query(query)
        self.setup, problems = FunctionSetup.from_query(query)
        problems = [*unread, *problems]
        self.playing, self.status, self.rate = True, "", 0.0
        self.stage = FunctionStage(self.on_message, dark=shell.frame.dark_theme)
        shell.frame.param.watch(self.darken, "dark_theme")
        self.streamer = Streamer(self.stage.send, self.later)
        self.session = FunctionSession(self.setup, self.streamer, Mailbox(self.loaded, self.on_news))
        self.controls = Controls(self.take)
        here = Pausable(lambda: self.playing, lambda: self.session.play(False))
        self.nuts = NutsPanel(self.stage.sample, self._alarm, here)
        self._make_widgets()
        self.tour = Tour(PRESETS, self.controls.go)
        self.lecture = Lecture(shell, self.tour, self._enlarge, self.transport.lecture, on=talks)
        self.lecture.alone()
        warning = pmui.Alert(
            pn.pane.HTML(html.escape(" ".join(problems))), severity="warning", title="In this link", closeable=True
        )
        self.sidebar = self.controls.sidebar
        caption = {"variant": "caption", "color": "text.secondary", "sizing_mode": "stretch_width", "margin": (2, 10)}
        self.large_legend = large(legend_pane())
        self.large_legend.visible = False
        rest = pmui.Column(
            self.nuts.row,
            self.table,
            pmui.FlexBox(self.hint, self.seed, self.exports, self.file, self.check, align_items="center"),
            pmui.Typography(f"{HELP} {KEYS}", **caption),
            sizing_mode="stretch_width",
            margin=0,
        )
        self.lecture.around += [self.sentence, self.erase, self.reset_points, self.legend, rest]
        self.lecture.only.append(self.large_legend)
        self.main = [
            pmui.Column(
                *[warning] * bool(problems),
                self.alarm,
                self.lecture.row(self.sentence, self.erase, self.reset_points),
                self.stage,
                self.legend,
                self.transport.panel,
                self.large_legend,
                rest,
                sizing_mode="stretch_width",
                margin=(4, 12),
            )
        ]
        self._show_setup()
        self.later(self.show)  # before a browser has loaded the page, so that something moves sooner
        pn.state.on_session_destroyed(lambda context: self._leave())

    def _make_widgets(self):
        commands = (self.session.toggle, self.session.step, self.reset, self.session.speed)
        self.transport = Transport(*commands, PACES, 20, all_knobs(), self.controls.turn, MOST)
        self.sentence, self.legend = sentence_pane(), legend_pane()
        self.sentence.param.update(sizing_mode=None, styles={"flex": "1 1 300px"})
        self.alarm = pmui.Alert(
            "", severity="error", visible=False, closeable=True, sizing_mode="stretch_width", margin=(4, 8)
        )
        self.erase = toggle("Delete points", "delete", lambda on: self.stage.param.update(erasing=on))
        self.reset_points = pmui.Button(
            label="Reset points", icon="restore", on_click=lambda event: self.take(handles=(), data=PAPER), **TEXT
        )
        self.hint = pmui.Typography("", variant="body2", margin=(4, 10), **MIDDLE)
        self.seed = pmui.Button(label="New seed", icon="casino", on_click=self._new_seed, **TEXT)
        items = [{"label": text} for text in ("Figure as PNG", "Figure as SVG", "Copy link", "Copy as Python")]
        self.exports = pmui.MenuButton(label="Export", icon="download", items=items, **TEXT)
        self.exports.on_click(self._export)
        self.check = pmui.Button(label="Diagnose this run", icon="fact_check", on_click=self.diagnose, **TEXT)
        self.file = pmui.FileDownload(
            label="Numbers as CSV",
            callback=lambda: curves_file(self.session.snapshot),
            filename="functions.csv",
            **TEXT,
        )
        self.table = pn.pane.HTML("", sizing_mode="stretch_width", margin=(4, 8))

    # ---- what the shell asks

    def darken(self, event):
        """Use the dark theme, or the light one."""
        self.stage.dark = event.new

    def show(self):
        self.lecture.show()
        self.session.wake()

    def hide(self):
        self.lecture.hide()
        self.session.sleep()

    def refresh(self):
        snapshot = self.session.snapshot
        rate = f" · {self.rate:,.0f} steps/s" if self.playing else ""
        step = snapshot.step if snapshot else 0
        self.transport.say(self.status or f"step {step:,}{rate} · {device_name()}")
        if snapshot and snapshot.methods:
            self.table.object = table(snapshot, self.nuts.known)
        self.nuts.refresh()

    def link(self) -> str:
        setup = replace(self.setup, steps=min(self.session.paused_at, MOST_STEPS))
        return self.lecture.to_query(setup.to_query())

    # ---- from the user

    def take(self, **change) -> bool:
        """Change the setup.

        Args:
            change: fields of the FunctionSetup.

        Returns:
            False if the new setup is not valid; the page then says why and keeps the old one.
        """
        try:
            setup = replace(self.setup, steps=0, **change)
        except ValueError as error:
            pn.state.notifications.error(str(error), duration=8000)  # shown as text, not as HTML
            self._show_setup()
            return False
        self.setup = setup
        self.session.apply(setup)
        self._show_setup()
        return True

    def on_message(self, message: dict):
        """Handle a message of the stage: acknowledgements, points and keys."""
        if "ready" in message:
            self.streamer.ready()
        elif "ack" in message:
            self.streamer.ack(message["ack"])
        elif "handles" in message:
            self._moved(handles=message["handles"])
        elif "points" in message and not self.setup.ring:
            self._moved(data=message["points"])
        elif "key" in message:
            own = {"space": self.session.toggle, "right": self.session.step, "r": self.reset}
            pn.state.onload({**own, **self.lecture.keys()}.get(message["key"], lambda: None))

    def _enlarge(self, on: bool):
        self.stage.lecture = on

    def _moved(self, **points):
        pn.state.onload(lambda: self.take(**points))

    def reset(self):
        self.setup = replace(self.setup, steps=0)
        self.session.reset()
        self.session.play(True)

    def _new_seed(self, event):
        self.take(seed=int(np.random.default_rng().integers(1_000_000)))

    def diagnose(self, event=None):
        """Hand what is on screen to page "Your posterior", which checks its weights."""
        if runs := runs_of_training(self.session.snapshot):
            self.shell.diagnose(runs)
        else:
            pn.state.notifications.info("Training has not begun yet.")

    def _export(self, item):
        label = item["label"]
        if label.startswith("Figure"):
            self.stage.export(label[-3:].lower())
        elif label == "Copy link":
            self.shell.copy_link(self.link())
        else:
            step = self.session.snapshot.step if self.session.snapshot else 0
            self.shell.browser.copy(self.setup.to_python(step))

    # ---- drawing

    def _show_setup(self):
        self.controls.show(self.setup)
        self.sentence.object = coloured(self.controls.sentence)
        self.tour.find(self.controls.at)
        self.transport.turn(self.setup.value)
        self.stage.show(self.setup)
        self.legend.object = legend(*MARKS[self.setup.ring])
        self.large_legend.object = legend(*LARGE[self.setup.ring])
        self.hint.object = HINT[self.setup.ring]
        self.nuts.show(self.setup)
        usual = not self.setup.handles and (self.setup.ring or self.setup.data == PAPER)
        self.reset_points.disabled = usual

    def _alarm(self, text: str):
        self.alarm.param.update(object=html.escape(text), visible=bool(text))

    def _leave(self):
        self.session.close()
        self.nuts.close()

    def on_news(self, news: dict):
        """Take news of the session. On the event loop."""
        if "playing" in news:
            self.playing = news["playing"]
            self.transport.show(self.playing)
        if "alarm" in news:
            self._alarm(news["alarm"])
        if "status" in news:
            self.status = news["status"]
        if "steps_per_second" in news:
            self.rate = news["steps_per_second"]
