"""A switch that looks like a button with text."""

from __future__ import annotations

from collections.abc import Callable

import panel_material_ui as pmui

from steinlab.ui.job_bar import MIDDLE

LOOK = {
    "border": 0,
    "color": "var(--mui-palette-text-primary)",
    "fontSize": "15px",
    "gap": "6px",
    "minHeight": "36px",
    "padding": "4px 10px",
    "textTransform": "none",
    "& .MuiIcon-root, & .material-icons": {"fontSize": "1.1rem !important"},
}


def toggle(label: str, icon: str, on_change: Callable[[bool], None]) -> pmui.Toggle:
    """Return the switch; on_change is called with its new value."""
    made = pmui.Toggle(label=label, icon=icon, size="small", margin=(4, 4), sx=LOOK, **MIDDLE)
    made.param.watch(lambda event: on_change(event.new), "value")
    return made
