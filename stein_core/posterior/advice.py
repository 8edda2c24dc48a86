"""What to run for a budget of gradients: method, settings, and the variance to expect by its law."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stein_core.base.errors import short, unknown
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS, TARGETS
from stein_core.contract.spec import Spec, target_of, whole_number
from stein_core.contract.target import Target
from stein_core.posterior.checks import percent

WANTS = ("sample", "means", "bands")
ENOUGH = 0.9  # share of the variance, from which on a sample is not called too narrow
STEPS = 2000  # that a run takes to its rest, as in `fit`
POINTS, GUIDES, DRAWS = 20, 20, 10
BETAS = (0.5, 1e3)  # with less, the usual step is too large
MEANS = "Particles at rest have the mean of a normal exactly, whatever their width."
WIDTHS = "The posterior itself holds the width of each guide, in any dimension."
NOISE = "Noise keeps the points apart. A smaller beta means more noise."


@dataclass(frozen=True)
class Choice:
    """Hold one way to spend a budget.

    Args:
        method: its name.
        knobs: those that differ from their defaults.
        kept: variance on a standard normal with these settings, by the law of the method; NaN if it has none.
        gradients: of the target, in a step.
        steps: that the budget pays.
        why: a sentence.
    """

    method: str
    knobs: Mapping[str, Any]
    kept: float
    gradients: int
    steps: int
    why: str

    def __str__(self) -> str:
        facts, count = METHODS[self.method].facts, self.knobs["method.particles"]
        kind = "point" if facts.guides[0] == "point" else "guide"
        own = [
            f"{_name(self.method, key)} {_text(value)}" for key, value in self.knobs.items() if "particles" not in key
        ]
        said = ", ".join([METHODS[self.method].label, *own, f"{count} {kind}{'s' * (count != 1)}"])
        law = f"keeps {percent(self.kept)} of the variance by its law" if math.isfinite(self.kept) else "has no law"
        return f"{said}: {law}; {self.gradients:,} gradients a step, {self.steps:,} steps. {self.why}"


@dataclass(frozen=True)
class Advice:
    """Hold what may be run, the best first."""

    dim: int
    choices: tuple[Choice, ...]

    @property
    def best(self) -> Choice:
        """The first choice."""
        return self.choices[0]

    def __str__(self) -> str:
        return "\n".join(f"{number}. {choice}" for number, choice in enumerate(self.choices, 1))


def advise(target: Target | Spec | str | int, budget: int = 400_000, want: str = "sample") -> Advice:
    """Say which method to run, with which settings, and how much of the variance it will keep.

    Laws hold on a standard normal. On other posteriors they say what to expect in whitened coordinates. A run is given
    at least 2,000 steps, which bring it about to its rest.

    Args:
        target: a Target or Spec, the name of a registered target, or a dimension.
        budget: gradients of the target, in all.
        want: "sample" (points that spread as draws do), "means", or "bands" (means and sds).

    Returns:
        The Advice, with every choice that the budget pays.

    Raises:
        ValueError: an unknown target or wish, or a budget that pays no choice.
    """
    if want not in WANTS:
        raise unknown("want", want, WANTS)
    dim, budget = dim_of(target), whole_number("budget", budget, 1, 10**12)
    choices = [choice for choice in _choices(dim, budget, want) if choice.steps >= STEPS]
    if not choices:
        raise ValueError(
            f"budget = {short(budget)} gradients; allowed: at least {STEPS:,}, one point for {STEPS:,} steps."
        )
    return Advice(dim, tuple(choices))


def dim_of(target: Target | Spec | str | int) -> int:
    """Return the number of coordinates of what `advise` takes."""
    if isinstance(target, Target | Spec):
        return target.dim
    if isinstance(target, str):
        return target_of(Spec(TARGETS[target].name, method="svgd")).dim
    return whole_number("target", target, 1, 10**9)


def kept(method: str, dim: int, knobs: Mapping[str, Any]) -> float:
    """Return the variance that a method keeps on a standard normal by its law, NaN without one.

    Args:
        method: its name.
        dim: of the normal.
        knobs: those that differ from their defaults, by their full names.
    """
    known = {name: knob.default for name, knob in Spec("gaussian", method=method).knobs().items()}
    values = {**known, **{name: value for name, value in knobs.items() if name in known}}
    return float(METHODS[method].facts.law(dim, int(values["method.particles"]), values))


def beta_for(dim: int, count: int, share: float = ENOUGH) -> float:
    """Return the largest beta with which noisy SVGD keeps this share of the variance, to two digits; NaN without any.

    Args:
        dim: of the standard normal.
        count: number of particles.
        share: of the exact variance.
    """

    def at(beta):
        return kept("noisy", dim, {"method.particles": count, "method.beta": beta})

    low, high = map(math.log, BETAS)
    if not at(BETAS[0]) >= share:
        return math.nan
    for _ in range(30):  # the share falls with beta
        middle = (low + high) / 2
        low, high = (middle, high) if at(math.exp(middle)) >= share else (low, middle)
    unit = 10.0 ** (math.floor(low / math.log(10)) - 1)
    return float(f"{math.floor(math.exp(low) / unit) * unit:.2g}")


def in_short(method: str, dim: int, knobs: Mapping[str, Any]) -> str:
    """Return a sentence or two: what a method keeps by its law, and what keeps 90 % if it does not; "" without a law.

    Args:
        method: its name.
        dim: of the target.
        knobs: those that differ from their defaults, by their full names.
    """
    share, count = kept(method, dim, knobs), int(knobs.get("method.particles", POINTS))
    if not math.isfinite(share) or METHODS[method].facts.single:
        return ""
    points = f"{count} points in {dim} dimensions"
    said = f"{METHODS[method].label}: by the law {points} keep {percent(share)} of a normal's variance."
    if share >= ENOUGH:
        return said
    beta = beta_for(dim, count)
    noise = f", or noisy SVGD with beta {beta:g}" if math.isfinite(beta) else ""
    return f"{said} For {percent(ENOUGH)} take SMI{noise}."


def _choices(dim: int, budget: int, want: str) -> list[Choice]:
    """Return the choices for a wish, the best first; some may take more than the budget."""
    points = max(1, min(POINTS, budget // STEPS))
    guides = max(1, min(GUIDES, budget // (STEPS * DRAWS)))
    smi = ("smi", {"method.particles": guides, "method.alpha": 0.05}, guides * DRAWS, WIDTHS)
    plain = ("svgd", {"method.particles": points}, points, MEANS)
    beta = beta_for(dim, points)
    noisy = [("noisy", {"method.particles": points, "method.beta": beta}, points, NOISE)] * math.isfinite(beta)
    found = {"sample": [smi, *noisy], "means": [plain, smi], "bands": [smi, *noisy]}[want]
    return [
        Choice(method, knobs, kept(method, dim, knobs), gradients, budget // gradients, why)
        for method, knobs, gradients, why in found
    ]


def _name(method: str, key: str) -> str:
    knob: Knob = Spec("gaussian", method=method).knobs()[key]
    return knob.label or key.rpartition(".")[2]


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
