"""A figure of a lesson for a page without Python: drawn before, at several places of each of its controls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from bokeh.core.serialization import Serializer
from bokeh.document import Document
from bokeh.model import Model
from bokeh.models import ColumnDataSource
from bokeh.themes import Theme

from steinlab.lesson.bokeh_update import take_over
from steinlab.lesson.chart import Chart, paint, rendered
from steinlab.lesson.dials import stops
from steinlab.lesson.stand_in import brief
from steinlab.ui.theme import FONT, TOKENS

PLACES = {0: 1, 1: 21, 2: 7}  # of each control, by how many there are


@dataclass(frozen=True)
class Control:
    """Hold a control of a figure. values: where it was drawn. start: which of them is shown at first."""

    name: str
    label: str
    values: tuple
    start: int
    slider: bool

    def facts(self) -> dict[str, Any]:
        """Return what the page shows."""
        texts = [f"{value:.4g}" if isinstance(value, (int, float)) else str(value) for value in self.values]
        return {"name": self.name, "label": self.label, "texts": texts, "start": self.start, "slider": self.slider}


def controls_of(chart: Chart) -> tuple[Control, ...]:
    """Return the controls of a figure, with the places at which it is drawn: its ends and its first one too."""
    made, most = [], PLACES.get(len(chart.controls), 5)
    for name, widget in chart.controls.items():
        allowed, slider = stops(widget), isinstance(widget.value, (int, float))
        at = min(range(len(allowed)), key=lambda k: abs(allowed[k] - widget.value)) if slider else 0
        if slider:
            allowed[at] = widget.value
        chosen = range(len(allowed)) if not slider else spread(len(allowed), at, most)
        values = tuple(allowed[k] for k in chosen)
        made.append(Control(name, getattr(widget, "label", "") or widget.name, values, [*chosen].index(at), slider))
    return tuple(made)


def spread(count: int, start: int, most: int) -> list[int]:
    """Return at most `most` of `count` places in order, evenly apart; the ends and `start` are among them."""
    if count <= most:
        return [*range(count)]
    found = {round(k) for k in np.linspace(0, count - 1, most)}
    return sorted(found - {min(found - {0, count - 1}, key=lambda k: abs(k - start))} | {start})


def theme(name: str) -> Theme:
    """Return the look of the figures on a page of the site."""
    c = TOKENS[name]
    text = {"text_color": c["muted"], "text_font": FONT}
    axis = {f"{part}_{key}": value for part in ("axis_label", "major_label") for key, value in text.items()}
    lines = {f"{part}_line_color": c["edge"] for part in ("axis", "major_tick")} | {"minor_tick_line_color": None}
    clear = {"background_fill_color": None, "border_fill_color": None, "outline_line_color": c["line"]}
    return Theme(
        json={
            "attrs": {
                "Plot": clear,
                "Axis": axis | lines,
                "Grid": {"grid_line_color": c["line"]},
                "Title": {"text_color": c["ink"], "text_font": FONT},
                "Legend": {"label_text_color": c["ink"], "label_text_font": FONT},
            }
        }
    )


def drawings(chart: Chart, controls: tuple[Control, ...]) -> Iterator[Any]:
    """Yield what a page needs: first the figure in both themes, then what changes for each place of its controls.

    Args:
        chart: a figure of a lesson.
        controls: of `controls_of`; the last one turns fastest.

    Raises:
        ValueError: the figure has other parts at one of its places.
    """
    places = [
        dict(zip((one.name for one in controls), values)) for values in product(*(one.values for one in controls))
    ]
    start = {one.name: one.values[one.start] for one in controls}
    base = rendered(chart.draw(**start), chart.equal)
    for source in base.select({"type": ColumnDataSource}):
        source.data = {name: brief(values) for name, values in source.data.items()}
    document = Document()
    document.add_root(base)
    yield {name: themed(document, name) for name in ("light", "dark")}
    now: dict[tuple[str, str], Any] = {}
    document.on_change(lambda event: now.update({(event.model.id, event.attr): getattr(event.model, event.attr)}))
    changes = []
    for values in (*places, start):
        if not take_over(base, rendered(chart.draw(**values), chart.equal)):
            raise ValueError(f"A figure has other parts at {values}; allowed on a site: the same parts everywhere.")
        changes.append(dict(now))
    known = frozenset(document.models)
    for change in changes[:-1]:  # what changes at a later place only is as at the start
        yield [event(known, *key, value) for key, value in {**changes[-1], **change}.items()]


def themed(document: Document, name: str) -> dict[str, Any]:
    """Return a document as JSON, in the light or the dark theme."""
    document.theme = theme(name)
    paint(document.roots[0], name == "dark")
    made = document.to_json(deferred=False)
    paint(document.roots[0], False)
    return {**made, "defs": []}  # the classes of Panel, which no figure has


def event(known: frozenset[Model], model: str, name: str, value: Any) -> dict[str, Any]:
    """Return a change as Bokeh's scripts read it. known: the models that are there."""
    if name == "data":
        value = {column: brief(values) for column, values in value.items()}
    new = Serializer(references=known, deferred=False).encode(value)
    return {"kind": "ModelChanged", "model": {"id": model}, "attr": name, "new": new}
