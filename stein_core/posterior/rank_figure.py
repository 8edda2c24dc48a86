"""A calibration as HTML: for each parameter its curve of ranks in its band, and a sentence."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from stein_core.contract.registry import METHODS
from stein_core.posterior.drawing import ALONE, PAGE

WIDTH, HEIGHT = 240, 120
MOST = 60  # parameters with a figure, the worst first
CSS = """
.ranks { display: flex; flex-wrap: wrap; gap: 18px 24px; margin: 12px 0; } .ranks figure { margin: 0; width: 240px; }
.ranks svg { display: block; border: 1px solid var(--mui-palette-line-main); border-radius: 6px; }
.ranks figcaption { font-size: 14px; line-height: 1.4; padding-top: 4px; overflow-wrap: anywhere; }
.ranks .band { fill: currentColor; opacity: .14; } .ranks .zero { stroke: currentColor; opacity: .5; }
.ranks .curve { fill: none; stroke-width: 2; } .ranks .wrong .curve { stroke-width: 3; }
.ranks .wrong figcaption b { background: var(--mui-palette-mark-main); padding: 0 4px; }
"""
READING = (
    "Each curve is the distribution of the ranks of truths among their draws, minus the uniform one. It stays in the "
    "grey band if the draws are right, and is first above and then below it if they are too narrow."
)


def to_html(said: dict[str, Any]) -> str:
    """Return `Calibration.to_dict` as one page."""
    colours = METHODS[said["method"]].facts.colour if said["method"] in METHODS else ()
    body = figures(said, f"light-dark({', '.join(colours)})" if colours else "currentColor")
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Calibration</title>"
        f"<style>{PAGE}{CSS}{ALONE}</style>"
        f'<body><div class="steinlab"><h1>Calibration of {html.escape(said["label"])}</h1>{body}</div></body></html>'
    )


def figures(said: dict[str, Any], colour: str) -> str:
    """Return the verdict, how to read a curve, and a figure for each parameter, the worst first.

    Args:
        said: `Calibration.to_dict`.
        colour: of the curves.
    """
    band = {key: np.array(each) for key, each in said["band"].items()}
    found = {name: one | {"curve": np.array(one["curve"])} for name, one in said["parameters"].items()}
    far = {name: float(np.max(np.abs(one["curve"] - band["at"]))) for name, one in found.items()}
    most = max(0.05, *(float(np.max(np.abs(band[key] - band["at"]))) for key in ("low", "high")), *far.values())
    order = sorted(found, key=lambda name: -far[name])
    drawn = "".join(figure(name, found[name], band, colour, most) for name in order[:MOST])
    more = f"<p>{len(order) - MOST} more parameters are nearer to the uniform distribution.</p>" * (len(order) > MOST)
    head = html.escape(said["verdict"].splitlines()[0])
    about = f"{said['n']} data sets, {said['draws']} draws of each fit, {said['seconds']:.0f} s."
    return f'<p><b>{head}</b></p><p>{READING}</p><div class="ranks">{drawn}</div>{more}<p><small>{about}</small></p>'


def figure(name: str, found: dict[str, Any], band: dict[str, np.ndarray], colour: str, most: float) -> str:
    """Return the figure of one parameter. most: the largest distance from uniform that it shows."""

    def way(values) -> list[str]:
        x, y = WIDTH * band["at"], HEIGHT * (0.5 - 0.47 * (values - band["at"]) / most)
        return [f"{a:.1f} {b:.1f}" for a, b in zip(x, y)]

    area = "L".join([*way(band["low"]), *way(band["high"])[::-1]])
    wrong = ' class="wrong"' * (found["kind"] != "calibrated")
    label = html.escape(f"{name}: {found['sentence']}")
    return (
        f'<figure{wrong}><svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{label}">'
        f'<path class="band" d="M{area}Z"/><path class="zero" d="M0 {HEIGHT / 2}H{WIDTH}"/>'
        f'<path class="curve" style="stroke: {colour}" d="M{"L".join(way(found["curve"]))}"/></svg>'
        f"<figcaption><b>{html.escape(name)}</b> {html.escape(found['sentence'])}</figcaption></figure>"
    )
