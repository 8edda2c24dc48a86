"""The figure of a report for a notebook or for print: a panel for each check that has a number for each coordinate."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stein_core.posterior.checks import NARROW, SHIFT, WIDE
from stein_core.posterior.companions import R_HAT
from stein_core.posterior.evidence import CHECKS, Finding

COLUMNS = 2  # of panels
SHOWN = 30  # coordinates in a panel, the worst ones
DRAWN = {  # check -> what its numbers are, and the band of those that are not called wrong
    "location": ("mean, in sds from the one that the scores imply", -SHIFT, SHIFT),
    "width": ("sd / sd that the scores imply", NARROW, WIDE),
    "tails": ("the same, with test functions that see tails", NARROW, WIDE),
    "stein_trace": ("r of each coordinate", NARROW**2, WIDE**2),
    "reference": ("sd / sd of the reference", NARROW, WIDE),
    "chains": ("R-hat", 1.0, R_HAT),
}


@dataclass(frozen=True)
class Picture:
    """Hold a Matplotlib figure, which a notebook shows.

    Args:
        figure: to change before it is saved.
    """

    figure: Any

    def _repr_svg_(self) -> str:
        text = io.StringIO()
        self.figure.savefig(text, format="svg")
        return text.getvalue()[text.getvalue().index("<svg") :]

    def save(self, path: str | Path) -> None:
        """Write the figure to a file: .pdf, .svg or .png."""
        self.figure.savefig(path)


def picture(verdict: str, findings: Mapping[str, Finding], caption: str) -> Picture:
    """Return the figure of a report.

    Args:
        verdict: its title.
        findings: check -> Finding. If none has numbers for coordinates, their sentences are the figure.
        caption: what was checked, and with what.
    """
    from matplotlib.figure import Figure  # not at the top: it takes a second

    panels = [name for name in DRAWN if name in findings and np.isfinite(list(findings[name].each.values())).any()]
    columns = min(max(len(panels), 1), COLUMNS)
    lines = math.ceil(max(len(panels), 1) / columns)
    rows = max([min(len(findings[name].each), SHOWN) for name in panels], default=len(findings))
    title, below = textwrap.fill(verdict, 55 * columns), textwrap.fill(caption, 65 * columns)
    height = lines * (1.2 + 0.24 * rows) + 0.2 * (3 + title.count("\n") + below.count("\n"))
    figure = Figure(figsize=(0.6 + 4.2 * columns, height), layout="constrained")
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.supxlabel(below, fontsize=8, x=0.01, ha="left")
    places = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, name in zip(places, panels or [""]):
        _panel(axes, name, findings[name]) if name else _words(axes, findings)
    for axes in places[max(len(panels), 1) :]:
        axes.remove()
    return Picture(figure)


def _panel(axes, name: str, found: Finding) -> None:
    """Draw a dot with its number for each coordinate, the worst at the top, beside the line and the band."""
    label, low, high = DRAWN[name]
    known = [(key, value) for key, value in found.each.items() if np.isfinite(value)]
    rows = sorted(known, key=lambda row: -abs(row[1] - found.expected))[:SHOWN]
    values, at = np.array([value for _, value in rows]), np.arange(len(rows))
    reach = 3.0 * max(high - found.expected, found.expected - low)
    shown = np.clip(values, found.expected - reach, found.expected + reach)  # the number says what is beyond
    axes.axvspan(low, high, color="0.9", zorder=0)
    axes.axvline(found.expected, color="black", linewidth=1.2, zorder=1)
    axes.errorbar(shown, at, xerr=found.error or None, fmt="o", color="#0072B2", ecolor="0.6", markersize=5, zorder=2)
    axes.locator_params(axis="x", nbins=5)
    axes.set_yticks(at, [key[:24] for key, _ in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    for y, value in zip(at, values):
        axes.text(1.02, y, f"{value:.2f}", transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    more = f"\n{len(known) - len(rows)} more coordinates are nearer" * (len(known) > len(rows))
    axes.set_xlabel(f"{label}\nline: {found.expected:g}, band: {low:.2f} to {high:.2f}{more}", fontsize=8)
    judged = {True: "wrong", False: "ok", None: "?"}[found.wrong]
    axes.set_title(f"{CHECKS[name].label}: {judged}", fontsize=10, loc="left")


def _words(axes, findings: Mapping[str, Finding]) -> None:
    """Write the sentences of the checks."""
    axes.axis("off")
    said = [f"{CHECKS[name].label}: {found.sentence}" for name, found in findings.items()]
    axes.text(0, 1, "\n".join(textwrap.fill(each, 75) for each in said), va="top", fontsize=9)
