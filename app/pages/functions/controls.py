"""Widgets for every field of the FunctionSetup of page "Function space"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import panel_material_ui as pmui

from app.pages.functions.parts import OWN, PRESETS
from app.pages.functions.setup import MOST, PANELS, PAPER, FunctionSetup, all_knobs, shown, used_by
from app.ui.groups import CHOOSE, Fold, dots, group
from app.ui.knob_widgets import SELECT, WIDTH, set_value, widget
from stein_core import METHODS

WIDTHS = [10, 20, 50]
REPULSION = ("method.alpha", "target.on_rows", "method.jacobian", "method.link", "method.particles")
PRIOR = ("method.prior", "method.function_estimator", "method.estimator")
KERNEL = ("bandwidth.factor", "bandwidth.rule", "kernel.name")
FOLDS = {
    "Annealing and noise": (
        "method.schedule",
        "method.horizon",
        "method.power",
        "method.cycles",
        "method.added_noise",
    ),
    "Model": ("target.noise", "target.prior_scale"),
    "Optimiser": ("method.step_size", "method.fade", "method.floor"),
    "Start": ("init.spread",),
}
WORDS = {
    "method.alpha": "alpha, weight of the repulsion",
    "method.step_size": "learning rate",
    "target.on_rows": "repel at the data too",
    "method.function_estimator": "estimator, of f-SVGD",
    "method.estimator": "estimator, of Wasserstein descent",
}


class Controls:
    """Hold the widgets.

    Attributes:
        sidebar: their groups.
        at: index of the preset that is shown, or -1.
        sentence: what to see with the present settings, or "".

    Args:
        on_change: on_change(**fields) is called with the fields that the user has changed.
    """

    def __init__(self, on_change: Callable[..., Any]):
        self.quiet = False

        def moved(**change):
            if not self.quiet:
                on_change(**change)

        self.setup, self.at, self.sentence, self.moved = FunctionSetup(), -1, "", moved
        self.preset = pmui.Select(
            label="Presets", options=[OWN, *(preset["name"] for preset in PRESETS)], size="small", **WIDTH
        )
        self.preset.param.watch(lambda event: self._preset(event.new), "value")
        self.ring = pmui.RadioButtonGroup(
            options={"Regression": False, "Ring of classes": True},
            size="small",
            margin=(6, 8),
            variant="outlined",
            sx=CHOOSE,
        )
        self.ring.param.watch(lambda event: self._tab(event.new, moved), "value")
        self.methods = pmui.MultiChoice(
            label="Methods", options={METHODS[name].label: name for name in shown()}, solid=False, **WIDTH
        )
        self.methods.param.watch(lambda event: moved(methods=tuple(event.new)), "value")
        self.width = pmui.Select(label="Units of both hidden layers", options=WIDTHS, **SELECT)
        self.width.param.watch(lambda event: moved(width=event.new), "value")
        self.knobs = {name: widget(knob, self.turn) for name, knob in all_knobs().items()}
        for name, label in WORDS.items():
            self.knobs[name].label = label
        self.knobs["method.particles"].end = MOST
        named = {name for names in (REPULSION, PRIOR, KERNEL, *FOLDS.values()) for name in names}
        rest = [name for name in self.knobs if name not in named]
        pick = lambda names: [self.knobs[name] for name in names]  # noqa: E731
        self.repulsion = group("Repulsion", *pick(REPULSION))
        self.space = group("Prior and estimator", *pick(PRIOR))
        self.folds = {"Kernel": Fold("Kernel", *pick(KERNEL))}
        self.folds |= {title: Fold(title, *pick(names)) for title, names in FOLDS.items()}
        if rest:
            self.folds["Advanced"] = Fold("Advanced", *pick(rest))
        self.sidebar = [
            group("Data and network", self.preset, self.ring, self.width, line=False),
            group("Methods", self.methods),
            self.repulsion,
            self.space,
            *self.folds.values(),
        ]

    def show(self, setup: FunctionSetup) -> None:
        """Set the widgets to a setup, without calling `on_change`."""
        self.setup, self.quiet = setup, True
        try:
            self.methods.param.update(value=list(setup.methods), label=f"Methods (1 to {PANELS[setup.ring]})")
            self.ring.value = setup.ring
            self.width.param.update(options=sorted({*WIDTHS, setup.width}), value=setup.width)
            used = {name for method in setup.methods for name in used_by(method, setup.ring)}
            for name, made in self.knobs.items():
                made.visible = name in used
                set_value(made, all_knobs()[name], setup.value(name))
            self.methods.sx = dots(setup.methods)
            for part in (self.repulsion, self.space):
                part.visible = any(made.visible for made in part[1:])
            for fold in self.folds.values():
                fold.visible = any(made.visible for made in fold.body)
            self._say(setup)
            plain = replace(setup, steps=0, seed=0, data=PAPER)
            self.at = next((i for i, preset in enumerate(PRESETS) if preset["setup"] == plain), -1)
            self.preset.value = OWN if self.at < 0 else PRESETS[self.at]["name"]
            self.sentence = "" if self.at < 0 else PRESETS[self.at]["text"]
        finally:
            self.quiet = False

    def _say(self, setup: FunctionSetup):
        """Say in the head of each folded group what is set in it."""
        value = setup.value
        self.folds["Kernel"].say(f"{value('kernel.name')}, factor {value('bandwidth.factor'):g}")
        schedule, added = value("method.schedule"), value("method.added_noise")
        said = [f"{schedule}, {value('method.horizon'):g} steps"] * (schedule != "none")
        said += [f"noise {added}"] * (added != "none")
        self.folds["Annealing and noise"].say(", ".join(said) or "none")
        noise = "" if setup.ring else f"noise {value('target.noise'):g}, "
        self.folds["Model"].say(f"{noise}prior {value('target.prior_scale'):g}")
        self.folds["Optimiser"].say(f"Adam, rate {value('method.step_size'):g}")
        self.folds["Start"].say(f"spread {value('init.spread'):g}")

    def _tab(self, ring: bool, moved):
        kept = self.setup.methods[: PANELS[ring]]
        moved(ring=ring, handles=(), methods=kept)

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
            fields = ("ring", "width", "methods", "seed", "knobs", "handles")
            self.moved(**{field: getattr(found[0], field) for field in fields})
