"""Widgets for every field of the WaveSetup of page "1-D wave"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import panel_material_ui as pmui

from stein_core.targets.wave import WIDTHS
from steinlab.pages.wave.parts import PRESETS
from steinlab.pages.wave.setup import PAPER, WaveSetup, read_points, used_by
from steinlab.stage.training_controls import TrainingControls
from steinlab.ui.groups import CHOOSE, Fold, group
from steinlab.ui.job_bar import BUTTON
from steinlab.ui.knob_widgets import WIDTH, NumberField
from steinlab.ui.upload import LONGEST, Upload

WORDS = {  # labels that differ from the knob's own
    "method.alpha": "alpha, weight of the repulsion",
    "method.step_size": "learning rate",
    "bandwidth.rule": "reach of the kernel",
    "bandwidth.factor": "bandwidth factor, multiplies the reach",
    "method.force_scale": "attraction: mean (paper) or sum (NumPyro)",
}
REPULSION = ("method.alpha", "method.particles", "kernel.name", "bandwidth.rule")
MODEL = ("target.noise", "target.prior_scale")
START = ("init.spread", "guide.width")
# What is not moved by most: the first one stands in the group of the optimiser.
STEP = "method.step_size"


class Controls(TrainingControls):
    """Hold the widgets.

    Args:
        on_change: see `TrainingControls`.
        on_refused: on_refused(sentence) is called if a text or file gives no points.
    """

    setups, presets, words, first = WaveSetup, PRESETS, WORDS, (*REPULSION, *MODEL, *START, STEP)
    carried = ("width", "methods", "draws", "seed", "probability", "noisy", "knobs", "two")
    plain = {"steps": 0, "below": 0, "seed": 0, "data": PAPER}

    def __init__(self, on_change: Callable[..., Any], on_refused: Callable[[str], None]):
        super().__init__(on_change)
        self.on_refused = on_refused
        self.two = pmui.RadioButtonGroup(
            options={"one width": False, "two rows: h = 5, 100": True},
            size="small",
            margin=(6, 8),
            variant="outlined",
            sx=CHOOSE,
        )
        self.width = pmui.IntSlider(label="Width h of both layers", start=WIDTHS[0], end=WIDTHS[-1], **WIDTH)
        self.draws = NumberField("ELBO draws per particle and step", start=1, end=1000)
        self.two.param.watch(lambda event: self.moved(two=event.new), "value")
        self.width.param.watch(lambda event: self.moved(width=event.new), "value_throttled")
        self.draws.param.watch(lambda event: self.moved(draws=event.new), "value")
        self.knobs[STEP].options = [float(f"{rate:.3g}") for rate in np.geomspace(1e-4, 1, 81)]
        self.text = pmui.TextAreaInput(
            label="Other data, as text",
            placeholder="x, y\n0.4, 2.5\n0.9, 1.0",
            rows=4,
            max_rows=8,
            max_length=LONGEST,
            **WIDTH,
        )
        self.use = pmui.Button(
            label="Use these points",
            variant="outlined",
            on_click=lambda event: self._read(self.text.value),
            **BUTTON,
        )
        self.file = Upload(self._read, on_refused, label="CSV file", **WIDTH)
        self.band = pmui.IntSlider(label="probability of the band, %", start=5, end=99, **WIDTH)
        self.noisy = pmui.Switch(label="band of a new observation y, not of f", margin=(4, 12))
        self._group()
        self.band.param.watch(lambda event: self.moved(probability=event.new / 100), "value")
        self.noisy.param.watch(lambda event: self.moved(noisy=event.new), "value")

    def _group(self):
        """Put the widgets into groups: what a student moves first is open."""

        rest = [name for name in self.knobs if name not in (*REPULSION, *MODEL, *START, STEP)]
        self.repulsion = group("Repulsion", *self.pick(REPULSION))
        self.folds = {
            "Band": Fold("Band", self.band, self.noisy),
            "Model": Fold("Model", *self.pick(MODEL)),
            "Optimiser": Fold("Optimiser", self.knobs[STEP], self.draws),
            "Start": Fold("Start", *self.pick(START)),
            "Advanced": Fold("Advanced", *self.pick(rest)),
            "Your own data": Fold("Your own data", self.text, self.use, self.file),
        }
        self.sidebar = [
            group("Network", self.two, self.width, line=False),
            group("Methods", self.methods),
            self.repulsion,
            *self.folds.values(),
        ]

    def _say(self, setup: WaveSetup):
        """Say in the head of each folded group what is set in it."""
        count = f"{len(setup.data)} points"
        said = {
            "Band": f"{100 * setup.probability:.0f} % of {'y' if setup.noisy else 'f'}",
            "Model": f"noise {setup.value('target.noise'):g}, prior {setup.value('target.prior_scale'):g}",
            "Optimiser": f"Adam, rate {setup.value(STEP):g}",
            "Start": f"spread {setup.value('init.spread'):g}",
            "Advanced": "",
            "Your own data": f"{'the wave, ' * (setup.data == PAPER)}{count}",
        }
        if self.draws.visible:
            said["Optimiser"] += f", {setup.draws} draws"
            said["Start"] += f", width {setup.value('guide.width'):g}"
        if self.knobs["method.force_scale"].visible:
            said["Advanced"] = "mean force" if setup.value("method.force_scale") == "paper" else "summed force"
        for name, text in said.items():
            self.folds[name].say(text)

    def used(self, setup: WaveSetup) -> set[str]:
        return {name for method in setup.methods for name in used_by(method)}

    def set(self, setup: WaveSetup, used: set[str]) -> None:
        self.two.value = setup.two
        self.width.param.update(value=setup.width, visible=not setup.two)
        self.band.value, self.noisy.value = round(100 * setup.probability), setup.noisy
        self.draws.param.update(value=setup.draws, visible="guide.width" in used)
        self.repulsion.visible = any(made.visible for made in self.repulsion[1:])
        self.folds["Advanced"].visible = any(made.visible for made in self.folds["Advanced"].body)
        self._say(setup)

    def _read(self, text: str | bytes):
        try:
            points = read_points(text)
        except ValueError as error:
            self.on_refused(str(error))
            self.text.error_state |= isinstance(text, str)  # else it was a file
        else:
            self.text.error_state = False
            self.moved(data=points)
