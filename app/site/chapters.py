"""Two pages of the site beside essay and lessons, with recorded runs: variance collapse, and which remedy helps."""

from __future__ import annotations

import html
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from stein_core import METHODS, Spec
from steinlab.pages.remedy.slots import MARKS, TITLES, remedies
from steinlab.server.folders import ASSETS
from steinlab.site.figures import Figure, Place, chart_html, figure_html, filled
from steinlab.ui.colours import looks_of

HERE = Path(__file__).parent
DIMS = sorted({*range(2, 31), *np.geomspace(30, 200, 24).round().astype(int).tolist()})
PARTICLES = 20
AXES = {"x": (1, 200), "y": (0.01, 2), "labels": ("dimension d", "variance"), "choose": True, "start": 0}
BESIDE = (  # label, method and settings of the runs that variance collapse shows beside SVGD
    ("SMI, alpha 0.05", "smi", {"alpha": 0.05}),
    ("SMI, alpha 1", "smi", {"alpha": 1.0}),
    ("SVGD without the logarithm", "svgd", {"rule": "median", "alpha": 1.0}),
    ("SVGD, alpha 0.1", "svgd", {"alpha": 0.1}),
    ("damped SVGD, without the logarithm", "damped", {"rule": "median"}),
    ("annealed SVGD", "annealed", {}),
    ("MMD descent, without the logarithm", "mmd", {"rule": "median"}),
    ("Langevin", "langevin", {}),
    ("one guide, VI", "vi", {"particles": 1}),
)
REMEDIES = tuple(name for names in remedies().values() for name in names)
FIGURES = {
    "points": Figure(
        Place("gaussian", 50), ("svgd", "smi"), {"method.particles": PARTICLES}, ("method.particles", "method.alpha"),
        speed=2, pick=("smi", "damped", "vi", "langevin"),
    ),
    "remedies": Figure(
        Place("gaussian", 50, "sgd"), ("svgd", "random_subspace"),
        {"method.particles": PARTICLES, "method.step_size": 0.2}, ("method.particles",), speed=5, pick=REMEDIES,
    ),
    "chain": Figure(
        Place("autoregression", 10, "sgd"), ("svgd", "blocks"), {"method.particles": 32, "method.step_size": 0.05},
        ("target.rho", "method.particles"), ("attract", "repulse", "draws"), 5, pick=REMEDIES,
    ),
}  # fmt: skip


@lru_cache(maxsize=4)
def rows(name: str) -> tuple[dict[str, Any], ...]:
    """Return the recorded runs of an asset that took the forces as the papers have them."""
    kept = json.loads((ASSETS / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    return tuple(row for row in kept if row["recipe"]["knobs"].get("method.force_scale", "paper") == "paper")


def runs(name: str, method: str, **asked: Any) -> list[dict[str, Any]]:
    """Return the points of a method's runs on a normal: for each dimension the mean variance over the seeds."""
    found: dict[int, list[float]] = {}
    wanted = {"target": "gaussian", "method": method, "particles": PARTICLES, **asked}
    for row in rows(name):
        if wanted.items() <= row.items():
            found.setdefault(row["dim"], []).append(row["sample_variance"])
    return [{"method": method, "at": (dim, round(float(np.mean(each)), 5))} for dim, each in sorted(found.items())]


def law(method: str, label: str, **knobs: Any) -> list[dict[str, Any]]:
    """Return the curve of a method's law, or none.

    Args:
        method: its name.
        label: what stands at the end of the curve.
        knobs: those that differ from their defaults.
    """
    known = {name: knob.default for name, knob in Spec("gaussian", method=method).knobs().items()}
    values = {**known, "method.particles": PARTICLES, **knobs}
    found = [(d, float(METHODS[method].facts.law(d, PARTICLES, values))) for d in DIMS]
    at = [(d, round(v, 5)) for d, v in found if np.isfinite(v)]
    return [{"method": method, "name": label, "at": at}] if at else []


def beside(label: str, method: str, points: list[dict[str, Any]], **knobs: Any) -> dict[str, Any]:
    """Return a set of curves: SVGD and a method beside it, which has other colours if it is SVGD too.

    Args:
        label: what it is called.
        method: its name.
        points: its runs.
        knobs: those that differ from their defaults.
    """
    looks = [{"colour": look[:2]} for look in looks_of(("svgd", method))]
    lines = [line | look for line, look in zip(law("svgd", "SVGD") + law(method, label, **knobs), looks)]
    return {"name": label, "lines": lines, "points": [point | looks[1] for point in points]}


def chart(slider: str, usual: list[dict[str, Any]], sets: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a chart of these sets, each with the usual runs of SVGD."""
    plain = [point | {"colour": looks_of(("svgd",))[0][:2]} for point in usual]
    sets = [one | {"points": plain + one["points"]} for one in sets]
    return AXES | {"sets": sets, "slider": slider, "label": "Variance that is left against dimension"}


def collapse_chart() -> dict[str, Any]:
    """Return the chart of page variance collapse: SVGD, and what is chosen beside it."""
    usual, sets = {"kernel": "rbf", "rule": "median_log"}, []
    for label, method, own in BESIDE:
        knobs = {new: own[old] for old, new in (("alpha", "method.alpha"), ("rule", "bandwidth.rule")) if old in own}
        sets.append(beside(label, method, runs("variance_collapse", method, **{**usual, **own}), **knobs))
    return chart("beside SVGD", runs("variance_collapse", "svgd", alpha=1.0, **usual), sets)


def remedy_chart() -> dict[str, Any]:
    """Return the chart of page Which remedy: SVGD, and the remedy that is chosen beside it."""
    found = ((METHODS[method].label, method, runs("remedies", method)) for method in REMEDIES)
    return chart("remedy", runs("remedies", "svgd"), [beside(*each) for each in found if each[2]])


def slots_table() -> str:
    """Return the five places of SVGD that a remedy changes, with each remedy's formula, as HTML."""
    made = []
    for slot, names in remedies().items():
        for k, name in enumerate(names):
            facts = METHODS[name].facts
            head = f'<th rowspan="{len(names)}" scope="rowgroup">{TITLES[slot]}</th>' * (k == 0)
            cells = (METHODS[name].label, facts.formula, MARKS[facts.moves_rest])
            made.append(f"<tr>{head}{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>")
    heads = "".join(f"<th>{head}</th>" for head in ("Place", "Remedy", "What stands there", "What it moves"))
    facts = 'class="wide" role="region" tabindex="0" aria-label="Remedies"'
    return f"<div {facts}><table><thead><tr>{heads}</tr></thead><tbody>{''.join(made)}</tbody></table></div>"


def body(name: str) -> str:
    """Return a page, "collapse" or "remedy", as HTML."""
    charts = {"collapse": collapse_chart, "remedy": remedy_chart}
    makers = {
        "chart": lambda name: chart_html(name, charts[name]()),
        "figure": lambda name: figure_html(name, FIGURES[name]),
        "table": lambda name: slots_table(),
    }
    return filled((HERE / f"{name}.md").read_text(encoding="utf-8"), makers)
