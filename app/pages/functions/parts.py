"""Texts, presets and table of read-outs of page "Function space"."""

from __future__ import annotations

import csv
import html
import io
import math

from stein_core import METHODS
from steinlab.pages.functions.nuts import Sampled
from steinlab.pages.functions.seen import GRID, Line, exact, spread_of
from steinlab.pages.functions.setup import FunctionSetup
from steinlab.stage.training import Snapshot
from steinlab.ui.colours import GREY, looks_of

GAP = ((2.7, 0.0), (3.1, 0.0), (3.5, 0.0), (3.9, 0.0), (4.3, 0.0))
PRESETS = [
    {
        "name": "Different weights, same function",
        "setup": FunctionSetup(),
        "ask": "Different weights: do they make different functions?",
        "caption": "Between the data w-SVGD is sure of itself. f-SVGD doubts, as NUTS does.",
        "text": "Between the two blobs of data w-SVGD is almost certain. f-SVGD doubts there, as NUTS does (dotted).",
    },
    {
        "name": "Repulsion only in the gap",
        "setup": FunctionSetup(
            methods=("ensemble", "fsvgd"), handles=GAP, knobs={"target.on_rows": 0, "method.alpha": 5.0}
        ),
        "ask": "What if curves repel at the diamonds alone?",
        "caption": "f-SVGD's curves open at the diamonds.",
        "text": "Drag the diamonds under f-SVGD. Its curves open where they lie; the ensemble does not see them.",
    },
    {
        "name": "SSGE's prior is too wide",
        "setup": FunctionSetup(methods=("fsvgd",), knobs={"method.prior": "ssge"}),
        "ask": "How wide is the band with SSGE's prior?",
        "caption": "With SSGE's prior the band is several times too wide.",
        "text": "On the left, the band is several times as wide as the dashed one.",
    },
    {
        "name": "Theory and shortcut: fw-SVGD and h-SVGD",
        "setup": FunctionSetup(methods=("fw", "hybrid"), width=20),
        "ask": "Can weights keep their prior while functions repel?",
        "caption": "Both repel as functions and keep the prior of weights.",
        "text": "Both repel as functions and keep the prior of weights. Change the Jacobian.",
    },
    {
        "name": "Five classes: where do ensembles doubt?",
        "setup": FunctionSetup(
            ring=True,
            methods=("ensemble", "fw"),
            knobs={"method.jacobian": "shortcut", "method.link": "softmax"},
        ),
        "ask": "Where do ensembles of classifiers doubt?",
        "caption": "Colour is doubt: fw-SVGD has more of it far outside.",
        "text": "Colour is doubt. fw-SVGD has more of it far outside, but most far points get a certain answer.",
    },
]
NUTS, UNKNOWN = ("dotted", "NUTS, mean ± 2 sd"), ("dashed", "exact NNGP band, mean ± 2 sd")  # the one reference
MARKS = {
    False: (
        ("line", "mean"),
        ("pale", "1, 2 and 3 sd of the members"),
        ("thin line", "each member"),
        NUTS,
        UNKNOWN,
        ("full mark", "data"),
        ("pale", "inputs of the data (grey)"),
    ),
    True: (
        ("dark", "entropy (0 to ln 5), disagreement (0 to 0.4)"),
        ("thin line", "borders of each member's classes"),
        ("dashed", "circle: far points lie outside"),
        ("full mark", "training data"),
        ("pale", "histogram: test points; line: far points"),
    ),
}
HINT = {
    False: "Drag a diamond on the axis, or a data point. Double-click to add a diamond, press Delete to delete it.",
    True: "Drag a diamond in the plane. Double-click to add one, press Delete to delete it.",
}
HELP = (
    "NUTS samples the posterior of these networks. If it is not known, the exact band of the infinitely wide network "
    "(NNGP) is drawn, with the same prior and noise: f-SVGD's target, and an approximation. Disagreement "
    "is the standard deviation of a class probability between members, averaged over classes. AUROC is the "
    "probability that a far point scores higher than a test point; 0.5 is chance. "
)
KEYS = (
    "Keys: **Space** play or pause · **→** step · **R** train from scratch · **P** lecture · "
    "in the figure (Tab): **, .** choose a diamond, **arrows** move it, **Delete** takes it away"
)
CSS = """<style>table.space {border-collapse: collapse; width: 100%; font-size: 14px}
.space th {font-weight: 400; color: var(--mui-palette-text-secondary); text-align: right; vertical-align: bottom;
  line-height: 1.25; padding: 2px 6px; border-bottom: 1px solid var(--mui-palette-divider)}
.space td {text-align: right; white-space: nowrap; padding: 2px 6px; font-variant-numeric: tabular-nums; height: 22px}
.space th:first-child, .space td:first-child {text-align: left}
.space i {display: inline-block; width: 10px; height: 10px; margin-right: 6px}
.space-scroll {overflow-x: auto}
@media (max-width: 600px) {
  .space tbody {display: block} .space tr {display: grid; grid-template-columns: 1fr 1fr; padding: 6px 0;
    border-bottom: 1px solid var(--mui-palette-divider)}
  .space thead {display: none}
  .space td {text-align: left; padding: 2px 0; white-space: normal}
  .space td:first-child {grid-column: 1 / -1; font-weight: 600}
  .space td::before {content: attr(data-head) " "; color: var(--mui-palette-text-secondary)}
}</style>"""
TIPS = {
    "left": "mean sd of f over 0 to 1",
    "blobs": "mean sd of f where the data lie",
    "gap": "mean sd of f over 2.7 to 4.3",
    "right": "mean sd of f over 6.3 to 7",
    "attraction": "mean length of the attraction on a particle",
    "repulsion": "mean length of the repulsion on a particle",
    "steps/s": "steps a second of this method's own training time",
    "entropy, middle": "mean entropy at 50 points in the ring's middle, sd 0.63",
    "entropy, far": "mean entropy at 200 points, 11 to 30 from the middle; ln 5 is 1.61",
}


def table(picture: Snapshot, nuts: Sampled | None = None) -> str:
    """Return the read-outs as HTML: a row for each method, and on the regression the exact band's and NUTS's."""
    methods, ring = picture.methods, picture.setup.ring
    first = next(iter(methods.values()))
    of = {
        name: seen.numbers if ring else {f"sd, {k}": v for k, v in seen.spread.items()}
        for name, seen in methods.items()
    }
    heads = [*of[next(iter(methods))], "attraction", "repulsion", "steps/s"]
    rows = []
    for name, seen in methods.items():
        look = looks_of([name])[0]
        cells = [
            *(f"{v:.3g}" for v in of[name].values()),
            *map(short, seen.forces),
            f"{seen.rate:,.0f}" if seen.rate else "–",
        ]
        rows.append(_row(heads, METHODS[name].label, f"light-dark({look.colour}, {look.dark})", cells))
    if isinstance(first, Line):
        known = {"NUTS": nuts.sd} if nuts else {"exact NNGP": exact(*picture.setup.posterior())[1]}
        for label, sd in known.items():
            rows.append(_row(heads, label, GREY, [*(f"{v:.3g}" for v in spread_of(sd).values()), "", "", ""]))
    head = "".join(
        f'<th title="{html.escape(TIPS.get(text.removeprefix("sd, "), text))}">{html.escape(text)}</th>'
        for text in ("", *heads)
    )
    body = "".join(rows)
    return f'{CSS}<div class="space-scroll"><table class="space"><thead><tr>{head}</tr></thead>{body}</table></div>'


def short(value: float) -> str:
    """Return a length as a short text."""
    return "–" if math.isnan(value) else f"{value:.3g}"


def _row(heads: list[str], label: str, colour: str, cells: list[str]) -> str:
    named = "".join(f'<td data-head="{html.escape(head)}">{cell}</td>' for head, cell in zip(heads, cells))
    return f'<tr><td><i style="background: {colour}"></i>{html.escape(label)}</td>{named}</tr>'


def curves_file(picture: Snapshot | None) -> io.StringIO:
    """Return what is shown as a CSV file: mean and sd on the grid, or the numbers of each method on the ring."""
    out = io.StringIO()
    writer = csv.writer(out)
    for name, seen in (picture.methods if picture else {}).items():
        if isinstance(seen, Line):
            writer.writerow(["method", "step", "x", "mean", "sd", *(f"member {i}" for i in range(len(seen.curves)))])
            for x, mean, sd, *members in zip(GRID, seen.mean, seen.sd, *seen.curves):
                writer.writerow([name, seen.step, *(f"{v:.6g}" for v in (x, mean, sd, *members))])
        else:
            writer.writerow(["method", "step", *seen.numbers])
            writer.writerow([name, seen.step, *(f"{v:.6g}" for v in seen.numbers.values())])
    out.seek(0)
    return out
