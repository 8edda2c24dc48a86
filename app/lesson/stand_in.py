"""What a lesson's figures and tables look like before their cells have run: shipped, for the default settings.

`python -m steinlab.keep` makes them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from functools import lru_cache
from secrets import token_hex
from typing import Any

import numpy as np
import panel as pn
from bokeh.document import Document
from bokeh.model import Model
from bokeh.models import ColumnDataSource, Plot

from steinlab.lesson.chart import HEIGHT, Chart, height_in, paint
from steinlab.lesson.live_stage import LiveStage
from steinlab.lesson.output import Output
from steinlab.lesson.reading import Lesson
from steinlab.server.folders import ASSETS
from steinlab.ui.text import Text

FILE = ASSETS / "lessons.json.gz"


def key_of(lesson: Lesson, index: int) -> str:
    """Return the key of a cell: it changes with the code of this cell and of those before it."""
    code = "\0".join(cell.source for cell in lesson.cells[: index + 1] if cell.code)
    return f"{lesson.key} {hashlib.sha256(code.encode()).hexdigest()[:16]}"


def kept_of(output: Any) -> dict[str, Any] | None:
    """Return what is kept of an output whose drawing is done, or None if nothing is."""
    if isinstance(output, Chart):
        if not len(output.figure):
            return None
        document, figure = Document(), output.figure[0].object
        for source in figure.select({"type": ColumnDataSource}):  # half as large, and seven digits are enough to see
            source.data = {name: brief(values) for name, values in source.data.items()}
        document.add_root(figure)
        return {"figure": json.dumps(document.to_json(deferred=False), separators=(",", ":"))}
    if not isinstance(output, Output) or isinstance(output, LiveStage):  # a stage has a picture of its own
        return None
    texts = [part.html for part in output if isinstance(part, Text)]
    return {"html": texts} if texts and len(texts) == len(output) else None


def brief(values: Any) -> Any:
    """Return arrays of floats in single precision, in lists too, and all else as it is."""
    if isinstance(values, list):
        return [brief(each) for each in values]
    return values.astype(np.float32) if isinstance(values, np.ndarray) and values.dtype == np.float64 else values


def stand_in(lesson: Lesson, index: int, dark: bool, window: int) -> list[pn.viewable.Viewable]:
    """Return components that look as a cell's output will, or none.

    Args:
        lesson, index: the cell.
        dark: whether the page is.
        window: its height in pixels.
    """
    kept = everything().get(key_of(lesson, index))
    if kept is None:
        return []
    if "html" in kept:
        return [Text(html=text, lesson=True, sizing_mode="stretch_width", margin=(4, 8)) for text in kept["html"]]
    return [pn.pane.Bokeh(figure_of(kept["figure"], dark, window), sizing_mode="stretch_width")]


def figure_of(kept: str, dark: bool, window: int) -> Model:
    """Return the figure that a document as JSON has, under names that no other document uses."""
    document = Document.from_json(json.loads(re.sub(r'"id":"(p\d+)"', rf'"id":"kept-{token_hex(8)}-\1"', kept)))
    figure = document.roots[0]
    document.remove_root(figure)
    for plot in figure.select({"type": Plot}):
        if plot.height == HEIGHT:
            plot.height = height_in(window)
    paint(figure, dark)
    return figure


@lru_cache(maxsize=1)
def everything() -> dict[str, dict[str, Any]]:
    """Return what is kept, by key."""
    if not FILE.exists():
        return {}
    with gzip.open(FILE, "rt", encoding="utf-8") as file:
        return json.load(file)
