"""A figure of page "Benchmarks" as SVG: a group of points for each row of a table, one a column."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stein_core.papers.tables import Figure
from steinlab.ui.colours import look_of

WIDTH, HEIGHT, LEFT, TOP, LOW = 760, 250, 62, 14, 34  # units of the drawing; margins
SHAPES = ('<circle r="5"/>', '<rect x="-4.5" y="-4.5" width="9" height="9"/>', '<path d="M0-6 6 5H-6Z"/>',
          '<path d="M0-6 5 0 0 6-5 0Z"/>')  # fmt: skip


def draw(figure: Figure, rows: Sequence[dict[str, Any]], dark: bool) -> str:
    """Return the figure, or "" if no row has its number."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if (value := row["numbers"].get(figure.metric)) is not None:
            found.setdefault((row["row"], row["column"]), []).append(value)
    truth = float(np.mean(found[figure.truth])) if figure.truth in found else math.nan
    groups = list(dict.fromkeys(row for row, column in found if column in figure.columns))
    groups = [row for row in groups if not figure.truth or row != figure.truth[0]]
    points = {at: (float(np.mean(v)), spread(v)) for at, v in found.items() if at[0] in groups}
    if not points:
        return ""
    ends = [value + side * error for value, error in points.values() for side in (-1, 1)]
    ends += [truth] * math.isfinite(truth)
    low, high = min(ends), max(ends)
    pad = 0.06 * (high - low) or 1.0
    y_at = lambda value: TOP + (HEIGHT - TOP - LOW) * (high + pad - value) / (high - low + 2 * pad)
    step = (WIDTH - LEFT - 10) / len(groups)
    parts = []
    for tick in ticks(low - pad, high + pad):
        y = y_at(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    if math.isfinite(truth):
        parts.append(f'<line class="truth" x1="{LEFT}" x2="{WIDTH}" y1="{y_at(truth):.1f}" y2="{y_at(truth):.1f}"/>')
    names = [name for name in figure.columns if any(column == name for _, column in points)]
    for i, group in enumerate(groups):
        x = LEFT + step * (i + 0.5)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 10}" text-anchor="middle">{html.escape(group)}</text>')
        for j, name in enumerate(names):
            if (group, name) in points:
                value, error = points[group, name]
                at = x + (j - (len(names) - 1) / 2) * min(22.0, 0.8 * step / len(names))
                parts.append(mark(figure, name, j, at, y_at(value), y_at(value - error) - y_at(value), dark))
    key = "".join(
        f'<span><svg width="16" height="16">{mark(figure, name, j, 8, 8, 0, dark)}</svg> {html.escape(name)}</span>'
        for j, name in enumerate(names)
    )
    title = html.escape(figure.title)
    return (
        f"<h2>{title}</h2><p class='key'>{key}<span>lines: one standard error</span></p><div class='scroll'>"
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">{"".join(parts)}'
        f'<text transform="translate(14 {HEIGHT / 2 - 10}) rotate(-90)" text-anchor="middle">{html.escape(figure.unit)}'
        "</text></svg></div>"
    )


def mark(figure: Figure, name: str, number: int, x: float, y: float, half: float, dark: bool) -> str:
    """Return one point with its error bar, in the colour of its method."""
    look = look_of(figure.columns[name])
    colour = look.dark if dark else look.colour
    bar = f'<line y1="{-half:.1f}" y2="{half:.1f}" stroke="{colour}" stroke-width="2"/>' if half > 0 else ""
    return f'<g transform="translate({x:.1f} {y:.1f})" fill="{colour}">{bar}{SHAPES[number % len(SHAPES)]}</g>'


def ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between two ends."""
    raw = (high - low) / 5
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= raw)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def spread(values: Sequence[float]) -> float:
    """Return the standard error, 0 of one value."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
