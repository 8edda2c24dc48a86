"""A calibration as HTML: for each parameter its curve of ranks in its band, and a sentence."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from stein_core.posterior.drawing import ALONE, CSS, PAGE

WIDTH, HEIGHT = 240, 120
MOST = 60  # parameters with a figure, the worst first
OWN = """
.ranks { display: flex; flex-wrap: wrap; gap: 18px 24px; } .ranks figure { margin: 0; width: 240px; }
.ranks svg { display: block; border: 1px solid #8886; border-radius: 6px; }
.ranks figcaption { font-size: 14px; line-height: 1.4; padding-top: 4px; overflow-wrap: anywhere; }
.ranks .band { fill: currentColor; opacity: .14; } .ranks .zero { stroke: currentColor; opacity: .5; }
.ranks .curve { fill: none; stroke: #0072B2; stroke-width: 2; }
.ranks .wrong .curve { stroke: #BD4B00; stroke-width: 3; }
"""
READING = (
    "Each curve is the distribution of ranks minus the uniform one. All curves of a calibrated procedure stay in the "
    "grey band in 95 % of cases. If the draws are too narrow, the curve is above at first and below later. If they are "
    "too wide, it is the other way round. If they are shifted, it stays on one side."
)


def to_html(made: Any) -> str:
    """Return a `Calibration` as one page."""
    found, here = made.findings, made.band
    curves = dict(zip(made.names, made.curves))
    order = sorted(found, key=lambda name: -np.max(np.abs(curves[name] - here.at)))
    most = max(0.05, *(float(np.max(np.abs(one - here.at))) for one in (here.low, here.high, *curves.values())))
    figures = "".join(figure(name, curves[name], here, found[name], most) for name in order[:MOST])
    more = f"<p>{len(order) - MOST} more parameters are nearer to the uniform distribution.</p>" * (len(order) > MOST)
    said = "".join(f"<p>{html.escape(line)}</p>" for line in made.verdict.splitlines()[:1])
    about = f"{len(made.ranks)} data sets, {made.most} draws of each fit, {made.seconds:.0f} s."
    body = f'<h1>Calibration of {html.escape(made.label)}</h1>{said}<p>{READING}</p><div class="ranks">{figures}</div>'
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Calibration</title>"
        f"<style>{PAGE}{CSS}{ALONE}{OWN}</style>"
        f'<body><div class="steinlab">{body}{more}<p>{about}</p></div></body></html>'
    )


def figure(name, curve, band, finding, most: float) -> str:
    """Return the figure of one parameter. most: the largest distance from uniform that it shows."""

    def way(values) -> list[str]:
        x, y = WIDTH * band.at, HEIGHT * (0.5 - 0.47 * (values - band.at) / most)
        return [f"{a:.1f} {b:.1f}" for a, b in zip(x, y)]

    area = "L".join([*way(band.low), *way(band.high)[::-1]])
    wrong = ' class="wrong"' * (finding.kind != "calibrated")
    label = html.escape(f"{name}: {finding.sentence}")
    return (
        f'<figure{wrong}><svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{label}">'
        f'<path class="band" d="M{area}Z"/><path class="zero" d="M0 {HEIGHT / 2}H{WIDTH}"/>'
        f'<path class="curve" d="M{"L".join(way(curve))}"/></svg>'
        f"<figcaption><b>{html.escape(name)}</b> {html.escape(finding.sentence)}</figcaption></figure>"
    )
