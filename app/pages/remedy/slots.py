"""Five slots: the places in which a method may differ from SVGD, with the methods that fill each."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import panel as pn
import panel_material_ui as pmui

from stein_core import METHODS
from stein_core.contract.facts import SLOTS
from steinlab.stage.setup import PANELS
from steinlab.ui.colours import look_of

TITLES = {
    "kernel": "What the kernel sees",
    "metric": "Its metric",
    "forces": "Attraction and repulsion",
    "noise": "Noise",
    "front": "In front of the force",
}
PLAIN = {  # what stands there in SVGD
    "kernel": "k(x, y), of all coordinates",
    "metric": "(x − y)ᵀ (x − y)",
    "forces": "k s + α ∇k, with one kernel",
    "noise": "none",
    "front": "φ itself",
}
MARKS = {True: "moves the rest", False: "only the road"}
MOST = PANELS - 1  # beside SVGD
CSS = """<style>
.slot { font-size: 14px; line-height: 1.45; color: var(--mui-palette-text-secondary); }
.slot p { margin: 0 0 6px; padding-left: 8px; border-left: 3px solid transparent; }
.slot p.on { color: var(--mui-palette-text-primary); font-weight: 500; }
.slot i { font-style: normal; font-weight: 400; display: block; color: var(--mui-palette-text-secondary); }
</style>"""


def remedies() -> dict[str, list[str]]:
    """Return the methods that fill each slot."""
    return {slot: [e.name for e in METHODS.entries() if e.facts.slot == slot] for slot in SLOTS}


def unfit(methods: Sequence[str]) -> str:
    """Say what of these methods the page cannot show, or return ""."""
    known = [name for names in remedies().values() for name in names]
    strangers = [METHODS[name].label for name in methods[1:] if name not in known]
    if methods[0] != "svgd" or strangers:
        return f"This page shows SVGD and then methods of {', '.join(known)}; the run in the link was ignored."
    return ""


class Slots:
    """Choose up to two methods beside SVGD, by what they change.

    Args:
        chosen: called with the methods, SVGD first, after each choice of the user.
    """

    def __init__(self, chosen: Callable[[tuple[str, ...]], None], dark: bool):
        self._chosen, self.dark, self._quiet = chosen, dark, False
        self.methods: tuple[str, ...] = ("svgd",)
        self._boxes = {
            slot: pmui.CheckBoxGroup(
                label="",
                options={METHODS[name].label: name for name in names},
                size="small",
                margin=(0, 4),
                sizing_mode="stretch_width",
            )
            for slot, names in remedies().items()
        }
        self._lines = {slot: pn.pane.HTML("", margin=(2, 8), sizing_mode="stretch_width") for slot in SLOTS}
        for box in self._boxes.values():
            box.param.watch(self._moved, "value")
        cards = [
            pmui.Paper(
                pmui.Typography(TITLES[slot], variant="subtitle2", margin=(8, 8, 0, 8)),
                self._boxes[slot],
                self._lines[slot],
                elevation=0,
                variant="outlined",
                min_width=160,
                margin=4,
                styles={"flex": "1 1 160px"},
            )
            for slot in SLOTS
        ]
        self.row = pmui.FlexBox(*cards, sizing_mode="stretch_width", align_items="stretch", margin=(4, 0))

    def show(self, methods: Sequence[str]) -> None:
        """Set the boxes to these methods."""
        self.methods, self._quiet = tuple(methods), True
        for box in self._boxes.values():
            box.value = [name for name in methods if name in box.options.values()]
        self._quiet = False
        self.draw(self.dark)

    def draw(self, dark: bool) -> None:
        """Write the lines of the formula in the colours of the theme."""
        self.dark = dark
        for slot, pane in self._lines.items():
            here = [name for name in self.methods if METHODS[name].facts.slot == slot]
            pane.object = f'{CSS}<div class="slot">{"".join(map(self._line, here)) or f"<p>{PLAIN[slot]}</p>"}</div>'

    def _line(self, name: str) -> str:
        look, facts = look_of(name), METHODS[name].facts
        colour = look.dark if self.dark else look.colour
        mark = MARKS[facts.moves_rest]
        return f'<p class="on" style="border-color: {colour}">{html.escape(facts.formula)}<i>{mark}</i></p>'

    def _moved(self, event):
        if self._quiet:
            return
        now = [name for box in self._boxes.values() for name in box.value]
        before = [name for name in self.methods[1:] if name in now]
        wanted = before + [name for name in now if name not in before]
        if len(wanted) > MOST:
            left = METHODS[wanted[0]].label
            pn.state.notifications.info(f"{left} has left: {MOST} methods fit beside SVGD.")
        self._chosen(("svgd", *wanted[-MOST:]))
