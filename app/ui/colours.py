"""Colours and number formats that every figure of the app shares."""

from __future__ import annotations

from collections.abc import Sequence

# Those of Okabe & Ito's colours that are visible on white and on black. On a stage forces are blue and vermilion.
COLOURS = ("#009E73", "#CC79A7", "#E69F00", "#0072B2", "#D55E00", "#56B4E9", "#999999")
GREY = "#888888"
TICKS = (
    "const x = +tick.toPrecision(3); return x && Math.abs(x) < 1e-3 ? x.toExponential() : String(x)"  # 0.05, 20, 1e-7
)
OWN_COLOURS = {"svgd": 0, "smi": 1, "annealed": 2}  # methods with the same colour on every page


def colours_of(methods: Sequence[str]) -> list[int]:
    """Choose an index of COLOURS for each series of a figure.

    The first series of a method in OWN_COLOURS gets the method's colour. All others get the remaining ones, in order.

    Args:
        methods: method of each series.

    Returns:
        Indices, to be taken modulo the number of COLOURS.
    """
    firsts = {name: i for i, name in reversed(list(enumerate(methods))) if name in OWN_COLOURS}
    taken = {OWN_COLOURS[name] for name in firsts}
    left = (i for i in range(len(methods) + len(OWN_COLOURS)) if i not in taken)
    return [OWN_COLOURS[name] if firsts.get(name) == i else next(left) for i, name in enumerate(methods)]
