"""Page "1-D wave": the uncertainty of each method, live, against NUTS."""

from __future__ import annotations

from dataclasses import replace

import panel as pn
import panel_material_ui as pmui

from stein_core.targets.wave import dim_of
from steinlab.pages.wave.controls import Controls
from steinlab.pages.wave.nuts import compared, reference_of
from steinlab.pages.wave.nuts_panel import NutsPanel
from steinlab.pages.wave.parts import HELP, HINT, KEYS, MARKS, PRESETS, WIDTH_MARKS, WIDTHS_HINT, bands_file, table
from steinlab.pages.wave.recovery import Recovery
from steinlab.pages.wave.session import WaveSession
from steinlab.pages.wave.setup import PAPER, STEPS, WaveSetup
from steinlab.pages.wave.stage import WaveStage
from steinlab.pages.wave.trained import SHIPPED
from steinlab.pages.wave.widths import Widths, narrowing, shipped_rows, spreads
from steinlab.server.streaming import Mailbox
from steinlab.stage.training_page import CAPTION, TrainingPage
from steinlab.stage.training_setup import MOST_STEPS
from steinlab.ui.groups import Fold
from steinlab.ui.job_bar import Pausable
from steinlab.ui.legend import legend, legend_pane


class WavePage(TrainingPage):
    """Page "1-D wave"."""

    setups, sessions, stages, presets = WaveSetup, WaveSession, WaveStage, PRESETS
    paces, pace = [1, 5, 20, 100, 1000], 100
    file, usual, help = ("Bands as CSV", "wave.csv"), {"data": PAPER}, f"{HELP} {KEYS}"

    def make(self, here: Pausable):
        self.more = pn.pane.HTML("", sizing_mode="stretch_width", margin=(4, 8))
        self.shipped, self.here = spreads(shipped_rows("widths")), {}
        post = Mailbox(self.loaded, self.on_news)
        self.controls = Controls(self.take, self.refuse)
        self.widths, self.recovery = Widths(self.shell.frame.dark_theme), Recovery(post, self.say_alarm, here)
        self.nuts = NutsPanel(self.stage.compare, post, self.say_alarm, here)

    def below(self) -> list:
        figure = pn.pane.Bokeh(self.widths.figure, sizing_mode="stretch_width", margin=(0, 4))
        return [
            pmui.Grid(
                pmui.Grid(self.table, Fold("More numbers", self.more), size={"xs": 12, "lg": 8}),
                pmui.Grid(figure, legend_pane(WIDTH_MARKS), size={"xs": 12, "lg": 4}),
                container=True,
                sizing_mode="stretch_width",
            ),
            pmui.FlexBox(*self.nuts.widgets, align_items="center"),
            self.about_data,
            self.recovery.panel,
            pmui.Typography(WIDTHS_HINT + narrowing(shipped_rows("widths")), **CAPTION),
            self.help_text,
        ]

    def legends(self) -> tuple[str, str, str]:
        return self.legend_of(self.setup), legend(MARKS[0], MARKS[2], MARKS[5]), HINT

    @classmethod
    def legend_of(cls, setup: WaveSetup) -> str:
        return legend(*MARKS)

    @staticmethod
    def pose(stage: WaveStage, setup: WaveSetup) -> None:
        networks = setup.networks()
        stage.show(networks)
        references = [reference_of(network) for network in networks]
        stage.compare([known and compared(known, network) for known, network in zip(references, networks)])

    def csv(self):
        return bands_file(self.trainings.snapshots)

    def script(self) -> str:
        return self.setup.to_python(self.trainings.steps)

    def changed(self, setup: WaveSetup):
        self.stage.show(setup.networks())
        self.nuts.show(setup.networks())

    def darken(self, event):
        super().darken(event)
        self.widths.darken(event.new)

    def refresh(self):
        super().refresh()
        self._show_numbers()
        self.nuts.refresh()
        self.recovery.refresh()

    def linked(self) -> WaveSetup:
        trainings = self.trainings
        at = [0 if trainings.playing else min(each.paused_at, MOST_STEPS) for each in trainings.sessions]
        if SHIPPED.is_shipped(self.setup) and at == [STEPS]:  # which is what a bare link shows
            at = [0]
        return replace(self.setup, steps=at[0], below=at[1] if self.setup.two else 0)

    def take(self, **change) -> bool:
        before = self.setup.posterior()[1:]
        taken = super().take(**change)
        if self.setup.posterior()[1:] != before:
            self.here = {}  # widths under other data cannot be compared
        return taken

    def _show_numbers(self):
        """Update the table and the figure of widths."""
        shots = self.trainings.snapshots
        known = self.nuts.known if len(self.nuts.known) == len(shots) else [None] * len(shots)
        self.table.object, self.more.object = (
            (table(shots, known), table(shots, known, more=True)) if any(shots) else ("", "")
        )
        for snapshot in filter(None, shots):
            if snapshot.setup.posterior()[1:] == self.setup.posterior()[1:]:
                for name, found in snapshot.methods.items():
                    if found.step:
                        self.here.setdefault(name, {})[dim_of(snapshot.setup.width)] = found.readout.gap
        self.widths.show(self.shipped, self.here, self.nuts.gaps)

    def on_news(self, news: dict):
        """Take news of the threads. On the event loop."""
        if "alarm" in news:
            self.say_alarm(news["alarm"])
        if "nuts" in news:
            self.nuts.on_found(*news["nuts"])
        if "gaps" in news:
            self.nuts.gaps = news["gaps"]
        if "recovery" in news:
            self.recovery.on_rows(news["recovery"])

    def leave(self):
        super().leave()
        self.nuts.close()
        self.recovery.close()
