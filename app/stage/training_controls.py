"""Base of the widgets of the training pages: methods, knobs and what a stop of the tour sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import panel_material_ui as pmui

from stein_core import METHODS
from steinlab.stage.training_setup import TrainingSetup
from steinlab.ui.groups import dots
from steinlab.ui.knob_widgets import WIDTH, set_value, widget


class TrainingControls:
    """Hold the widgets. A subclass makes more of them, and their groups.

    Attributes:
        presets: dicts of "name", "setup" and "text".
        carried: fields of the setup that a preset sets.
        plain: fields that a preset does not say, with their values.
        words: labels of knobs that differ from the knob's own.
        first: names of the knobs that come first.
        sidebar: the groups of widgets.
        at: index of the preset that is shown, or -1.
        sentence: what to see with the present settings, or "".

    Args:
        on_change: on_change(**fields) is called with the fields that the user has changed.
    """

    setups: type[TrainingSetup]
    presets: list[dict]
    carried: tuple[str, ...]
    plain: dict[str, Any]
    words: dict[str, str]
    first: tuple[str, ...] = ()

    def __init__(self, on_change: Callable[..., Any]):
        self.on_change, self.quiet = on_change, False
        self.setup, self.at, self.sentence = self.setups(), -1, ""
        self.methods = pmui.MultiChoice(
            label="Methods", options={METHODS[name].label: name for name in self.setups.shown()}, solid=False, **WIDTH
        )
        self.methods.param.watch(lambda event: self.moved(methods=tuple(event.new)), "value")
        known = self.setups.all_knobs()
        self.knobs = {name: widget(known[name], self.turn) for name in dict.fromkeys((*self.first, *known))}
        for name, label in self.words.items():
            self.knobs[name].label = label
        self.knobs["method.particles"].end = self.setups.most

    def moved(self, **change):
        """Tell the page what the user has changed; what the program sets is not told."""
        if not self.quiet:
            self.on_change(**change)

    def pick(self, names) -> list:
        """Return the widgets of knobs."""
        return [self.knobs[name] for name in names]

    def used(self, setup) -> set[str]:
        """Return the knobs that make a difference to the methods of a setup."""
        raise NotImplementedError

    def set(self, setup, used: set[str]) -> None:
        """Set the widgets of a subclass."""
        raise NotImplementedError

    def show(self, setup) -> None:
        """Set the widgets to a setup, without calling `on_change`."""
        self.setup, self.quiet = setup, True
        try:
            self.methods.param.update(value=list(setup.methods), sx=dots(setup.methods))
            used = self.used(setup)
            for name, made in self.knobs.items():
                made.visible = name in used
                set_value(made, self.setups.all_knobs()[name], setup.value(name))
            self.set(setup, used)
            plain = replace(setup, **self.plain)
            self.at = next((i for i, preset in enumerate(self.presets) if preset["setup"] == plain), -1)
            self.sentence = "" if self.at < 0 else self.presets[self.at]["text"]
        finally:
            self.quiet = False

    def turn(self, name: str, value: Any) -> None:
        """Change a knob."""
        self.moved(knobs={**self.setup.knobs, name: value})

    def go(self, stop: dict) -> list[str]:
        """Open a stop of the tour."""
        self.moved(**{field: getattr(stop["setup"], field) for field in self.carried})
        return []
