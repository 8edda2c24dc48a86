"""What of a grid is looked at on page "Variance collapse": the quantity, its variant, and the x axis."""

from __future__ import annotations

from collections.abc import Callable

import panel_material_ui as pmui

from steinlab.pages.collapse.grid import QUANTITIES
from steinlab.ui.groups import CHOOSE
from steinlab.ui.job_bar import MIDDLE

AGAINST = {"against d": "dim", "against gamma": "gamma", "against n": "particles"}
CHOICE = {"size": "small", "variant": "outlined", "margin": (2, 4), "sx": CHOOSE, **MIDDLE}


class Looking:
    """Hold the choices over the chart.

    Args:
        on_look: on_look(quantity=...) or on_look(axis=...) is called with each choice.
    """

    def __init__(self, on_look: Callable[..., None]):
        self.tabs = pmui.RadioButtonGroup(options=list(dict.fromkeys(tab for tab, *_ in QUANTITIES.values())), **CHOICE)
        self.variant = pmui.RadioButtonGroup(options={}, **CHOICE)
        self.axes = pmui.RadioButtonGroup(options=AGAINST, **CHOICE)
        self.tabs.param.watch(lambda event: on_look(quantity=variants(event.new)[0]), "value")
        self.variant.param.watch(lambda event: on_look(quantity=event.new), "value")
        self.axes.param.watch(lambda event: on_look(axis=event.new), "value")
        self.panel = pmui.FlexBox(
            self.tabs, self.axes, self.variant, align_items="center", justify_content="space-between"
        )

    def show(self, quantity: str, axis: str) -> None:
        """Set the choices to what is shown."""
        tab = QUANTITIES[quantity][0]
        names = variants(tab)
        self.tabs.value, self.axes.value = tab, axis
        self.variant.param.update(
            options={QUANTITIES[name][2]: name for name in names}, value=quantity, visible=len(names) > 1
        )


def variants(tab: str) -> list[str]:
    """Return the quantities of a tab."""
    return [name for name, (of, *_) in QUANTITIES.items() if of == tab]
