"""Widgets for every field of the WaveSetup of page "1-D wave"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import panel_material_ui as pmui

from app.pages.wave.parts import CHOICE, OWN, PRESETS
from app.pages.wave.setup import MOST, PAPER, WaveSetup, all_knobs, label_of, read_points, shown, used_by
from app.ui.groups import CHOOSE, Fold, dots, group
from app.ui.job_bar import BUTTON, TEXT
from app.ui.knob_widgets import WIDTH, NumberField, set_value, widget
from app.ui.upload import LONGEST, Upload
from stein_core.targets.wave import WIDTHS

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


class Controls:
    """Hold the widgets.

    Attributes:
        sidebar: their groups.
        at: index of the preset that is shown, or -1.
        sentence: what to see with the present settings, or "".

    Args:
        on_change: on_change(**fields) is called with the fields that the user has changed.
        on_refused: on_refused(sentence) is called if a text or file gives no points.
    """

    def __init__(self, on_change: Callable[..., Any], on_refused: Callable[[str], None]):
        self.on_refused, self.quiet = on_refused, False

        def moved(**change):
            if not self.quiet:
                on_change(**change)

        self.setup, self.at, self.sentence, self.moved = WaveSetup(), -1, "", moved
        self.preset = pmui.Select(label="Presets", options=[OWN, *(preset["name"] for preset in PRESETS)], **CHOICE)
        self.preset.param.watch(lambda event: self._preset(event.new), "value")
        self.methods = pmui.MultiChoice(
            label="Methods", options={label_of(name): name for name in shown()}, solid=False, **WIDTH
        )
        self.two = pmui.RadioButtonGroup(
            options={"one width": False, "two rows: h = 5, 100": True},
            size="small",
            margin=(6, 8),
            variant="outlined",
            sx=CHOOSE,
        )
        self.width = pmui.IntSlider(label="Width h of both layers", start=WIDTHS[0], end=WIDTHS[-1], **WIDTH)
        self.draws = NumberField("ELBO draws per particle and step", start=1, end=1000)
        self.methods.param.watch(lambda event: moved(methods=tuple(event.new)), "value")
        self.two.param.watch(lambda event: moved(two=event.new), "value")
        self.width.param.watch(lambda event: moved(width=event.new), "value_throttled")
        self.draws.param.watch(lambda event: moved(draws=event.new), "value")
        self.knobs = {
            name: widget(all_knobs()[name], self.turn)
            for name in dict.fromkeys((*REPULSION, *MODEL, *START, STEP, *all_knobs()))
        }
        for name, label in WORDS.items():
            self.knobs[name].label = label
        self.knobs["method.particles"].end = MOST
        rates = [float(f"{rate:.3g}") for rate in np.geomspace(1e-4, 1, 81)]
        self.knobs[STEP].options = rates
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
            on_click=lambda event: self._read(self.text.value, moved),
            **BUTTON,
        )
        self.file = Upload(lambda content: self._read(content, moved), on_refused, label="CSV file", **WIDTH)
        self.band = pmui.IntSlider(label="probability of the band, %", start=5, end=99, **WIDTH)
        self.noisy = pmui.Switch(label="band of a new observation y, not of f", margin=(4, 12))
        self.reset_data = pmui.Button(
            label="Reset data", icon="restore", on_click=lambda event: moved(data=PAPER), **TEXT
        )
        self._group()
        self.band.param.watch(lambda event: moved(probability=event.new / 100), "value")
        self.noisy.param.watch(lambda event: moved(noisy=event.new), "value")

    def _group(self):
        """Put the widgets into groups: what a student moves first is open."""

        def knobs(names):
            return [self.knobs[name] for name in names]

        rest = [name for name in self.knobs if name not in (*REPULSION, *MODEL, *START, STEP)]
        self.repulsion = group("Repulsion", *knobs(REPULSION))
        self.folds = {
            "Band": Fold("Band", self.band, self.noisy),
            "Model": Fold("Model", *knobs(MODEL)),
            "Optimiser": Fold("Optimiser", self.knobs[STEP], self.draws),
            "Start": Fold("Start", *knobs(START)),
            "Advanced": Fold("Advanced", *knobs(rest)),
            "Your own data": Fold("Your own data", self.text, self.use, self.file),
        }
        self.sidebar = [
            group("Network", self.preset, self.two, self.width, line=False),
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

    def show(self, setup: WaveSetup) -> None:
        """Set the widgets to a setup, without calling `on_change`."""
        self.setup, self.quiet = setup, True
        try:
            self.methods.value, self.two.value = list(setup.methods), setup.two
            self.width.param.update(value=setup.width, visible=not setup.two)
            self.band.value, self.noisy.value = round(100 * setup.probability), setup.noisy
            used = {name for method in setup.methods for name in used_by(method)}
            self.draws.param.update(value=setup.draws, visible="guide.width" in used)
            for name, made in self.knobs.items():
                made.visible = name in used
                set_value(made, all_knobs()[name], setup.value(name))
            self.methods.sx = dots(setup.methods)
            self.repulsion.visible = any(made.visible for made in self.repulsion[1:])
            self.folds["Advanced"].visible = any(made.visible for made in self.folds["Advanced"].body)
            self._say(setup)
            self.reset_data.disabled = setup.data == PAPER
            plain = replace(setup, steps=0, below=0, seed=0, data=PAPER)
            self.at = next((i for i, preset in enumerate(PRESETS) if preset["setup"] == plain), -1)
            self.preset.value = OWN if self.at < 0 else PRESETS[self.at]["name"]
            self.sentence = "" if self.at < 0 else PRESETS[self.at]["text"]
        finally:
            self.quiet = False

    def turn(self, name: str, value: Any) -> None:
        """Change a knob."""
        self.moved(knobs={**self.setup.knobs, name: value})

    def go(self, stop: dict) -> list[str]:
        """Open a stop of the tour."""
        self._preset(stop["name"])
        return []

    def _preset(self, name: str):
        found = [preset["setup"] for preset in PRESETS if preset["name"] == name]
        if found:
            fields = ("width", "methods", "draws", "seed", "probability", "noisy", "knobs", "two")
            self.moved(**{field: getattr(found[0], field) for field in fields})

    def _read(self, text: str | bytes, moved):
        try:
            points = read_points(text)
        except ValueError as error:
            self.on_refused(str(error))
            self.text.error_state |= isinstance(text, str)  # else it was a file
        else:
            self.text.error_state = False
            moved(data=points)
