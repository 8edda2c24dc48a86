"""Where a lecturer chooses which cards, numbers and knobs the class sees."""

from __future__ import annotations

import panel_material_ui as pmui

from steinlab.stage.seen import PARTS, knobs_of
from steinlab.ui.groups import Fold
from steinlab.ui.knob_widgets import CHIPS, WIDTH

LABELS = {"cards": "Cards", "numbers": "Numbers", "knobs": "Settings"}


class Showing:
    """Choose what the class sees of the page on screen. What is chosen is a part of that page's link.

    Attributes:
        column: the component.
    """

    def __init__(self):
        self.page, self.quiet = None, False
        self.boxes = {
            part: pmui.MultiChoice(label=LABELS[part], options={}, solid=False, sx=CHIPS, **WIDTH) for part in PARTS
        }
        for box in self.boxes.values():
            box.param.watch(self._chose, "value")
        every = pmui.Button(label="Show all", variant="text", size="small", margin=(0, 8), on_click=self._all)
        self.column = Fold("The class sees", *self.boxes.values(), every)

    def show(self, page) -> None:
        """Offer what this page has."""
        self.column.visible = hasattr(page, "see")
        if not self.column.visible:
            self.page = None
            return
        self.page, seen = page, dict(page.see)
        setup = page.session.shown()[0]
        cards = page.stage.scene.get("cards", [])
        metrics = {one["label"]: one["name"] for card in cards for one in card["metrics"]}
        offered = {
            "cards": {f"{k + 1}. {card['title']}": k for k, card in enumerate(cards)},
            "numbers": metrics,
            "knobs": {text: name for name, text in knobs_of(setup, setup.knobs)},
        }
        self.quiet = True
        for part, box in self.boxes.items():
            known = offered[part]
            value = [one for one in known.values() if part not in seen or one in seen[part]]
            box.param.update(options=known, value=value)
        self.quiet = False

    def _all(self, event) -> None:
        if self.page:
            self.page.see = ()
            self.show(self.page)

    def _chose(self, event) -> None:
        if not self.quiet and self.page:
            chosen = {part: box.value for part, box in self.boxes.items()}
            every = {part: list(box.options.values()) for part, box in self.boxes.items()}
            self.page.see = tuple((part, tuple(chosen[part])) for part in PARTS if chosen[part] != every[part])
