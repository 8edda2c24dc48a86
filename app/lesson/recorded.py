"""Runs of page Variance collapse that were recorded, for lessons and the essay."""

from __future__ import annotations

import json

from steinlab.server.folders import ASSETS


def recorded(method: str, alpha: float, particles: int = 20) -> dict[int, float]:
    """Return the variance that a method keeps on a standard normal: dimension -> mean over the recorded seeds.

    The runs are those of page Variance collapse, with the RBF kernel and the rule median_log.

    Args:
        method: "svgd" or "smi".
        alpha: weight of the repulsion.
        particles: how many.

    Raises:
        ValueError: no such run was recorded.
    """
    rows = json.loads((ASSETS / "variance_collapse.json").read_text(encoding="utf-8"))["rows"]
    found: dict[int, list[float]] = {}
    for row in rows:
        asked = {"target": "gaussian", "method": method, "alpha": alpha, "particles": particles}
        plain = row["recipe"]["knobs"].get("method.force_scale", "paper") == "paper"
        if plain and {**asked, "kernel": "rbf", "rule": "median_log"}.items() <= row.items():
            found.setdefault(row["dim"], []).append(row["sample_variance"])
    if not found:
        raise ValueError(f"No run of {method} with alpha = {alpha:g} and {particles} particles was recorded.")
    return {dim: sum(values) / len(values) for dim, values in found.items()}
