"""Where a lecturer writes a question."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui

from steinlab.classroom.runs import KNOBS
from steinlab.ui.groups import Fold
from steinlab.ui.knob_widgets import WIDTH

KINDS = {"Number": "number", "Choice": "choice", "A run each": "run"}
ONE_LINE = {"& .MuiToggleButton-root": {"whiteSpace": "nowrap", "textTransform": "none"}}
RUN = "Choose your own {}: how much of the variance will be left?"


class Asking:
    """Take the parts of a question.

    Args:
        put: put(facts) asks it, and returns what is wrong or "".
        page: () -> the page on screen, whose tour may have a question.

    Attributes:
        column: the component.
    """

    def __init__(self, put: Callable[[dict[str, Any]], str], page: Callable):
        self.put, self.page = put, page
        self.kind = pmui.RadioButtonGroup(options=KINDS, value="number", size="small", margin=(4, 12), sx=ONE_LINE)
        self.ask = pmui.TextAreaInput(label="Question", rows=2, auto_grow=True, max_length=200, **WIDTH)
        self.low = pmui.FloatInput(label="From", value=0.0, width=96, margin=(4, 8))
        self.high = pmui.FloatInput(label="To", value=1.0, width=96, margin=(4, 8))
        self.log = pmui.Checkbox(label="logarithmic", value=False, margin=(14, 4))
        self.axis = pmui.Row(self.low, self.high, self.log, margin=(0, 4))
        self.choices = pmui.TextAreaInput(label="Choices, one in a line", rows=3, visible=False, **WIDTH)
        self.knob = pmui.Select(
            label="Everybody sets", options={text: name for name, text in KNOBS.items()}, visible=False, **WIDTH
        )
        self.problem = pmui.Alert("", severity="warning", visible=False, margin=(4, 12))
        small = {"size": "small", "margin": (4, 8)}
        self.button = pmui.Button(label="Ask the class", variant="contained", on_click=self._put, **small)
        self.tour = pmui.Button(label="The tour's question", variant="text", on_click=self._from_tour, **small)
        self.kind.param.watch(self._turn, "value")
        self.knob.param.watch(self._turn, "value")
        self.column = Fold(
            "Ask",
            self.kind,
            self.ask,
            self.axis,
            self.choices,
            self.knob,
            self.problem,
            pmui.Row(self.button, self.tour),
            folded=False,
        )

    def _turn(self, event) -> None:
        kind = self.kind.value
        self.axis.visible, self.choices.visible, self.knob.visible = (kind == k for k in ("number", "choice", "run"))
        said = {RUN.format(text) for text in KNOBS.values()}
        if kind == "run" and (not self.ask.value or self.ask.value in said):
            self.ask.value = RUN.format(KNOBS[self.knob.value])
        elif self.ask.value in said:
            self.ask.value = ""

    def _from_tour(self, event) -> None:
        tour = getattr(self.page(), "tour", None)
        stop = tour.stops[tour.at] if tour and tour.at >= 0 else {}
        self.ask.value = html.unescape(re.sub("<[^>]*>", "", stop.get("ask", "")))
        self._say("" if self.ask.value else "This page shows no stop of its tour that has a question.")

    def _put(self, event) -> None:
        facts: dict[str, Any] = {"ask": self.ask.value or self.ask.value_input or ""}
        if self.kind.value == "number":
            facts |= {"low": self.low.value, "high": self.high.value, "log": self.log.value}
        elif self.kind.value == "choice":
            facts["choices"] = tuple((self.choices.value or "").splitlines())
            if len([text for text in facts["choices"] if text.strip()]) < 2:
                return self._say("Write two choices or more, one in a line.")
        else:
            facts["knob"] = self.knob.value
        self._say(self.put(facts))

    def _say(self, problem: str) -> None:
        self.problem.param.update(object=html.escape(problem), visible=bool(problem))
