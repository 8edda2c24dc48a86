"""Widgets for every field of a Grid of page "Variance collapse", and for the other knobs of its methods."""

from __future__ import annotations

import re
from typing import Any, Callable

import panel_material_ui as pmui

from stein_core import BANDWIDTHS, FORCE_SCALES, KERNELS, METHODS, TARGETS
from steinlab.pages.collapse.grid import Grid, other_knobs, text_of, value_of
from steinlab.ui.groups import CHIPS, Fold, dots, group
from steinlab.ui.knob_widgets import SELECT, WIDTH, set_value, widget

CHOICE = SELECT
COST = "A step of resampled SVGD is a whole round: step s costs as much as s steps of SVGD, at most 250."


class Settings:
    """Hold the widgets.

    Attributes:
        groups: the groups of the sidebar that they are in.

    Args:
        on_change: on_change(grid) is called with each new grid.
        on_problems: on_problems(sentences) is called instead if the fields make no grid, with all that is wrong.
    """

    def __init__(self, on_change: Callable[[Grid], None], on_problems: Callable[[list[str]], None]):
        self.on_change, self.on_problems = on_change, on_problems
        self.grid, self.quiet = Grid(), False
        self.pending: dict[str, Any] = {}  # changed other knobs, until the fields make a grid

        def several(label, registry):
            options = {e.label: e.name for e in registry.entries() if not getattr(e.facts, "functions", False)}
            return pmui.MultiChoice(label=label, options=options, solid=False, sx=CHIPS, **WIDTH)

        def listed(label):
            return pmui.TextInput(label=label, placeholder="numbers, with commas between them", **CHOICE)

        targets = {e.label: e.name for e in TARGETS.listed() if e.facts.dims[0] < e.facts.dims[1]}
        self.inputs = {
            "methods": several("Methods", METHODS),
            "dims": listed("Dimensions"),
            "particles": listed("Particles n"),
            "alphas": listed("alpha"),
            "kernels": several("Kernel", KERNELS),
            "rules": several("Reach of the kernel", BANDWIDTHS),
            "force_scales": several("Attraction: mean (paper) or sum (NumPyro)", FORCE_SCALES),
            "seeds": listed("Seeds"),
            "target": pmui.Select(label="Target", options=targets, **CHOICE),
        }
        for made in self.inputs.values():
            made.param.watch(lambda event: self._moved({}), "value")
        knobs = other_knobs(tuple(METHODS), "gaussian", ("rbf",))
        self.others = {
            name: widget(knob, lambda name, value: self._moved({name: value})) for name, knob in knobs.items()
        }
        self.cost = pmui.Typography(COST, variant="caption", margin=(2, 10))
        of = self.inputs
        self.where = Fold("Target and seeds", of["target"], of["seeds"])
        self.more = Fold("Other settings", of["force_scales"], *self.others.values(), self.cost, visible=False)
        self.groups = [
            group("Methods", of["methods"]),
            group("Dimensions and particles", of["dims"], of["particles"]),
            group("Repulsion", of["alphas"], of["kernels"], of["rules"]),
            self.where,
            self.more,
        ]

    def show(self, grid: Grid) -> None:
        """Set the widgets to a grid, without calling `on_change`."""
        self.grid, self.quiet, self.pending = grid, True, {}
        self._mark({})
        for name, made in self.inputs.items():
            value = getattr(grid, name)
            made.value = (
                value if name == "target" else list(value) if isinstance(made, pmui.MultiChoice) else text_of(value)
            )
        self.inputs["force_scales"].visible = any(
            knob.name == "force_scale" for method in grid.methods for knob in METHODS[method].knobs
        )
        here, chosen = other_knobs(grid.methods, grid.target, grid.kernels), dict(grid.knobs)
        for name, made in self.others.items():
            made.visible = name in here
            if name in here:
                set_value(made, here[name], chosen.get(name, here[name].default))
        self.cost.visible = any(METHODS[method].facts.rounds for method in grid.methods)
        self.more.visible = bool(here) or self.inputs["force_scales"].visible
        self.inputs["methods"].sx = dots(grid.methods)
        self.where.say(f"{TARGETS[grid.target].label}, {grid.seeds} seed{'s' * (grid.seeds > 1)}")
        forces = ", ".join(FORCE_SCALES[name].label for name in grid.force_scales)
        said = [f"{here[name].label} {text_of(value)}" for name, value in grid.knobs]
        self.more.say(", ".join([forces] * self.inputs["force_scales"].visible + said))
        self.quiet = False

    def _moved(self, changed: dict[str, Any]):
        if self.quiet:
            return
        self.pending |= changed
        values, problems = self._read()
        self._mark(problems)
        if problems:
            return self.on_problems(list(problems.values()))
        here = other_knobs(values["methods"], values["target"], values["kernels"])
        knobs = {name: v for name, v in (dict(self.grid.knobs) | self.pending).items() if name in here}
        try:
            grid = Grid(**values, knobs=knobs)
        except ValueError as error:  # each field is allowed, but together they are too much
            self.on_problems([str(error)])
        else:
            self.on_change(grid)

    def _read(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the value of each field by name, and a sentence for each field that is wrong."""
        values, problems = {}, {}
        for name, made in self.inputs.items():
            try:
                values[name] = value_of(name, made.value) if isinstance(made.value, str) else tuple(made.value)
            except ValueError as error:
                problems[name] = self._labelled(name, error)
        # Each field is tried alone in the smallest grid of these methods and this target.
        least = {"target": values["target"], "methods": values["methods"] or ("svgd",), "seeds": 1}
        least["dims"] = (TARGETS[values["target"]].facts.default_dim,)
        for name, value in values.items():
            try:
                Grid(**{**least, name: value})
            except ValueError as error:
                problems[name] = self._labelled(name, error)
        return values, problems

    def _labelled(self, name: str, error: ValueError) -> str:
        """Return the message with the field's label instead of its name."""
        return re.sub(
            rf"^(method\.)?{name.removesuffix('s')}s?(?=:| =)", lambda found: self.inputs[name].label, str(error)
        )

    def _mark(self, problems: dict[str, str]):
        for name, made in self.inputs.items():
            made.error_state = name in problems
