"""Figure 10 of Ba et al.: damped SVGD on a logistic regression of 100 weights, and its Stein trace."""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import numpy as np

from stein_core import theory
from stein_core.base.samples import stein_traces
from stein_core.contract.spec import Spec
from stein_core.contract.target import Target
from stein_core.papers.tables.logistic import fixed_prior
from stein_core.papers.tables.table import TABLES, Cell, Claim, Figure
from stein_core.posterior.reference import nuts
from stein_core.runs.cache import compile

DIM, ROWS = 100, 500
PARTICLES = (10, 25, 50, 100)
STEPS = 4000
VARIANTS = ("SVGD", "half damped", "damped", "lambda = 0")
DIFFERS = (
    "The paper has only the figure, so no published number stands here. Its text says that damping overestimates the "
    "variance for few particles, and that lambda = 0 diverges.",
    "The Stein trace stands beside the law of equal distances, a closed form: damping sets that trace to 1, and not "
    "the variance.",
    "The truth is NUTS, 4 chains of 1,000 draws; the paper has Langevin chains. The data are drawn anew.",
)


@lru_cache(maxsize=1)
def target() -> Target:
    """Return the posterior: 500 rows of signs, of length 1, true weights 1, prior N(0, I)."""
    draw = np.random.default_rng(0)
    x = draw.choice([-1.0, 1.0], size=(ROWS, DIM)) / np.sqrt(DIM)
    y = draw.random(ROWS) < 1 / (1 + np.exp(-x.sum(axis=1)))
    return fixed_prior(x, y)


def factor(variant: str, n: int) -> float:
    """Return lambda of a variant: 1, or min(1, f(1) - c f'(1) / gamma) with c = 1 (damped) or 2 (half), or 0."""
    times = {"half damped": 2.0, "damped": 1.0}
    if variant in times:
        return min(1.0, np.exp(-1.0) * (1 + times[variant] * n / DIM))
    return {"SVGD": 1.0, "lambda = 0": 0.0}[variant]


def law(variant: str, n: int) -> float:
    """Return the Stein trace at rest with equal distances, NaN if there is none."""
    return theory.simplex_variance(DIM, n, "rbf", "median", 1.0, damping=factor(variant, n))


def run(cell: Cell) -> dict[str, float]:
    """Return the mean variance over the weights, 1/(n-1), and for particles the Stein trace and the law's."""
    posterior = target()
    if cell.row == "truth":
        draws = nuts(posterior, cell.seed).reshape(-1, DIM)
        return {"variance": float(draws.var(axis=0, ddof=1).mean())}
    n = cell["particles"]
    knobs = {
        "method.particles": n, "method.step_size": 1.0, "bandwidth.rule": "median", "method.damping": "free",
        "method.lambda_": factor(cell.column, n),
    }  # fmt: skip
    spec = Spec(posterior, method="damped", optimizer="sgd", capacity=n + n % 2)
    stepper = compile(spec, look=False, measure=False)
    state = stepper.advance(stepper.reset(cell.seed, knobs), knobs, STEPS)
    if int(state.step) < STEPS:
        return {"variance": np.nan, "stein trace": np.nan, "diverged at": float(state.step)}
    x = np.asarray(state.particles)[:n]
    scores = np.float64(jax.vmap(jax.grad(posterior.log_density))(x))
    trace = stein_traces(x, scores).mean()
    return {"variance": float(x.var(axis=0, ddof=1).mean()), "stein trace": float(trace)}


def claims() -> list[Claim]:
    """Return the truth's variance, then variance and Stein trace of each variant."""
    found = [Claim("truth", "variance", None, ("", ""), "NUTS", "variance")]
    for n in PARTICLES:
        for variant in VARIANTS:
            at = (f"n = {n}", None, ("", ""), variant)
            row, table, place, column = at
            found.append(Claim(row, f"{variant}: variance", table, place, column, "variance"))
            text = "Beside it the law of equal distances."
            found.append(
                Claim(row, f"{variant}: Stein trace", table, place, column, "stein trace", text, law=law(variant, n))
            )
        found.append(Claim(f"n = {n}", "lambda = 0: diverged at step", None, ("", ""), "lambda = 0", "diverged at"))
    return found


@TABLES.register(
    "damped",
    label="Damped SVGD",
    reference="Ba et al. 2022, fig. 10",
    run=run,
    claims=claims,
    differs=DIFFERS,
    figure=Figure(
        "Variance of the weights, as in figure 10 (b); the line is the truth",
        "mean variance",
        "variance",
        {"SVGD": "svgd", "half damped": "wgd", "damped": "damped"},
        ("truth", "NUTS"),
    ),
)
def damped(full: bool, seeds: int | None = None) -> list[Cell]:
    """Four updates. Reduced: 10 and 25 particles, 3 seeds; full: up to 100 particles, 10 seeds."""
    cells = [Cell("damped", "truth", "NUTS", 0, cost=3.0)]
    for n in PARTICLES if full else PARTICLES[:2]:
        for variant in VARIANTS:
            make = partial(Cell, "damped", f"n = {n}", variant)
            cells += [make(seed, (("particles", n),), n / 10) for seed in range(seeds or (10 if full else 3))]
    return cells
