"""Colours, markers and number formats that every figure of the app shares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

from bokeh.models import CategoricalColorMapper, GlyphRenderer, Model

from stein_core import METHODS
from steinlab.ui.theme import TOKENS, TYPE

# For series without a colour of their own, on a light page and on a dark one.
FREE = (
    ("#7A3E9D", "#C79BE3"),
    ("#8A5A00", "#E0B04C"),
    ("#2F6F4F", "#79C79F"),
    ("#A03050", "#F08CA8"),
    ("#2B3440", "#D5DBE3"),
)
COLOURS = tuple(light for light, _ in FREE)
MARKERS = ("triangle_pin", "square_pin", "hex_dot", "diamond_dot", "star_dot", "asterisk", "square_dot", "triangle_dot")
GREY = "#888888"
TICKS = (
    "const x = +tick.toPrecision(3); return x && Math.abs(x) < 1e-3 ? x.toExponential() : String(x)"  # 0.05, 20, 1e-7
)


class Look(NamedTuple):
    """What a series looks like. colour, dark: on a light page and on a dark one. marker: Bokeh's name."""

    colour: str
    dark: str
    marker: str


SPARE = [Look(*FREE[i % len(FREE)], MARKERS[(i + i // len(MARKERS)) % len(MARKERS)]) for i in range(32)]


def look_of(method: str) -> Look | None:
    """Return the look of a method's registry entry, None if it has none."""
    facts = METHODS[method].facts
    return Look(*facts.colour, facts.marker) if facts.colour else None


def looks_of(methods: Sequence[str]) -> list[Look]:
    """Give each of a figure's series a look.

    Args:
        methods: the method of each series.

    Returns:
        A look for each: the first series of a method has that of its registry entry, the others have spare ones.
    """
    spare = cycle(SPARE)
    return [(look_of(name) if name not in methods[:i] else None) or next(spare) for i, name in enumerate(methods)]


def pairs() -> dict[str, str]:
    """Return the colour on a dark page of every colour on a light one: methods, spare ones and forces."""
    methods = (look for name in METHODS if (look := look_of(name)))
    light, dark = TOKENS["light"], TOKENS["dark"]
    forces = {light[name]: dark[name] for name in ("attract", "repulse")}
    return {look.colour: look.dark for look in (*methods, *SPARE)} | forces | {GREY: GREY}


def mapper(dark: bool = False) -> CategoricalColorMapper:
    """Return what turns a column of light-page colours into those of the page: {"field": name, "transform": mapper}."""
    known = pairs()
    palette = [*known.values()] if dark else [*known]
    return CategoricalColorMapper(factors=[*known], palette=palette, nan_color=GREY)


NEUTRAL = "* { --active-border: #888888 }"  # the bar under the tool that is on; Bokeh's is blue


def dress(figure: Model, unit: int = 1) -> None:
    """Give a Bokeh figure the text sizes of the app, times `unit`, and nothing slanted."""
    axis, label = f"{TYPE['axis'] * unit}px", f"{TYPE['label'] * unit}px"
    figure.toolbar.stylesheets = [NEUTRAL]
    figure.title.text_font_size, figure.title.text_font_style = label, "bold"
    figure.axis.axis_label_text_font_style = "normal"
    figure.axis.axis_label_text_font_size, figure.axis.major_label_text_font_size = label, axis
    for legend in figure.legend:
        # Bokeh takes no notice of a size that is its own default, 13 px, and then Panel's theme has a larger one.
        legend.label_text_font_size, legend.border_line_color, legend.background_fill_color = label, None, None


def darken(figure: Model, dark: bool) -> None:
    """Give everything in a figure that has a method's or a force's colour the one of the dark page, or of the light."""
    known = pairs()
    for each in figure.select({"type": CategoricalColorMapper}):
        if each.factors == [*known]:
            each.palette = [*known.values()] if dark else [*known]
    swap = known if dark else {there: here for here, there in known.items()}
    for drawn in figure.select({"type": GlyphRenderer}):
        for glyph in (drawn.glyph, drawn.nonselection_glyph, drawn.selection_glyph, drawn.muted_glyph):
            if isinstance(glyph, Model):
                for name in ("line_color", "fill_color", "hatch_color", "text_color"):
                    value = getattr(glyph, name, None)
                    if isinstance(value, str) and value in swap:
                        setattr(glyph, name, swap[value])
