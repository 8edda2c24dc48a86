"""Page "1-D wave": the uncertainty of each method, live, against NUTS."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np
import panel as pn
import panel_material_ui as pmui

from app.pages.wave.controls import Controls
from app.pages.wave.networks import Networks
from app.pages.wave.nuts_panel import NutsPanel
from app.pages.wave.parts import HELP, HINT, KEYS, MARKS, PRESETS, WIDTH_MARKS, WIDTHS_HINT, bands_file, table
from app.pages.wave.recovery import Recovery
from app.pages.wave.setup import MOST, MOST_STEPS, STEPS, WaveSetup, all_knobs
from app.pages.wave.stage import WaveStage
from app.pages.wave.trained import is_shipped
from app.pages.wave.widths import Widths, narrowing, shipped_rows, spreads
from app.server.loop import soon
from app.server.streaming import Mailbox
from app.stage.hand_over import runs_of_training
from app.stage.lecture import Lecture, large
from app.stage.tour import Tour
from app.stage.training_transport import Transport
from app.ui.job_bar import MIDDLE, TEXT, Pausable
from app.ui.legend import coloured, legend_pane, sentence_pane
from app.ui.toggle import toggle
from stein_core.targets.wave import dim_of

PACES = [1, 5, 20, 100, 1000]  # steps per frame


class WavePage:
    """Page "1-D wave"; see `app.shell` for the contract of a page.

    Attributes:
        setup: what is shown.
        networks: what trains it.
    """

    def __init__(self, shell, query: dict[str, str]):
        self.shell, self.later = shell, soon(pn.state.curdoc)
        # Panel drops changes until the document is loaded. The stage moves before that, so news has to wait.
        self.loaded = lambda call: self.later(lambda: pn.state.onload(call))
        talks, query, unread = Lecture.of_query(query)
        self.setup, problems = WaveSetup.from_query(query)
        problems = [*unread, *problems]
        self.shown = False
        self.shipped, self.here = spreads(shipped_rows("widths")), {}
        self.stage = WaveStage(self.on_message, dark=shell.frame.dark_theme)
        self.networks = Networks(self.stage.send, self.later, self.loaded, self.on_session_news)
        shell.frame.param.watch(self.darken, "dark_theme")
        self.post = Mailbox(self.loaded, self.on_news)
        self.controls = Controls(self.take, self._refuse)
        here = Pausable(lambda: self.networks.playing, lambda: self.networks.play(False))
        self.widths, self.recovery = Widths(shell.frame.dark_theme), Recovery(self.post, self._alarm, here)
        self.nuts = NutsPanel(self.stage.compare, self.post, self._alarm, here)
        self._make_widgets()
        self.tour = Tour(PRESETS, self.controls.go)
        self.lecture = Lecture(shell, self.tour, self._enlarge, self.transport.lecture, on=talks)
        self.lecture.alone()
        warning = pmui.Alert(
            pn.pane.HTML(html.escape(" ".join(problems))), severity="warning", title="In this link", closeable=True
        )
        self.sidebar = self.controls.sidebar
        caption = {"variant": "caption", "color": "text.secondary", "sizing_mode": "stretch_width", "margin": (2, 10)}
        hint = pmui.Typography(HINT, variant="body2", margin=(4, 10), **MIDDLE)
        about_data = (self.seed, self.exports, self.bands_file, self.check)
        self.sentence.param.update(sizing_mode=None, styles={"flex": "1 1 300px"})
        marks = legend_pane(MARKS)
        large_marks = large(legend_pane([MARKS[0], MARKS[2], MARKS[5]]))
        large_marks.visible = False
        foot = [
            pmui.Grid(
                pmui.Grid(self.table, size={"xs": 12, "lg": 8}),
                pmui.Grid(
                    pn.pane.Bokeh(self.widths.figure, sizing_mode="stretch_width", margin=(0, 4)),
                    legend_pane(WIDTH_MARKS),
                    size={"xs": 12, "lg": 4},
                ),
                container=True,
                sizing_mode="stretch_width",
            ),
            pmui.FlexBox(*self.nuts.widgets, align_items="center"),
            pmui.FlexBox(hint, *about_data, align_items="center"),
            self.recovery.panel,
            pmui.Typography(WIDTHS_HINT + narrowing(shipped_rows("widths")), **caption),
            pmui.Typography(f"{HELP} {KEYS}", **caption),
        ]
        rest = pmui.Column(*foot, sizing_mode="stretch_width", margin=0)
        self.lecture.around += [self.sentence, self.erase, self.controls.reset_data, marks, rest]
        self.lecture.only.append(large_marks)
        self.main = [
            pmui.Column(
                *[warning] * bool(problems),
                self.alarm,
                self.lecture.row(self.sentence, self.erase, self.controls.reset_data),
                self.stage,
                marks,
                self.transport.panel,
                large_marks,
                rest,
                sizing_mode="stretch_width",
                margin=(4, 12),
            )
        ]
        self.networks.train(self.setup.networks())
        self._show_setup()
        self.later(self.show)  # before a browser has loaded the page, so that something moves sooner
        pn.state.on_session_destroyed(lambda context: self._leave())

    def _make_widgets(self):
        commands = (self.toggle, self.networks.step, self.reset, self.networks.speed)
        self.transport = Transport(*commands, PACES, 100, all_knobs(), self.controls.turn, MOST)
        self.sentence = sentence_pane()
        self.seed = pmui.Button(label="New seed", icon="casino", on_click=self._new_seed, **TEXT)
        self.alarm = pmui.Alert(
            "", severity="error", visible=False, closeable=True, sizing_mode="stretch_width", margin=(4, 8)
        )
        self.erase = toggle("Delete points", "delete", lambda on: self.stage.param.update(erasing=on))
        items = [{"label": text} for text in ("Figure as PNG", "Figure as SVG", "Copy link", "Copy as Python")]
        self.exports = pmui.MenuButton(label="Export", icon="download", items=items, **TEXT)
        self.exports.on_click(self._export)
        self.bands_file = pmui.FileDownload(
            label="Bands as CSV", callback=lambda: bands_file(self.networks.snapshots), filename="wave.csv", **TEXT
        )
        self.check = pmui.Button(label="Diagnose this run", icon="fact_check", on_click=self.diagnose, **TEXT)
        self.table = pn.pane.HTML("", sizing_mode="stretch_width", margin=(4, 8))

    # ---- what the shell asks

    def darken(self, event):
        """Use the dark theme, or the light one."""
        self.stage.dark = event.new
        self.widths.darken(event.new)

    def show(self):
        self.shown = True
        self.lecture.show()
        self.networks.show(True)

    def hide(self):
        self.shown = False
        self.lecture.hide()
        self.networks.show(False)

    def refresh(self):
        self.transport.say(self.networks.reading)
        self._show_readouts()
        self.nuts.refresh()
        self.recovery.refresh()

    def link(self) -> str:
        at = [0 if self.networks.playing else min(each.paused_at, MOST_STEPS) for each in self.networks.sessions]
        if is_shipped(self.setup) and at == [STEPS]:  # which is what a bare link shows
            at = [0]
        setup = replace(self.setup, steps=at[0], below=at[1] if self.setup.two else 0)
        return self.lecture.to_query(setup.to_query())

    # ---- from the user

    def take(self, **change) -> bool:
        """Change the setup.

        Args:
            change: fields of the WaveSetup.

        Returns:
            False if the new setup is not valid; the page then says why and keeps the old one.
        """
        try:
            setup = replace(self.setup, steps=0, below=0, **change)
        except ValueError as error:
            self._refuse(str(error))
            self._show_setup()
            return False
        if setup.posterior()[1:] != self.setup.posterior()[1:]:
            self.here = {}  # widths under other data cannot be compared
        self.setup = setup
        self.networks.train(setup.networks())
        self._show_setup()
        return True

    def on_message(self, message: dict):
        """Handle a message of the stage: acknowledgements, data points and keys."""
        if "ready" in message:
            self.networks.ready()
        elif "ack" in message:
            self.networks.ack(int(message["row"]), message["ack"])
        elif "points" in message:
            pn.state.onload(lambda: self.take(data=message["points"]))
        elif self.shown:
            keys = {"space": self.toggle, "right": self.networks.step, "r": self.reset, **self.lecture.keys()}
            pn.state.onload(keys.get(message["key"], lambda: None))

    def _enlarge(self, on: bool):
        self.stage.lecture = on

    def toggle(self, event=None):
        self.networks.play(not self.networks.playing)

    def reset(self):
        self.setup = replace(self.setup, steps=0, below=0)
        self.networks.reset()

    def _new_seed(self, event):
        self.take(seed=int(np.random.default_rng().integers(1_000_000)))

    def diagnose(self, event=None):
        """Hand the methods of the first row to page "Your posterior"."""
        if runs := runs_of_training(self.networks.snapshots[0]):
            self.shell.diagnose(runs)
        else:
            pn.state.notifications.info("Training has not begun yet.")

    def _refuse(self, why: str):
        pn.state.notifications.error(why, duration=8000)  # shown as text, not as HTML

    def _export(self, item):
        label = item["label"]
        if label.startswith("Figure"):
            self.stage.export(label[-3:].lower())
        elif label == "Copy link":
            self.shell.copy_link(self.link())
        else:
            self.shell.browser.copy(self.setup.to_python(self.networks.steps))

    # ---- drawing

    def _show_setup(self):
        self.controls.show(self.setup)
        self.sentence.object = coloured(self.controls.sentence)
        self.tour.find(self.controls.at)
        self.transport.turn(self.setup.value)
        self.stage.show(self.setup.networks())
        self.nuts.show(self.setup.networks())

    def _show_readouts(self):
        """Update the table and the figure of widths."""
        shots = self.networks.snapshots
        known = self.nuts.known if len(self.nuts.known) == len(shots) else [None] * len(shots)
        self.table.object = table(shots, known) if any(shots) else ""
        for snapshot in filter(None, shots):
            if snapshot.setup.posterior()[1:] == self.setup.posterior()[1:]:
                for name, found in snapshot.methods.items():
                    if found.step:
                        self.here.setdefault(name, {})[dim_of(snapshot.setup.width)] = found.readout.gap
        self.widths.show(self.shipped, self.here, self.nuts.gaps)

    def _alarm(self, text: str):
        self.alarm.param.update(object=html.escape(text), visible=bool(text))

    def on_session_news(self, row: int, news: dict):
        """Take news of a session. On the event loop."""
        if "alarm" in news:
            self._alarm(news["alarm"])
        self.transport.show(self.networks.playing)

    def on_news(self, news: dict):
        """Take news of the threads. On the event loop."""
        if "alarm" in news:
            self._alarm(news["alarm"])
        if "nuts" in news:
            self.nuts.on_found(*news["nuts"])
        if "gaps" in news:
            self.nuts.gaps = news["gaps"]
        if "recovery" in news:
            self.recovery.on_rows(news["recovery"])

    def _leave(self):
        self.networks.close()
        self.nuts.close()
        self.recovery.close()
