"""The settings of the page "Variance collapse": a widget for every field of a Grid, and for the methods' other knobs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Callable

import panel_material_ui as pmui

from app.collapse import Grid, other_knobs, text_of, value_of
from app.controls import WIDTH, place, widget
from stein_core import BANDWIDTHS, FORCE_SCALES, KERNELS, METHODS, TARGETS

CHOICE = {"size": "small", **WIDTH}
COST = "Resampled SVGD: a step is a whole round, and step s costs s steps of SVGD."


class Settings:
    """wished: hears the grid that the user's moves make; wrong: or why they make none."""

    def __init__(self, wished: Callable[[Grid], None], wrong: Callable[[str], None]):
        self.wished, self.wrong = wished, wrong
        self.grid, self.quiet = Grid(), False

        def several(label, registry):
            return pmui.MultiChoice(label=label, options={e.label: e.name for e in registry.entries()}, **WIDTH)

        def listed(label):
            return pmui.TextInput(label=label, placeholder="numbers with commas between", **CHOICE)

        targets = {e.label: e.name for e in TARGETS.listed() if e.facts.dims[0] < e.facts.dims[1]}
        self.inputs = {
            "methods": several("Methods", METHODS), "dims": listed("Dimensions"), "particles": listed("Particles n"),
            "alphas": listed("alpha"), "kernels": several("Kernels", KERNELS), "rules": several("Bandwidth rules", BANDWIDTHS),
            "force_scales": several("How SMI counts alpha", FORCE_SCALES), "seeds": listed("Seeds"),
            "target": pmui.Select(label="Target", options=targets, **CHOICE),
        }  # fmt: skip
        for made in self.inputs.values():
            made.param.watch(lambda event: self._moved({}), "value")
        knobs = other_knobs(tuple(METHODS), "gaussian", ("rbf",))
        self.others = {name: widget(knob, lambda name, value: self._moved({name: value})) for name, knob in knobs.items()}
        self.cost = pmui.Typography(COST, variant="caption", margin=(2, 10))
        column = pmui.Column(*self.others.values(), self.cost, sizing_mode="stretch_width", margin=0)
        self.more = pmui.Accordion(
            ("Other settings", column), title_variant="subtitle2", sizing_mode="stretch_width", margin=(4, 8), visible=False
        )
        order = [field.name for field in fields(Grid) if field.name in self.inputs and field.name != "methods"]
        self.widgets = [self.inputs["methods"], *(self.inputs[name] for name in order), self.more]

    def show(self, grid: Grid) -> None:
        """The widgets of a grid, without that counting as the user's wish."""
        self.grid, self.quiet = grid, True
        for name, made in self.inputs.items():
            value = getattr(grid, name)
            made.value = value if name == "target" else list(value) if isinstance(made, pmui.MultiChoice) else text_of(value)
        self.inputs["force_scales"].visible = "smi" in grid.methods
        here, chosen = other_knobs(grid.methods, grid.target, grid.kernels), dict(grid.knobs)
        for name, made in self.others.items():
            made.visible = name in here
            if name in here:
                place(made, here[name], chosen.get(name, here[name].default))
        self.cost.visible = "resampled" in grid.methods
        self.more.visible = bool(here)
        self.quiet = False

    def _moved(self, turned: dict[str, Any]):
        if self.quiet:
            return
        values = {name: made.value for name, made in self.inputs.items()}
        try:
            values = {name: value_of(name, v) if isinstance(v, str) else tuple(v) for name, v in values.items()}
            here = other_knobs(values["methods"], values["target"], values["kernels"])
            knobs = {name: v for name, v in (dict(self.grid.knobs) | turned).items() if name in here}
            grid = Grid(**values, knobs=tuple(knobs.items()))
        except ValueError as error:
            self.wrong(str(error))
        else:
            self.wished(grid)
