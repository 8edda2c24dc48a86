"""Colours, markers and number formats that every figure of the app shares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import NamedTuple

from stein_core import METHODS

# Those of Okabe & Ito's colours that are visible on white and on black. On a stage forces are blue and vermilion.
COLOURS = ("#009E73", "#CC79A7", "#E69F00", "#0072B2", "#D55E00", "#56B4E9", "#999999")
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "star", "hex", "plus")
GREY = "#888888"
TICKS = (
    "const x = +tick.toPrecision(3); return x && Math.abs(x) < 1e-3 ? x.toExponential() : String(x)"  # 0.05, 20, 1e-7
)


class Look(NamedTuple):
    """What a series looks like. marker: Bokeh's name."""

    colour: str
    marker: str


PAIRS = [Look(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i in range(len(COLOURS) * len(MARKERS))]


def looks_of(methods: Sequence[str]) -> list[Look]:
    """Give each of a figure's series a look.

    Args:
        methods: the method of each series. The first series of a method has the look of its registry entry.

    Returns:
        A look for each. Series without one of their own take what is left: unused colours first, then unused pairs.
    """
    own = {i: Look(facts.colour, facts.marker) for i, name in enumerate(methods)
           if (facts := METHODS[name].facts).colour and name not in methods[:i]}  # fmt: skip
    colours, taken = {look.colour for look in own.values()}, set(own.values())
    fresh = [pair for pair in PAIRS[: len(COLOURS)] if pair.colour not in colours]
    rest = [pair for pair in PAIRS if pair not in taken and pair not in fresh]
    left = chain(fresh, *repeat(rest, 1 + len(methods) // len(rest)))
    return [own[i] if i in own else next(left) for i in range(len(methods))]
