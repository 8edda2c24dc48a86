"""Groups of widgets in a sidebar: a hairline, a title, and for a group that folds a triangle and what is set in it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from urllib.parse import quote

import panel as pn
import panel_material_ui as pmui
import param

from steinlab.ui.colours import looks_of
from steinlab.ui.theme import TYPE

LINE = "1px solid var(--mui-palette-divider)"
TITLE = {"fontSize": TYPE["label"], "fontWeight": 700, "lineHeight": 1.4}
FLAT = {
    "boxShadow": "none",
    "background": "none",
    "borderTop": LINE,
    "margin": "0 !important",
    "&::before": {"display": "none"},
    "& .MuiAccordionSummary-root": {
        "flexDirection": "row-reverse",
        "gap": "8px",
        "minHeight": "40px !important",
        "padding": "0 8px",
    },
    "& .MuiAccordionSummary-content": {"margin": "8px 0 !important", "minWidth": 0},
    "& .MuiAccordionSummary-content .title": {"fontSize": TYPE["label"], "fontWeight": 400, "lineHeight": 1.4},
    "& .MuiAccordionSummary-content .state": {"color": "var(--mui-palette-text-secondary)", "marginLeft": "8px"},
    # A triangle that points to the title, and down when the group is open.
    "& .MuiAccordionSummary-expandIconWrapper": {
        "border": "4.5px solid transparent",
        "borderLeft": "7px solid currentColor",
        "borderRight": 0,
        "color": "var(--mui-palette-text-primary)",
    },
    "& .MuiAccordionSummary-expandIconWrapper svg": {"display": "none"},
    "& .MuiAccordionSummary-expandIconWrapper.Mui-expanded": {"transform": "rotate(90deg)"},
    "& .MuiAccordionDetails-root": {"padding": "0 0 8px 0"},
}
# Of buttons of which one is chosen: no row of filled toggles.
CHOSEN = {
    "background": "none !important",
    "boxShadow": "inset 0 -2px 0 var(--mui-palette-primary-main)",
    "color": "var(--mui-palette-text-primary) !important",
    "fontWeight": 600,
}
CHOOSE = {
    "flexWrap": "wrap",
    "& .MuiToggleButton-root": {
        "border": 0,
        "borderRadius": "4px !important",
        "color": "var(--mui-palette-text-secondary)",
        "minHeight": "36px",
        "padding": "4px 10px",
        "textTransform": "none",
        "whiteSpace": "nowrap",
        "width": "auto !important",
    },
    "& .MuiToggleButton-root[aria-pressed=true]": CHOSEN,  # Panel sets the style of .Mui-selected
}


SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 12 12">{}</svg>'
SHAPES = {  # of Bokeh's markers in a box of 12
    "circle": "M1 6a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z",
    "square": "M1.5 1.5H10.5V10.5H1.5Z",
    "diamond": "M6 0L11 6L6 12L1 6Z",
    "triangle": "M6 1L11.5 11H0.5Z",
    "inverted": "M6 11L11.5 1H0.5Z",
    "hex": "M6 0.5L11 3.3V8.7L6 11.5L1 8.7V3.3Z",
    "star": "M6 0.3L7.5 4.4L11.8 4.6L8.4 7.3L9.6 11.5L6 9L2.4 11.5L3.6 7.3L0.2 4.6L4.5 4.4Z",
    "plus": "M4.5 1H7.5V4.5H11V7.5H7.5V11H4.5V7.5H1V4.5H4.5Z",
    "cross": "M6 1V11M1 6H11",
    "x": "M2 2L10 10M10 2L2 10",
    "dash": "M1 6H11",
    "y": "M6 6V11.5M6 6L1.5 1.5M6 6L10.5 1.5",
    "asterisk": "M6 1V11M1.7 3.5L10.3 8.5M10.3 3.5L1.7 8.5",
}
CHIPS = {"& .MuiChip-root": {"borderColor": "var(--mui-palette-edge-main)"}}


def masks(marker: str) -> str:
    """Return a marker of Bokeh's as a CSS mask, 12 pixels wide."""
    base, _, inner = marker.partition("_")
    path = SHAPES.get(base, SHAPES["circle"])
    hole = '<circle cx="6" cy="6" r="1.7" fill="black"/>' * bool(inner)
    line = base in ("x", "cross", "asterisk", "dash", "y")
    paint = 'fill="none" stroke="white" stroke-width="2.2"' if line else 'fill="white"'
    drawn = f'<mask id="m"><path d="{path}" {paint}/>{hole}</mask><rect width="12" height="12" mask="url(#m)"/>'
    return f'url("data:image/svg+xml,{quote(SVG.format(drawn))}") center / 12px no-repeat'


def dots(methods: Sequence[str]) -> dict:
    """Return the style of a choice of several methods: the method's marker in its colour on each chip.

    Args:
        methods: the chosen ones, in order.
    """
    style = {"& .MuiChip-root": {**CHIPS["& .MuiChip-root"], "paddingLeft": "8px"}}
    shape = {"content": '""', "width": "12px", "height": "12px"}
    for i, look in enumerate(looks_of(methods), 1):
        fill = {"background": f"light-dark({look.colour}, {look.dark})", "mask": masks(look.marker)}
        style[f"& .MuiChip-root:nth-of-type({i})::before"] = {**shape, **fill}
    return style


def group(title: str, *widgets, line: bool = True) -> pmui.Column:
    """Return a group that is always open.

    Args:
        title: its name.
        widgets: what is in it.
        line: draw a hairline above it; the first one of a sidebar needs none.
    """
    head = pmui.Typography(
        html.escape(title), sx=TITLE, margin=(8 if line else 0, 8, 4, 8), sizing_mode="stretch_width"
    )
    sx = {"borderTop": LINE} if line else {}
    return pmui.Column(head, *widgets, sizing_mode="stretch_width", margin=(4 if line else 0, 0), sx=sx)


class Fold(pn.viewable.Viewer):
    """Show a group that opens and closes by a click or a key, and while it is closed says what is set in it.

    Args:
        title: its name.
        widgets: what is in it.
        state: what is set in it, "Adam, step 0.05"; `say` changes it.
        folded: whether it is closed at the start.
    """

    visible = param.Boolean(True)

    def __init__(self, title: str, *widgets, state: str = "", folded: bool = True, **params):
        super().__init__(**params)
        self.title, self.state = title, state
        self.body = pmui.Column(*widgets, sizing_mode="stretch_width", margin=0)
        self.fold = pmui.Accordion(
            (self._head(folded), self.body),
            active=[] if folded else [0],
            disable_gutters=True,
            elevation=0,
            sizing_mode="stretch_width",
            margin=0,
            square=True,
            visible=self.param.visible,
            sx=FLAT,
        )
        self.fold.param.watch(lambda event: self._show(), "active")

    def __panel__(self):
        return self.fold

    @property
    def folded(self) -> bool:
        """Whether it is closed."""
        return not self.fold.active

    @property
    def head(self) -> str:
        """What stands in its first line, as HTML."""
        return self.fold._names[0]

    def say(self, state: str) -> None:
        """Say what is set in it. An open group shows it when it is closed: nobody's slider is drawn anew meanwhile."""
        self.state = state
        if self.folded:
            self._show()

    def _show(self):
        if (head := self._head(self.folded)) != self.head:
            self.fold[0] = head, self.body

    def _head(self, folded: bool) -> str:
        said = f'<span class="state">{html.escape(self.state)}</span>' if folded and self.state else ""
        return f"<b>{html.escape(self.title)}</b> {said}"
