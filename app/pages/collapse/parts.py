"""Texts of page "Variance collapse"."""

from steinlab.pages.collapse.grid import PRESETS, QUANTITIES, shipped
from steinlab.ui.legend import legend

DAMAGED = "The file of the runs computed on this machine was damaged. It was set aside and a new one was started."
PRESS = "If points are missing, press the button above to compute them."
HINT = "Click a point to open its run."
MARKS = (
    ("line", "exact law"),
    ("dashed", "limit by Ba et al."),
    ("dotted", "joins points without a law"),
    ("pale mark", "shipped, {made}"),
    ("full mark", "computed here"),
    ("hollow mark", "not converged"),
    ("cross", "diverged"),
    ("bar", "± 1 sd over seeds (two seeds: both values)"),
)
GREY = {  # what is grey, by the tab
    "Variance": (("dash and dot", "exact variance"),),
    "Frobenius distance": (("dash and dot", "n exact draws"),),
    "Mean location": (("pale", "± 2 sd of the mean of n exact draws"),),
    "Stein trace": (("dash and dot", "exact draws of any target"),),
    "Near-orthogonality": (),
}


def legend_of(quantity: str) -> str:
    """Return the legend of a chart of this quantity."""
    marks = ((swatch, text.format(made=shipped()["made"])) for swatch, text in MARKS)
    return legend(*marks, *GREY[QUANTITIES[quantity][0]])


STOPS = [{**preset, "caption": preset["see"]} for preset in PRESETS]  # of the lecture
KEYS = "Key **P**: lecture."
