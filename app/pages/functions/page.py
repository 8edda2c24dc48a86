"""Page "Function space": ensembles of networks that repel as functions, live, beside the exact band."""

from __future__ import annotations

from steinlab.pages.functions.controls import Controls
from steinlab.pages.functions.nuts import NutsPanel, sampled
from steinlab.pages.functions.parts import HELP, HINT, KEYS, MARKS, NUTS, PRESETS, UNKNOWN, curves_file, table
from steinlab.pages.functions.session import FunctionSession
from steinlab.pages.functions.setup import PAPER, FunctionSetup
from steinlab.pages.functions.stage import FunctionStage
from steinlab.stage.training_page import TrainingPage
from steinlab.ui.job_bar import Pausable
from steinlab.ui.legend import legend

LARGE = {False: (MARKS[False][0], MARKS[False][3]), True: MARKS[True][:1]}  # the legend of a lecture


class FunctionsPage(TrainingPage):
    """Page "Function space"."""

    setups, sessions, stages, presets = FunctionSetup, FunctionSession, FunctionStage, PRESETS
    paces, pace = [1, 5, 20, 100], 20
    file, usual, help = ("Numbers as CSV", "functions.csv"), {"handles": (), "data": PAPER}, f"{HELP} {KEYS}"

    def make(self, here: Pausable):
        self.controls = Controls(self.take)
        self.nuts = NutsPanel(self.stage.sample, self.say_alarm, here)

    def below(self) -> list:
        return [self.nuts.row, self.table, self.about_data, self.help_text]

    def legends(self) -> tuple[str, str, str]:
        ring = self.setup.ring
        return self.legend_of(self.setup), legend(*LARGE[ring]), HINT[ring]

    @classmethod
    def legend_of(cls, setup: FunctionSetup) -> str:
        other = UNKNOWN if sampled(setup) else NUTS
        return legend(*(mark for mark in MARKS[setup.ring] if mark != other))

    @staticmethod
    def pose(stage: FunctionStage, setup: FunctionSetup) -> None:
        stage.show(setup)
        stage.sample(sampled(setup))

    def csv(self):
        return curves_file(self.trainings.snapshots[0])

    def script(self) -> str:
        return self.setup.to_python(self.trainings.steps[0])

    def changed(self, setup: FunctionSetup):
        self.stage.show(setup)
        self.nuts.show(setup)

    def move(self, **points):
        if "data" not in points or not self.setup.ring:  # the classes of the ring stay where they are
            super().move(**points)

    def refresh(self):
        super().refresh()
        snapshot = self.trainings.snapshots[0]
        if snapshot and snapshot.methods:
            self.table.object = table(snapshot, self.nuts.known)
        self.nuts.refresh()

    def leave(self):
        super().leave()
        self.nuts.close()
