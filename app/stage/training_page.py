"""Base of the pages on which networks train: the stage, what drives it, links, exports and the numbers below."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from steinlab.server.loop import soon
from steinlab.stage.hand_over import runs_of_training
from steinlab.stage.lecture import Lecture, hide, large
from steinlab.stage.replay import training_page
from steinlab.stage.tour import Tour
from steinlab.stage.training import Training
from steinlab.stage.training_controls import TrainingControls
from steinlab.stage.training_setup import MOST_STEPS, TrainingSetup
from steinlab.stage.training_stage import TrainingStage
from steinlab.stage.training_transport import Transport
from steinlab.stage.trainings import Trainings
from steinlab.ui.job_bar import MIDDLE, TEXT, Pausable
from steinlab.ui.legend import coloured, legend_pane, sentence_pane
from steinlab.ui.toggle import toggle

CAPTION = {"variant": "caption", "color": "text.secondary", "sizing_mode": "stretch_width", "margin": (2, 10)}


class TrainingPage:
    """Train the rows of a setup, and show them. See `steinlab.contents` for the contract of a page.

    A subclass makes what else is on the page in `make`, and says `below`, `legends`, `fresh` and the names here.

    Attributes:
        setup: what is shown.
        trainings: what trains it.
        stage, controls: see their classes; `make` makes the controls.
        paces: steps that a frame may have; with the one at first in `pace`.
        file: label and name of the download, whose content is `csv()`.
        usual: fields of the setup that *Reset points* sets.
    """

    setups: type[TrainingSetup]
    sessions: type[Training]
    stages: type[TrainingStage]
    controls: TrainingControls
    presets: list[dict]
    paces: list[int]
    pace: int
    file: tuple[str, str]
    usual: Mapping[str, Any]
    help: str

    def __init__(self, shell, query: dict[str, str]):
        self.shell, self.later = shell, soon(pn.state.curdoc)
        # Panel drops changes until the document is loaded. The stage moves before that, so news has to wait.
        self.loaded = lambda call: self.later(lambda: pn.state.onload(call))
        talks, query, unread = Lecture.of_query(query)
        self.setup, problems = self.setups.from_query(query)
        problems = [*unread, *problems]
        self.shown = False
        self.stage = self.stages(self.on_message, dark=shell.frame.dark_theme)
        self.trainings = Trainings(self.sessions, self.stage.send, self.later, self.loaded, self.on_session_news)
        shell.frame.param.watch(self.darken, "dark_theme")
        self.make(Pausable(lambda: self.trainings.playing, lambda: self.trainings.play(False)))
        self._make_widgets()
        self.tour = Tour(self.presets, self.controls.go, lambda on: hide(self.stage, on), shell.presentation.forth)
        turned = (self._enlarge, self.transport.lecture, self.tour.lecture)
        self.lecture = Lecture(shell, self.tour.move, *turned, on=talks)
        self.sidebar = self.controls.sidebar
        rest = pmui.Column(*self.below(), sizing_mode="stretch_width", margin=0)
        self.lecture.around += [self.sentence, self.erase, self.reset_points, self.legend, rest]
        self.lecture.only += [self.tour.text, self.large_legend]
        self.lecture.stripped += [self.transport.strip, self.tour.strip]
        self.tour.text.visible = False
        warning = pmui.Alert(
            pn.pane.HTML(html.escape(" ".join(problems))), severity="warning", title="In this link", closeable=True
        )
        self.main = [
            pmui.Column(
                *[warning] * bool(problems),
                self.alarm,
                self.tour.row(self.sentence, self.erase, self.reset_points, self.lecture.leave),
                self.stage,
                self.legend,
                self.transport.panel,
                self.large_legend,
                rest,
                sizing_mode="stretch_width",
                margin=(4, 12),
            )
        ]
        self.trainings.train(self.setup.networks())
        self._show_setup()
        self.later(self.show)  # before a browser has loaded the page, so that something moves sooner
        pn.state.on_session_destroyed(lambda context: self.leave())

    def _make_widgets(self):
        commands = (self.toggle, self.trainings.step, self.reset, self.trainings.speed)
        known, most = self.setups.all_knobs(), self.setups.most
        self.transport = Transport(*commands, self.paces, self.pace, known, self.controls.turn, most)
        self.sentence, self.legend, self.large_legend = sentence_pane(), legend_pane(), large(legend_pane())
        self.sentence.param.update(sizing_mode=None, styles={"flex": "1 1 300px"})
        self.large_legend.visible = False
        self.alarm = pmui.Alert(
            "", severity="error", visible=False, closeable=True, sizing_mode="stretch_width", margin=(4, 8)
        )
        self.erase = toggle("Delete points", "delete", lambda on: self.stage.param.update(erasing=on))
        self.reset_points = pmui.Button(
            label="Reset points", icon="restore", on_click=lambda event: self.take(**self.usual), **TEXT
        )
        self.hint = pmui.Typography("", variant="body2", margin=(4, 10), **MIDDLE)
        seed = pmui.Button(label="New seed", icon="casino", on_click=self._new_seed, **TEXT)
        label, name = self.file
        table = pmui.FileDownload(label=label, callback=lambda: self.csv(), filename=name, **TEXT)
        check = pmui.Button(label="Diagnose this run", icon="fact_check", on_click=self.diagnose, **TEXT)
        self.about_data = pmui.FlexBox(self.hint, seed, table, check, align_items="center")
        self.table = pn.pane.HTML("", sizing_mode="stretch_width", margin=(4, 8))
        self.help_text = pmui.Typography(self.help, **CAPTION)

    @classmethod
    def prepare(cls, query: dict[str, str]) -> None:
        """Compile what a link needs, on the calling thread."""
        for setup in cls.setups.from_query(query)[0].networks():
            for method in setup.methods:
                cls.sessions.prepared(setup.spec(method), setup, method)

    # ---- what a subclass says

    def make(self, here: Pausable) -> None:
        """Make the controls, and what else the page has. `here` is what its jobs give way to."""
        raise NotImplementedError

    def below(self) -> list:
        """Return what stands under the stage."""
        raise NotImplementedError

    def legends(self) -> tuple[str, str, str]:
        """Return the legend, that of a lecture, and the hint under the stage."""
        raise NotImplementedError

    @classmethod
    def legend_of(cls, setup: TrainingSetup) -> str:
        """Return the legend of a setup."""
        raise NotImplementedError

    @staticmethod
    def pose(stage: TrainingStage, setup: TrainingSetup) -> None:
        """Show what stands still of a setup, at once."""
        raise NotImplementedError

    def csv(self):
        """Return the file of what is shown."""
        raise NotImplementedError

    def script(self) -> str:
        """Return a Python script that repeats what is shown."""
        raise NotImplementedError

    def changed(self, setup: TrainingSetup) -> None:
        """Show another setup in what `make` has made."""

    def leave(self) -> None:
        """End all that runs: the tab is closed."""
        self.trainings.close()

    # ---- what the shell asks

    def darken(self, event):
        """Use the dark theme, or the light one."""
        self.stage.dark = event.new

    def show(self):
        self.shown = True
        self.lecture.show()
        self.trainings.show(True)

    def hide(self):
        self.shown = False
        self.lecture.hide()
        self.trainings.show(False)

    def refresh(self):
        self.transport.say(self.trainings.reading)

    def link(self) -> str:
        return self.lecture.to_query(self.linked().to_query())

    def open(self, query: dict[str, str]):
        """Show the setup of a link."""
        self.setup, problems = self.setups.from_query(Lecture.of_query(query)[1])
        if problems:
            pn.state.notifications.warning(" ".join(problems))
        self.trainings.train(self.setup.networks())
        self._show_setup()

    def linked(self) -> TrainingSetup:
        """Return the setup of a link to what is on screen."""
        return replace(self.setup, steps=min(self.trainings.sessions[0].paused_at, MOST_STEPS))

    # ---- from the user

    def take(self, **change) -> bool:
        """Change the setup.

        Args:
            change: fields of the setup.

        Returns:
            False if the new setup is not valid; the page then says why and keeps the old one.
        """
        try:
            setup = replace(self.setup, **self.setups.from_start, **change)
        except ValueError as error:
            self.refuse(str(error))
            self._show_setup()
            return False
        self.setup = setup
        self.trainings.train(setup.networks())
        self._show_setup()
        return True

    def on_message(self, message: dict):
        """Handle a message of the stage: acknowledgements, points and keys."""
        if "ready" in message:
            self.trainings.ready()
        elif "ack" in message:
            self.trainings.ack(int(message.get("row", 0)), message["ack"])
        elif "points" in message:
            self.move(data=message["points"])
        elif "handles" in message:
            self.move(handles=message["handles"])
        elif self.shown:
            keys = {"space": self.toggle, "right": self.trainings.step, "r": self.reset}
            pn.state.onload(keys.get(message["key"], lambda: None))

    def move(self, **points):
        """Take points that the user has moved."""
        pn.state.onload(lambda: self.take(**points))

    def toggle(self, event=None):
        self.trainings.play(not self.trainings.playing)

    def reset(self):
        self.setup = replace(self.setup, **self.setups.from_start)
        self.trainings.reset()

    def diagnose(self, event=None):
        """Hand the methods of the first row to page "Your posterior"."""
        if runs := runs_of_training(self.trainings.snapshots[0]):
            self.shell.diagnose(runs)
        else:
            pn.state.notifications.info("Training has not begun yet.")

    def refuse(self, why: str):
        """Say why something is not done."""
        pn.state.notifications.error(why, duration=8000)  # shown as text, not as HTML

    def _new_seed(self, event):
        self.take(seed=int(np.random.default_rng().integers(1_000_000)))

    def _enlarge(self, on: bool):
        self.stage.lecture = on

    @property
    def shares(self) -> dict[str, Callable[[], None]]:
        """What the bar offers to share."""
        return {
            "Copy as Python": lambda: self.shell.browser.copy(self.script()),
            "Figure as PNG": lambda: self.stage.export("png"),
            "Figure as SVG": lambda: self.stage.export("svg"),
            "Replay as one page": lambda: self.stage.export("html", training_page(self.stages), self.legend.object),
            "Film as WebM": lambda: self.stage.export("webm", legend=self.legend.object),
        }

    # ---- for a class

    def class_sees(self) -> dict[str, Any]:
        """Return what a class reads beside the stage: the sentence and the legend."""
        return {"knobs": [["sentence", self.controls.sentence]], "legend": self.legend.object}

    def refresh_class(self) -> None:
        """Send the newest frames again."""
        self.trainings.again()

    # ---- drawing

    def _show_setup(self):
        self.controls.show(self.setup)
        self.sentence.object = coloured(self.controls.sentence)
        self.tour.find(self.controls.at)
        self.transport.turn(self.setup.value)
        self.legend.object, self.large_legend.object, self.hint.object = self.legends()
        self.reset_points.disabled = self.setup.has_usual_points
        self.changed(self.setup)

    def say_alarm(self, text: str):
        """Show what has gone wrong, or nothing."""
        self.alarm.param.update(object=html.escape(text), visible=bool(text))

    def on_session_news(self, row: int, news: dict):
        """Take news of a session. On the event loop."""
        if "alarm" in news:
            self.say_alarm(news["alarm"])
        self.transport.show(self.trainings.playing)
