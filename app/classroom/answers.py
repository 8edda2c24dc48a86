"""What a class has answered, as its lecturer sees it."""

from __future__ import annotations

import html
import weakref
from io import StringIO
from pathlib import Path
from typing import ClassVar

import panel_material_ui as pmui
import param
from panel.custom import JSComponent

from steinlab.classroom.room import Room
from steinlab.server.messages import CheckedMessages, flag, whole
from steinlab.stage.stage import HERE as STAGE
from steinlab.ui.theme import script, variables

HERE = Path(__file__).parent
LISTED = 300  # answers in the list


class Gathered(CheckedMessages, JSComponent):
    """Draw the answers, and list them with a box each that hides one.

    Args:
        on_hide: on_hide(index, on).
    """

    told = param.Dict(default={}, doc="question, gathered, and listed: [name, answer, result or None, hidden] of each.")
    dark = param.Boolean(default=False)

    schemas = ({"hide": whole, "on": flag},)
    _esm = script(STAGE / "chart.js", HERE / "gather.js", HERE / "gathered.js")
    _stylesheets: ClassVar = [
        f":host {{ {variables('light')} }} :host(.dark) {{ {variables('dark')} }} "
        + "".join(path.read_text(encoding="utf-8") for path in (STAGE / "chart.css", HERE / "gathered.css"))
    ]

    def __init__(self, on_hide, **params):
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (4, 12), **params})
        self.on_hide = on_hide

    def handle_message(self, data) -> None:
        self.on_hide(data["hide"], data["on"])


class Answers:
    """Show the question that stands and what came, and let the lecturer freeze, reveal and download.

    Args:
        lecturer: whose class it is.

    Attributes:
        column: the component.
    """

    def __init__(self, lecturer):
        self.lecturer = weakref.proxy(lecturer)
        self.who: list[str] = []
        self.ask = pmui.Typography("", variant="h6", margin=(8, 12))
        self.gathered = Gathered(self.hide)
        small = {"size": "small", "variant": "outlined", "margin": (4, 4)}
        self.freeze = pmui.Button(label="Freeze", on_click=self._freeze, **small)
        self.reveal = pmui.Button(label="Reveal", on_click=self._reveal, **small)
        self.away = pmui.Button(label="Take away", on_click=lambda event: self.lecturer.room.close(), **small)
        self.number = pmui.FloatInput(label="Outcome, if you know it", value=None, width=190, margin=(4, 8))
        self.choice = pmui.Select(label="Right choice", options={"none": None}, width=190, margin=(4, 8))
        self.table = pmui.FileDownload(
            label="Answers as CSV", filename="answers.csv", size="small", variant="text", margin=(0, 8),
            callback=lambda: StringIO(self.lecturer.room.csv()),
        )  # fmt: skip
        self.parts = [self.ask, self.gathered, pmui.Row(self.number, self.choice)]
        self.buttons = pmui.Row(self.freeze, self.reveal, self.away, margin=(0, 8))
        self.column = pmui.Column(*self.parts, self.buttons, self.table, sizing_mode="stretch_width", margin=0)

    def show(self, room: Room) -> None:
        """Show what a class has answered."""
        question = room.question
        for part in (*self.parts, self.buttons):
            part.visible = question is not None
        self.table.visible = bool(room.answers or room.past)
        if question is None:
            self.who = []
            return
        answers = sorted(room.answers.values(), key=lambda one: one.hidden)[-LISTED:]
        self.who = [one.who for one in answers]
        self.ask.object = html.escape(question.ask)
        listed = [[one.name, question.words(one.value), one.result, one.hidden] for one in answers]
        facts = question.shown() | {"law": list(map(list, question.law))}
        told = {"question": facts, "gathered": room.gathered(), "listed": listed}
        self.gathered.param.update(told=told, dark=self.lecturer.shell.frame.dark_theme)
        self.gathered.css_classes = ["dark"] * self.gathered.dark
        self.freeze.label = "Take answers" if question.frozen else "Freeze"
        self.reveal.label = "Take back" if question.revealed else "Reveal"
        self.number.visible = not question.choices and not question.knob
        self.choice.visible = bool(question.choices) and not question.knob
        options = {"none": None, **{text: k for k, text in enumerate(question.choices)}}
        if self.choice.options != options:
            self.choice.param.update(options=options, value=None)

    def hide(self, index: int, on: bool) -> None:
        """Leave an answer out of what the class sees, or show it."""
        if index < len(self.who):
            self.lecturer.room.hide(self.who[index], on)
            self.lecturer.tick()

    def _freeze(self, event) -> None:
        if question := self.lecturer.room.question:
            self.lecturer.room.freeze(not question.frozen)
            self.lecturer.tick()

    def _reveal(self, event) -> None:
        if question := self.lecturer.room.question:
            outcome = self.choice.value if question.choices else self.number.value
            self.lecturer.reveal(not question.revealed, None if question.knob else outcome)
