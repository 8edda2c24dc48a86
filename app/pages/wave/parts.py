"""Texts, presets, file input and table of read-outs of page "1-D wave"."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Sequence

import numpy as np

from stein_core import METHODS
from stein_core.targets.wave import GRID
from steinlab.pages.wave.measures import Readout
from steinlab.pages.wave.nuts import AGREE, Compared
from steinlab.pages.wave.setup import STEPS, WaveSetup
from steinlab.stage.training import Snapshot
from steinlab.ui.colours import GREY, Look, looks_of

NUTS = Look(GREY, GREY, "x")
PRESETS = [
    {
        "name": "Five hidden units, 100 draws",
        "setup": WaveSetup(),
        "ask": "Between the clusters: which method doubts?",
        "caption": "SVGD's band is narrow between the clusters, SMI's is wide.",
        "text": "Between the clusters SVGD's band is narrow, and SMI's is nearly as wide as NUTS's (dashed). But it "
        "lies lower: SMI's five guides stay with curves that rise late, and most of NUTS's rise early.",
    },
    {
        "name": "A hundred hidden units, 10 draws",
        "setup": WaveSetup(width=100, draws=10),
        "ask": "What happens with a hundred hidden units?",
        "caption": "With a hundred hidden units SVGD's band closes.",
        "text": "10,301 weights train slowly. See SVGD's band close between the clusters.",
    },
    {
        "name": "Both networks, one below the other",
        "setup": WaveSetup(two=True),
        "ask": "Five units or a hundred: which doubts more?",
        "caption": "Five hidden units above, a hundred below.",
        "text": "The small network is above the large one. Compare SVGD's bands.",
    },
    {
        "name": "All six methods",
        "setup": WaveSetup(methods=("svgd", "annealed", "smi", "vi", "map", "ensemble")),
        "ask": "Where does an ensemble's band come from?",
        "caption": "MAP has no band. The ensemble's is the spread of its start.",
        "text": "MAP has no band. The ensemble's is only the spread of its start.",
    },
]
HINT = "Click to add a point, drag it to move it, press Delete to delete it."
MARKS = (
    ("line", "mean"),
    ("dark", "50 % band"),
    ("pale", "chosen band"),
    ("thin line", "each particle"),
    ("pale", "clusters of data (grey)"),
    ("dashed", "NUTS"),
    ("dotted", "chains of NUTS that disagree"),
)
WIDTHS_HINT = (
    "The figure shows the mean width of the 90 % band of f between the clusters. MAP is not shown: its band has width "
    "0, and the axis is logarithmic. "
)
WIDTH_MARKS = (
    ("full mark", "trained here, at its last step"),
    ("pale mark", f"shipped sweep, {STEPS:,} steps"),
    ("bar", "± 1 sd over seeds"),
    ("cross", "NUTS"),
)
HELP = (
    "The band of f shows where the curve may be; the band of y adds the noise of a new observation. The table is about "
    "the paper's wave, whatever your data; hover a column's name to see what it is."
)
KEYS = (
    "Keys: **Space** play or pause · **→** step · **R** train from scratch · **P** lecture · "
    "in the figure (Tab): **← →** select a point"
)
# (head of a column, where its test points lie) of each of WAVE_REGIONS.
REGION_TEXTS = (("inside", "inside the clusters"), ("between", "between the clusters"), ("everywhere", "everywhere"))
CSS = """<style>table.wave {border-collapse: collapse; width: 100%; font-size: 14px}
.wave th {font-weight: 400; color: var(--mui-palette-text-secondary); text-align: right; vertical-align: bottom;
  line-height: 1.25; padding: 2px 6px;
  border-bottom: 1px solid var(--mui-palette-divider)}
.wave td {text-align: right; white-space: nowrap; padding: 2px 6px; font-variant-numeric: tabular-nums; height: 22px}
.wave th:first-child, .wave td:first-child {text-align: left}
.wave i {display: inline-block; width: 10px; height: 10px; margin-right: 6px}
.scroll {overflow-x: auto}
@media (max-width: 600px) {
  .wave tbody {display: block} .wave tr {display: grid; grid-template-columns: 1fr 1fr; padding: 6px 0;
    border-bottom: 1px solid var(--mui-palette-divider)}
  .wave thead {display: none}
  .wave td {text-align: left; padding: 2px 0; white-space: normal}
  .wave td:first-child {grid-column: 1 / -1; font-weight: 600}
  .wave td::before {content: attr(data-head) " "; color: var(--mui-palette-text-secondary)}
}</style>"""


def table(pictures: Sequence[Snapshot | None], nuts: Sequence[Compared | None], more: bool = False) -> str:
    """Return read-outs as HTML: network by network, a row for each method, NUTS last.

    Args:
        pictures: what each network shows, None before its first frame.
        nuts: what is known of NUTS for each network.
        more: the rest of the columns, else the three that say whether a band can be trusted.
    """
    first = next(picture for picture in pictures if picture).setup
    columns = (further if more else answers)(f"{100 * first.probability:.0f}\u00a0%")
    rows = []
    for picture, known in zip(pictures, nuts):
        where = f", h = {picture.setup.width}" if picture and len(pictures) > 1 else ""
        truth = known.readout.between if known else float("nan")
        for name, seen in picture.methods.items() if picture else ():
            look = looks_of([name])[0]
            rows.append(_row(columns, METHODS[name].label + where, look, seen.readout, truth, seen.rate))
        if known:
            rows.append(_row(columns, f"NUTS{where}", NUTS, known.readout, truth, None))
    heads = [("", ""), *((head, tip) for head, tip, _ in columns)]
    head = "".join(f'<th title="{html.escape(tip)}">{html.escape(text)}</th>' for text, tip in heads)
    return f'{CSS}<div class="scroll"><table class="wave"><thead><tr>{head}</tr></thead>{"".join(rows)}</table></div>'


# head, what the pointer shows, (readout, NUTS's width, rate) -> cell
Column = tuple[str, str, Callable[[Readout, float, float | None], str]]


def answers(percent: str) -> list[Column]:
    """Return the columns that say whether a band can be trusted."""
    return [
        ("width of the band", f"mean width of the {percent} band of f between the clusters", _between),
        ("relative to NUTS", "mean width between the clusters, divided by that of NUTS", _relative),
        (
            "points inside",
            f"share of 120 observations of the wave that lie within the {percent} band of y",
            lambda readout, truth, rate: f"{100 * readout.coverage:.0f} %",
        ),
    ]


def further(percent: str) -> list[Column]:
    """Return the other columns."""
    lppd = [
        (
            f"LPPD, {text}",
            f"log predictive density of the wave's test points {where}; higher is better",
            lambda readout, truth, rate, i=i: number(readout.lppd[i]),
        )
        for i, (text, where) in enumerate(REGION_TEXTS)
    ]
    return [
        *lppd,
        (
            "width inside",
            f"mean width of the {percent} band of f inside the clusters",
            lambda readout, truth, rate: f"{readout.inside:.3g}",
        ),
        (
            "steps/s",
            "steps a second of this method's own training time",
            lambda readout, truth, rate: "" if rate is None else f"{rate:,.0f}" if rate else "–",
        ),
    ]


def _between(readout: Readout, truth: float, rate: float | None) -> str:
    return f"{readout.between:.3g}"


def _relative(readout: Readout, truth: float, rate: float | None) -> str:
    return f"{readout.between / truth:.2f}" if np.isfinite(truth) else "–"


def _row(columns: list[Column], label: str, look: Look, readout: Readout, truth: float, rate: float | None) -> str:
    swatch = f'<td><i style="background: light-dark({look.colour}, {look.dark})"></i>{html.escape(label)}</td>'
    cells = (f'<td data-head="{html.escape(head)}">{cell(readout, truth, rate)}</td>' for head, _, cell in columns)
    return f"<tr>{swatch}{''.join(cells)}</tr>"


def number(value: float) -> str:
    """Return a log density as a short text; very low ones in powers of ten."""
    text = f"{value:,.1f}" if abs(value) < 1e4 else f"{value:.1e}".replace("e+0", "e")
    return text.replace("-", "−")


def nuts_sentence(nuts: Compared | None, setup: WaveSetup) -> str:
    """Return a sentence about the NUTS band, or about why there is none."""
    if nuts is None:
        plain = WaveSetup()
        if setup.posterior()[1:] != plain.posterior()[1:]:
            changed = [
                text
                for text, now, usual in zip(("noise", "prior", "data"), setup.posterior()[1:], plain.posterior()[1:])
                if now != usual
            ]
            verb = "differs" if len(changed) == 1 and changed != ["data"] else "differ"
            return f"No NUTS band: the {' and '.join(changed)} {verb} from the shipped reference's."
        return f"No NUTS band: none is shipped for width {setup.width}."
    about, where = nuts.about, nuts.disagree
    text = (
        f"NUTS, {about['chains']} chains of {about['samples']:,} draws ({about['made']}): R-hat of f at most "
        f"{nuts.r_hat.max():.2f}, median {np.median(nuts.r_hat):.2f}"
    )
    if not where.any():
        return f"{text}: the chains agree."
    worst = GRID[np.argmax(nuts.r_hat)]
    return (
        f"{text}. **It is above {AGREE} at {where.sum()} of {len(where)} grid points, highest at x = {worst:.2f}: "
        "there the chains disagree,** and each chain's mean is dotted."
    )


def bands_file(snapshots: Sequence[Snapshot | None]) -> io.StringIO:
    """Return the bands of every method as a CSV file, with a row for each grid point.

    Args:
        snapshots: what each network shows, None before its first frame.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["h", "method", "step", "x", "mean", "low", "high", "low50", "high50"])
    for snapshot in snapshots:
        for name, found in (snapshot.methods if snapshot else {}).items():
            columns = (GRID, *found.wide, found.half.low, found.half.high)
            head = snapshot.setup.width, name, found.step
            writer.writerows([*head, *(f"{value:.6g}" for value in row)] for row in zip(*columns))
    out.seek(0)
    return out
