"""Make the widgets of knobs."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import panel as pn
import panel_material_ui as pmui
import param

from stein_core import Knob
from steinlab.server.limits import LIMITS

WIDTH = {"sizing_mode": "stretch_width", "margin": (4, 8)}
SELECT = {"size": "small", **WIDTH, "margin": (10, 8, 4, 8)}  # room for the label on its rim
CHIPS = {  # of a MultiChoice: outlined, for a filled button is what one presses
    "& .MuiChip-root": {
        "backgroundColor": "transparent",
        "border": "1px solid var(--mui-palette-edge-main)",
        "color": "var(--mui-palette-text-primary)",
        "fontSize": 15,
    },
    "& .MuiChip-deleteIcon": {"color": "var(--mui-palette-text-secondary) !important"},
}
PER_DECADE = 20  # stops of a logarithmic slider
LARGE = {"& *": {"fontSize": "28px !important"}, "& .MuiSlider-thumb": {"width": 32, "height": 32}}  # in a lecture
SHOWN = {"method.particles": LIMITS.particles, "method.step_size": (1e-3, 10.0), "method.alpha": (1e-3, 100.0)}


class NumberField(pn.viewable.Viewer):
    """Show a field for a whole number, with a button for less and one for more.

    Enter and leaving the field take what was typed. If that is not allowed, the field is marked and says why, and
    `value` does not change.
    """

    value = param.Integer()
    start = param.Integer(doc="the smallest allowed number")
    end = param.Integer(doc="the largest allowed number")
    step = param.Integer(1, doc="from one allowed number to the next")
    visible = param.Boolean(True)

    def __init__(self, label: str, **params):
        self.label = label
        self.text = pmui.TextInput(label=label, size="small", sizing_mode="stretch_width", margin=0)
        super().__init__(**params)
        small = {"size": "small", "margin": (4, 0, 0, 2), "width": 30, "height": 30}
        less = pmui.IconButton(
            icon="remove", description=f"Less: {label}", on_click=lambda event: self._move(-1), **small
        )
        more = pmui.IconButton(icon="add", description=f"More: {label}", on_click=lambda event: self._move(1), **small)
        self._row = pmui.Row(self.text, less, more, visible=self.param.visible, **{**WIDTH, "margin": SELECT["margin"]})
        self.text.param.watch(lambda event: self._take(event.new), "value")
        self.param.watch(lambda event: self._show(), "value", onlychanged=False)
        self._show()

    def __panel__(self):
        return self._row

    def check(self, text: str) -> int:
        """Return the number that a text says.

        Raises:
            ValueError: naming the field, the text and what is allowed.
        """
        value = Knob(self.label, self.start, self.start, self.end, "integer").check(text.strip())
        if (value - self.start) % self.step:
            raise ValueError(
                f"{self.label} = {value} is refused; allowed: {self.start}, {self.start + self.step} ... {self.end}."
            )
        return value

    def _take(self, text: str):
        if text == str(self.value):  # or the program has set it
            return self._show()
        try:
            self.value = self.check(text)
        except ValueError as error:
            self.text.param.update(error_state=True, helper_text=str(error))

    def _move(self, steps: int):
        self.value = min(max(self.value + steps * self.step, self.start), self.end)

    def _show(self):
        self.text.param.update(value=str(self.value), error_state=False, helper_text="")


def logarithmic(knob: Knob) -> list[float]:
    """Return the stops of a logarithmic slider: 20 a decade to three digits, and an exact zero for scale "log0"."""
    low, high = SHOWN.get(knob.name, (knob.low if knob.low > 0 else 1e-2, knob.high))
    count = int(round(PER_DECADE * np.log10(high / low))) + 1
    stops = [float(f"{v:.3g}") for v in np.geomspace(low, high, count)]
    return [0.0, *stops] if knob.scale == "log0" else stops


def widget(knob: Knob, on_knob: Callable[[str, Any], None], kit=pmui):
    """Make the widget of a knob.

    Args:
        knob: the knob.
        on_knob: on_knob(name, value) is called for each move.
        kit: module of the widget, panel_material_ui or panel.widgets.
    """
    label = knob.label or knob.name
    shared = {"label" if kit is pmui else "name": label, "value": knob.default, **WIDTH}
    if knob.choices is not None:
        options = {entry.label: entry.name for entry in knob.choices.entries()}
        made = kit.Select(options=options, description=knob.help, **{**shared, **(SELECT if kit is pmui else {})})
    elif knob.scale in ("log", "log0"):
        made = kit.DiscreteSlider(options=_stops(knob, knob.default), formatter="%.4g", **shared)
    elif knob.scale == "integer":
        made = kit.IntSlider(**_ends(knob), **shared)
    else:
        made = kit.FloatSlider(**_ends(knob), step=0.1, **shared)
    made.param.watch(lambda event: on_knob(knob.name, event.new), "value")
    return made


def set_value(made, knob: Knob, value: Any, ends: bool = False) -> None:
    """Show `value` on the widget of `knob`, even if it lies between two stops.

    Args:
        made: the widget.
        knob: its knob, or another one of that name.
        value: of the knob.
        ends: whether the slider also takes the ends of `knob`.
    """
    if knob.scale in ("log", "log0") and (ends or value not in made.options):
        made.param.update(options=_stops(knob, value), value=value)
    elif ends and knob.choices is None:
        made.param.update(value=value, **_ends(knob))
    elif made.value != value:
        made.value = min(value, made.end) if knob.scale == "integer" else value


def _ends(knob: Knob) -> dict[str, Any]:
    kind = int if knob.scale == "integer" else float
    return {"start": kind(knob.low), "end": kind(SHOWN.get(knob.name, knob.high))}


def _stops(knob: Knob, value: float) -> list[float]:
    return sorted({*logarithmic(knob), float(value)})
