"""How draws were made and checked: what somebody else needs to repeat a report."""

from __future__ import annotations

import platform
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from stein_core.contract.registry import METHODS
from stein_core.posterior.evidence import Evidence
from stein_core.posterior.fitted import Fit

PACKAGES = ("steinlab", "jax", "numpyro", "numpy")
NAMED = 12  # coordinates that are named


def now() -> str:
    """Return the date and time (UTC)."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())


def versions() -> dict[str, str]:
    """Return the versions of Python and of what computes a report."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a checkout that is not installed
            found[name] = "a checkout"
    return found


def provenance(seen: Evidence, made: Fit | None, date: str) -> dict[str, Any]:
    """Return the facts of a report by name, in plain types.

    Args:
        seen: what was checked.
        made: the fit, or None for draws from elsewhere.
        date: of the check.
    """
    names = [*seen.names[:NAMED], *["..."] * (seen.d > NAMED)]
    kinds = {0: "particles", 1: "independent draws, or one chain"}
    facts: dict[str, Any] = {
        "draws": seen.n,
        "of": kinds.get(seen.chains, f"{seen.chains} chains of {seen.n // max(seen.chains, 1):,}"),
        "coordinates": seen.d,
        "coordinate names": ", ".join(names),
        "scores": "none" if seen.scores is None else "handed in" if seen.log_p is None else "of the posterior",
    }
    if made is not None:
        facts["of"] = "particles" if made.log_q is None else "draws of a mixture of guides"
        facts |= _of_run(made)
    if seen.weighing is not None:
        facts["weights"] = seen.weighing.how
    if seen.reference is not None:
        chains, k, _ = seen.reference.shape
        facts["reference"] = f"{k:,} draws" if chains == 1 else f"{chains} chains of {k:,} draws"
        if seen.diverging is not None:
            facts["divergences of the reference"] = seen.diverging
    return facts | {"date": date, "versions": versions()}


def _of_run(made: Fit) -> dict[str, Any]:
    """Return what fixes the run of a fit: with the posterior these facts repeat it."""
    recipe, spec = made.recipe, made.recipe.spec
    knobs = {name: knob.default for name, knob in spec.knobs().items()} | dict(recipe.knobs)
    facts = {
        "method": METHODS[spec.method].label,
        "guide": spec.guide,
        "optimizer": spec.optimizer,
        "draws a step": spec.draws,
        "options": dict(spec.options),
        "knobs": knobs,
        "changes": [f"{name} = {value} from step {step}" for step, name, value in recipe.changes],
        "seed": recipe.seed,
    }
    if made.history:
        facts |= {"steps": made.history[-1]["step"], "rounds": made.rounds}
    if made.gradients:
        facts["gradients"] = made.gradients
    return facts | {"seconds": round(made.seconds, 1)} if made.seconds else facts
