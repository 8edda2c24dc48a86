"""Colours and number formats that every figure of the app shares."""

from __future__ import annotations

from collections.abc import Sequence

# Okabe & Ito's colours that are seen on white and on black. On a stage blue and vermilion are the forces'.
COLOURS = ("#009E73", "#CC79A7", "#E69F00", "#0072B2", "#D55E00", "#56B4E9", "#999999")
GREY = "#888888"
TICKS = (
    "const x = +tick.toPrecision(3); return x && Math.abs(x) < 1e-3 ? x.toExponential() : String(x)"  # 0.05, 20, 1e-7
)
OWN_COLOURS = {"svgd": 0, "smi": 1, "annealed": 2}  # the same wherever they are shown


def colours_of(methods: Sequence[str]) -> list[int]:
    """An index of COLOURS for each of a picture's series, given their methods (from 7 on it counts as modulo 7): its own for
    the first series of a method that has one, those left for the others, in order."""
    firsts = {name: i for i, name in reversed(list(enumerate(methods))) if name in OWN_COLOURS}
    taken = {OWN_COLOURS[name] for name in firsts}
    left = (i for i in range(len(methods) + len(OWN_COLOURS)) if i not in taken)
    return [OWN_COLOURS[name] if firsts.get(name) == i else next(left) for i, name in enumerate(methods)]
