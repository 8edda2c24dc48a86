"""What stands around a figure: a sentence that says what to see, and a legend with a swatch for each kind of mark."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

import panel as pn

from stein_core import METHODS
from steinlab.ui.colours import look_of
from steinlab.ui.theme import TYPE

CSS = """
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 0; padding: 0; list-style: none; font-size: 13px;
  line-height: 1.6; color: var(--mui-palette-text-secondary, inherit); }
.legend svg { width: 24px; height: 14px; margin-right: 6px; vertical-align: -2px; overflow: visible; }
.legend li { white-space: nowrap; }
"""
_MARK = '<circle cx="12" cy="7" r="{r}" fill-opacity="{fill}" stroke-width="1.6"/>'
SWATCHES = {
    "line": '<path d="M0 7H24" stroke-width="2.5"/>',
    "thin line": '<path d="M0 7H24" stroke-width="1"/>',
    "dashed": '<path d="M0 7H24" stroke-width="1.6" stroke-dasharray="6 3"/>',
    "dotted": '<path d="M0 7H24" stroke-width="1.6" stroke-dasharray="1.5 3"/>',
    "dash and dot": '<path d="M0 7H24" stroke-width="1.8" stroke-dasharray="6 3 1.5 3"/>',
    "dark": '<rect width="24" height="14" stroke="none" fill-opacity="0.5"/>',
    "pale": '<rect width="24" height="14" stroke="none" fill-opacity="0.2"/>',
    "pale mark": _MARK.format(r=6, fill=0.3),
    "full mark": _MARK.format(r=4, fill=1),
    "hollow mark": _MARK.format(r=4.5, fill=0),
    "cross": '<path d="M8 3L16 11M16 3L8 11" stroke-width="1.8"/>',
    "bar": '<path d="M12 0V14" stroke-width="2"/>',
}


def legend(*items: tuple[str, str]) -> str:
    """Return a legend as HTML.

    Args:
        items: (name in SWATCHES, text) of each kind of mark, in order.
    """
    rows = (
        f'<li><svg viewBox="0 0 24 14" fill="currentColor" stroke="currentColor" aria-hidden="true">{SWATCHES[name]}'
        f"</svg>{html.escape(text)}</li>"
        for name, text in items
    )
    return f'<ul class="legend">{"".join(rows)}</ul>'


def legend_pane(items: Sequence[tuple[str, str]] = ()) -> pn.pane.HTML:
    """Return a component that shows a legend; set its `object` to another `legend(...)` to change it."""
    return pn.pane.HTML(legend(*items), stylesheets=[CSS], sizing_mode="stretch_width", margin=(2, 10))


def coloured(text: str) -> str:
    """Return a text as HTML, with the names of methods in their colours."""
    looks = {entry.label: look for entry in METHODS.entries() if (look := look_of(entry.name))}
    names = "|".join(map(re.escape, sorted(looks, key=len, reverse=True)))

    def painted(found: re.Match) -> str:
        look = looks[found[0]]
        return f'<b style="color: light-dark({look.colour}, {look.dark})">{found[0]}</b>'

    return re.sub(rf"\b(?:{names})\b", painted, html.escape(text, quote=False))


def sentence_pane() -> pn.pane.HTML:
    """Return a component for the sentence over a figure; set its `object` to a `coloured(text)`."""
    style = {"font-size": f"{TYPE['base']}px", "line-height": "1.4", "color": "var(--mui-palette-text-primary)"}
    return pn.pane.HTML("", styles=style, sizing_mode="stretch_width", margin=(4, 10))
