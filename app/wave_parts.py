"""Texts, presets, the table of read-outs and the browser's side of the page "1-D wave"."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import numpy as np
import panel_material_ui as pmui
from panel.custom import JSComponent

from app.controls import WIDTH
from app.wave_figures import COLOURS, GREY
from app.wave_measures import Readout
from app.wave_nuts import AGREE, Compared
from app.wave_session import Picture
from app.wave_setup import WaveSetup, label_of
from stein_core.datasets import WAVE_REGIONS
from stein_core.wave import GRID

BUTTON = {"size": "small", "margin": (4, 4)}
CHOICE = {"size": "small", **WIDTH}
OWN = "Your own settings"
PRESETS = [
    {
        "name": "Five hidden units, 100 draws",
        "setup": WaveSetup(),
        "text": "The paper's small network: 41 weights, five particles, 15,000 steps.",
    },
    {
        "name": "A hundred hidden units, 10 draws",
        "setup": WaveSetup(width=100, draws=10),
        "text": "The paper's large network: 10,301 weights. SVGD's band closes between the data; a step takes longer.",
    },
    {
        "name": "All six methods",
        "setup": WaveSetup(methods=("svgd", "annealed", "smi", "vi", "map", "ensemble")),
        "text": "MAP knows of no uncertainty at all; the ensemble only of what it started with.",
    },
]
KEY = (
    "Thick line: mean. Dark and pale: 50 % and wide band. Thin lines: each particle's own curve. Grey: clusters of the "
    "paper's data; dashed: NUTS's band. Click adds a point, drag moves it, Backspace or Delete takes away the marked one."
)
WIDTHS_KEY = (
    "The collapse: mean width of the 90 % band of f between the clusters, at the widths you have trained. Crosses: NUTS. "
    "A band without width has no place here."
)
NO_SWEEP = " No shipped sweep yet: train at several widths to see which bands close."
HELP = (
    "The band of f is what the network may be; the band of y adds the noise of a new observation. LPPD: log predictive "
    "density of the wave's test points, higher is better; coverage: share of 120 of them within the band of y. Both "
    "are about the paper's wave, whatever your data. **Space** plays and pauses, **→** steps, **R** resets."
)
CSS = """<style>table.wave {border-collapse: collapse; width: 100%; font-size: 12.5px}
.wave th {font-weight: 500; text-align: right; vertical-align: bottom; line-height: 1.25; padding: 2px 6px; border-bottom: 1px solid #80808080}
.wave td {text-align: right; white-space: nowrap; padding: 2px 6px; font-variant-numeric: tabular-nums}
.wave th:first-child, .wave td:first-child {text-align: left}
.wave i {display: inline-block; width: 10px; height: 10px; margin-right: 6px}
.scroll {overflow-x: auto}</style>"""


class Pulse(JSComponent):
    """Invisible. Acknowledges what `ping` sends once it was painted (a hidden tab paints nothing), and hears keys.
    on_message gets {"ready": True}, {"ack": number} or {"key": name}."""

    _esm = (Path(__file__).parent / "wave.js").read_text()

    def __init__(self, on_message: Callable[[dict], None], **params):
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **params})
        self.on_message = on_message

    def ping(self, frame: np.ndarray) -> None:
        """A picture was sent; element 0 of `frame` is its number."""
        self._send_msg({"ping": float(frame[0])})

    def _handle_msg(self, data) -> None:
        self.on_message(data)


class Upload(pmui.FileInput):
    """One text file of at most a megabyte. chosen: gets its text; refused: why there is none."""

    def __init__(self, chosen: Callable[[str], None], refused: Callable[[str], None], **params):
        super().__init__(accept=".csv,.txt", max_file_size=1_000_000, multiple=False, **params)
        self.refused = refused
        self.param.watch(lambda event: event.new and chosen(event.new.decode(errors="replace")), "value")

    def _handle_msg(self, msg) -> None:
        if msg["status"] == "error":  # too large, which the widget itself would only log
            self.refused("This file was not read; allowed: text of at most 1 MB.")
        else:
            super()._handle_msg(msg)


def table(picture: Picture, nuts: Compared | None) -> str:
    """The read-outs as HTML, a row a method, NUTS last."""
    setup = picture.setup
    band = f"{100 * setup.probability:.0f} %"
    heads = [
        "", *(f"LPPD {region}" for region in WAVE_REGIONS), "width inside", "width between", "÷ NUTS", f"{band} covers", "steps/s alone",
    ]  # fmt: skip
    rows = []
    for name, seen in picture.methods.items():
        ratio = seen.readout.between / nuts.readout.between if nuts else float("nan")
        rows.append(_row(label_of(name), COLOURS[name], seen.readout, ratio, f"{seen.rate:,.0f}"))
    if nuts:
        rows.append(_row("NUTS", GREY, nuts.readout, 1.0, ""))
    head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
    return f'{CSS}<div class="scroll"><table class="wave"><tr>{head}</tr>{"".join(rows)}</table></div>'


def _row(label: str, colour: str, readout: Readout, ratio: float, rate: str) -> str:
    cells = [
        *(number(value) for value in readout.lppd), f"{readout.inside:.3g}", f"{readout.between:.3g}",
        f"{ratio:.2f}" if np.isfinite(ratio) else "–", f"{100 * readout.coverage:.0f} %", rate,
    ]  # fmt: skip
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
                text for text, now, usual in zip(("noise", "prior", "data"), setup.posterior()[1:], plain.posterior()[1:]) if now != usual
            ]  # fmt: skip
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
