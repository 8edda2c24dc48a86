"""Widgets for every field of the FunctionSetup of page "Function space"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui

from steinlab.pages.functions.parts import PRESETS
from steinlab.pages.functions.setup import PANELS, PAPER, FunctionSetup, used_by
from steinlab.stage.training_controls import TrainingControls
from steinlab.ui.groups import CHOOSE, Fold, group
from steinlab.ui.knob_widgets import SELECT

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


class Controls(TrainingControls):
    """Hold the widgets."""

    setups, presets, words = FunctionSetup, PRESETS, WORDS
    carried = ("ring", "width", "methods", "seed", "knobs", "handles")
    plain = {"steps": 0, "seed": 0, "data": PAPER}

    def __init__(self, on_change: Callable[..., Any]):
        super().__init__(on_change)
        self.ring = pmui.RadioButtonGroup(
            options={"Regression": False, "Ring of classes": True},
            size="small",
            margin=(6, 8),
            variant="outlined",
            sx=CHOOSE,
        )
        self.ring.param.watch(lambda event: self._tab(event.new), "value")
        self.width = pmui.Select(label="Units of both hidden layers", options=WIDTHS, **SELECT)
        self.width.param.watch(lambda event: self.moved(width=event.new), "value")
        named = {name for names in (REPULSION, PRIOR, KERNEL, *FOLDS.values()) for name in names}
        rest = [name for name in self.knobs if name not in named]
        self.repulsion = group("Repulsion", *self.pick(REPULSION))
        self.space = group("Prior and estimator", *self.pick(PRIOR))
        self.folds = {"Kernel": Fold("Kernel", *self.pick(KERNEL))}
        self.folds |= {title: Fold(title, *self.pick(names)) for title, names in FOLDS.items()}
        if rest:
            self.folds["Advanced"] = Fold("Advanced", *self.pick(rest))
        self.sidebar = [
            group("Data and network", self.ring, self.width, line=False),
            group("Methods", self.methods),
            self.repulsion,
            self.space,
            *self.folds.values(),
        ]

    def used(self, setup: FunctionSetup) -> set[str]:
        return {name for method in setup.methods for name in used_by(method, setup.ring)}

    def set(self, setup: FunctionSetup, used: set[str]) -> None:
        self.methods.label, self.ring.value = f"Methods (1 to {PANELS[setup.ring]})", setup.ring
        self.width.param.update(options=sorted({*WIDTHS, setup.width}), value=setup.width)
        for part in (self.repulsion, self.space):
            part.visible = any(made.visible for made in part[1:])
        for fold in self.folds.values():
            fold.visible = any(made.visible for made in fold.body)
        self._say(setup)

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

    def _tab(self, ring: bool):
        self.moved(ring=ring, handles=(), methods=self.setup.methods[: PANELS[ring]])
