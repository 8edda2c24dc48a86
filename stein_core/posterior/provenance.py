"""How draws were made and checked: what somebody else needs to repeat a report."""

from __future__ import annotations

import platform
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from stein_core.contract.registry import GUIDES, METHODS, OPTIMIZERS
from stein_core.posterior.evidence import Evidence
from stein_core.posterior.fitted import Fit

PACKAGES = ("steinlab", "jax", "numpyro", "numpy")
NAMED = 12  # coordinates that are named
SMI_PAPER = "Rønning et al. 2025, ELBOing Stein"


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


def methods_of(seen: Evidence, made: Fit | None, posterior: str = "") -> str:
    """Return how draws were made and checked, in sentences for the methods section of a paper."""
    of = f"the posterior {posterior}" if posterior else "a posterior"
    known = versions()
    tools = " and ".join([f"JAX {known['jax']}", *[f"NumPyro {known['numpyro']}"] * (made is not None)])
    tool = f"Steinlab ({known['steinlab']}, {tools})"
    said = []
    if made is not None:
        spec, entry = made.recipe.spec, METHODS[made.recipe.spec.method]
        facts = _of_run(made)
        count = 1 if entry.facts.single else int(facts["knobs"].get("method.particles", 1))
        source = entry.reference.replace("SMI paper", SMI_PAPER)
        guide = GUIDES[spec.guide].label
        with_guides = f" with {_many(count, 'guide')} ({guide[0].lower()}{guide[1:]})" if made.log_q is not None else ""
        points = f" with {_many(count, 'particle')}" if made.log_q is None and count > 1 else ""
        said.append(
            f"We approximated {of} ({_many(seen.d, 'unconstrained coordinate')}) by {entry.label} "
            f"[{source}]{with_guides}{points} in {tool}."
        )
        run = [f"seed {made.recipe.seed}", f"optimiser {OPTIMIZERS[spec.optimizer].label}"]
        if "steps" in facts:
            run.append(f"{_many(facts['rounds'], 'round')}, the last of {_many(facts['steps'], 'step')}")
        if "gradients" in facts:
            run.append(f"{facts['gradients']:,} gradients in all")
        said.append(f"Settings: {', '.join(run)}.")
    else:
        what = f"{seen.chains} chains of {seen.n // seen.chains:,} draws" if seen.chains > 1 else _many(seen.n, "draw")
        said.append(f"We checked {what} of {of} ({_many(seen.d, 'unconstrained coordinate')}) with {tool}.")
    if seen.scores is not None:
        draws = ("They" if seen.n > 1 else "It") if made is None else f"The {_many(seen.n, 'draw')}"
        were = "was" if seen.n == 1 else "were"
        said.append(f"{draws} {were} checked by Stein's identity: mean and width against those that the scores imply.")
    if seen.reference is not None:
        chains, k, _ = seen.reference.shape
        said.append(f"The reference has {_many(chains, 'chain')} of {k:,} draws.")
    return " ".join(said)


def _many(count: int, what: str) -> str:
    """Return a number of things."""
    return f"{count:,} {what}{'s' * (count != 1)}"
