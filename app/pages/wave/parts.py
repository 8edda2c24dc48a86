"""Texts, presets, the file input and the table of read-outs of the page "1-D wave"."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import numpy as np
import panel_material_ui as pmui

from app.pages.wave.measures import Readout
from app.pages.wave.nuts import AGREE, Compared
from app.pages.wave.session import Snapshot
from app.pages.wave.setup import LONGEST, WaveSetup, label_of
from app.pages.wave.stage import COLOUR_OF
from app.server.limits import LIMITS
from app.server.messages import Heard, one_of
from app.ui.colours import GREY
from app.ui.knob_widgets import WIDTH
from stein_core.datasets import WAVE_REGIONS
from stein_core.experiments.wave import GRID

CHOICE = {"size": "small", **WIDTH}
OWN = "Your own settings"
PRESETS = [
    {
        "name": "Five hidden units, 100 draws",
        "setup": WaveSetup(),
        "text": "The paper's small network: 41 weights, five particles. It comes trained, 15,000 steps.",
    },
    {
        "name": "A hundred hidden units, 10 draws",
        "setup": WaveSetup(width=100, draws=10),
        "text": "The paper's large network: 10,301 weights. SVGD's band closes between the data; a step takes longer.",
    },
    {
        "name": "Both networks, one below the other",
        "setup": WaveSetup(two=True),
        "text": "Row one as above; below it the large network with 10 draws, which trains in what time is left.",
    },
    {
        "name": "All six methods",
        "setup": WaveSetup(methods=("svgd", "annealed", "smi", "vi", "map", "ensemble")),
        "text": "MAP knows of no uncertainty at all; the ensemble only of what it started with.",
    },
]
KEY = (
    "Thick line: mean. Dark and pale: 50 % and wide band. Thin lines: each particle's own curve. Grey: clusters of the "
    "paper's data; dashed: NUTS's band. **Click or tap adds a point, drag moves it; Delete takes away the marked one, as a "
    "tap does after *Delete points*.** Keyboard: Tab to the picture, ← → choose a point."
)
WIDTHS_KEY = (
    "The collapse: mean width of the 90 % band of f between the clusters, against the number of weights. Full marks: what "
    "you have trained, at its last step; crosses: NUTS. A band without width has no place here. "
)
SWEEP = "Pale: the shipped sweep, 15,000 steps, mean and standard deviation over seeds. "
HELP = (
    "The band of f is what the network may be; the band of y adds the noise of a new observation. LPPD: log predictive "
    "density of the wave's test points, higher is better; coverage: share of 120 of them within the band of y. Both "
    "are about the paper's wave, whatever your data. **Space** plays and pauses, **→** steps, **R** trains from scratch."
)
CSS = """<style>table.wave {border-collapse: collapse; width: 100%; font-size: 12.5px}
.wave th {font-weight: 500; text-align: right; vertical-align: bottom; line-height: 1.25; padding: 2px 6px; border-bottom: 1px solid #80808080}
.wave td {text-align: right; white-space: nowrap; padding: 2px 6px; font-variant-numeric: tabular-nums}
.wave th:first-child, .wave td:first-child {text-align: left}
.wave i {display: inline-block; width: 10px; height: 10px; margin-right: 6px}
.scroll {overflow-x: auto}</style>"""


class Upload(Heard, pmui.FileInput):
    """One file of at most LIMITS.upload_mb, which comes in parts. chosen: gets its bytes; refused: why there are none."""

    forms = (
        {"status": one_of("upload_event"), "data": lambda data: isinstance(data, bytes)},
        {"status": one_of("initializing", "finished", "error")},
    )

    def __init__(self, chosen: Callable[[bytes], None], refused: Callable[[str], None], **params):
        super().__init__(accept=".csv,.txt", max_file_size=LONGEST, multiple=False, **params)
        self.chosen, self.refused = chosen, refused
        self.parts, self.received = [], 0

    def hear(self, data) -> None:
        status = data["status"]
        if status == "upload_event":
            self.received += len(data["data"])
            if self.received <= LONGEST:
                self.parts.append(data["data"])
            return
        content, size = b"".join(self.parts), self.received
        self.parts, self.received = [], 0
        if status == "error" or size > LONGEST:  # the browser refuses a large one, if it is an honest one
            self.refused(
                f"This file was not read; allowed: text of at most {LIMITS.upload_mb} MB (STEINLAB_UPLOAD_MB)."
            )
        elif status == "finished":
            self._send_msg(data)
            self.chosen(content)


def table(pictures: Sequence[Snapshot | None], nuts: Sequence[Compared | None]) -> str:
    """The read-outs as HTML, a row a method, NUTS last; network by network."""
    first = next(picture for picture in pictures if picture).setup
    heads = [
        "",
        *(f"LPPD {region}" for region in WAVE_REGIONS),
        "width inside",
        "width between",
        "÷ NUTS",
        f"{100 * first.probability:.0f} % covers",
        "steps/s alone",
    ]
    rows = []
    for picture, known in zip(pictures, nuts):
        where = f", h = {picture.setup.width}" if picture and len(pictures) > 1 else ""
        for name, seen in picture.methods.items() if picture else ():
            ratio = seen.readout.between / known.readout.between if known else float("nan")
            rows.append(
                _row(
                    label_of(name) + where,
                    COLOUR_OF[name],
                    seen.readout,
                    ratio,
                    f"{seen.rate:,.0f}" if seen.rate else "–",
                )
            )
        if known:
            rows.append(_row(f"NUTS{where}", GREY, known.readout, 1.0, ""))
    head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
    return f'{CSS}<div class="scroll"><table class="wave"><tr>{head}</tr>{"".join(rows)}</table></div>'


def _row(label: str, colour: str, readout: Readout, ratio: float, rate: str) -> str:
    cells = [
        *(number(value) for value in readout.lppd),
        f"{readout.inside:.3g}",
        f"{readout.between:.3g}",
        f"{ratio:.2f}" if np.isfinite(ratio) else "–",
        f"{100 * readout.coverage:.0f} %",
        rate,
    ]
    swatch = f'<td><i style="background: {colour}"></i>{html.escape(label)}</td>'
    return f"<tr>{swatch}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def number(value: float) -> str:
    """A log density, short: hopeless ones in powers of ten."""
    return f"{value:,.1f}" if abs(value) < 1e4 else f"{value:.1e}"


def nuts_sentence(nuts: Compared | None, setup: WaveSetup) -> str:
    """What there is to know of the NUTS band, or why there is none."""
    if nuts is None:
        plain = WaveSetup()
        if setup.posterior()[1:] != plain.posterior()[1:]:
            changed = [
                text
                for text, now, usual in zip(("noise", "prior", "data"), setup.posterior()[1:], plain.posterior()[1:])
                if now != usual
            ]
            return f"No NUTS band: the {' and '.join(changed)} differ{'s' * (changed != ['data'] and len(changed) == 1)} from the shipped reference's."
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
        f"{text}. **Above {AGREE} at {where.sum()} of {len(where)} grid points, most at x = {worst:.2f}: there the chains "
        "disagree,** and each chain's mean is dotted."
    )
