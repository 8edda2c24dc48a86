"""Figures 1 and 9 of Ba et al.: a network of two hidden layers, SVGD, damped SVGD and MMD-descent against HMC."""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from stein_core import theory
from stein_core.base.samples import stein_traces
from stein_core.contract.known import Start, Truth
from stein_core.contract.spec import Spec
from stein_core.contract.target import Target
from stein_core.papers.tables.table import TABLES, Cell, Claim, Figure
from stein_core.posterior.reference import nuts
from stein_core.runs.cache import compile

CLUSTERS, NOISE = ((-2.5, -1.5), (1.5, 2.5)), 0.1
GAP = np.linspace(-1.0, 1.0, 21)
TIMES = {"SVGD": None, "half damped": 2.0, "damped": 1.0}
UPDATES = (*TIMES, "MMD-descent")
DIFFERS = (
    "The paper has only figures. Its text says that SVGD is far too narrow and that full damping is like HMC.",
    "The reduced protocol has 20 units a layer, 20 particles and 10,000 steps; the paper has 100, 100 and 50,000.",
    "The paper does not name the activation: tanh here. Its noise 0.01 is read as a variance.",
    "The truth is NUTS, 2 chains of 300 + 300 steps; the paper has 50 chains of HMC. The data are drawn anew.",
    "MMD-descent is pulled by 200 of the draws of NUTS, anew in each step. The paper does not say how many it takes.",
    "MMD-descent keeps the variance of the weights. Its functions miss the data: their band there is far too wide.",
    "The band in the gap is the mean sd of the function between the clusters. The Stein trace stands beside its law.",
)


def sizes(width: int) -> tuple[tuple[int, int], ...]:
    """Return (inputs, outputs) of each layer."""
    return (1, width), (width, width), (width, 1)


def apply(theta, x, width: int):
    """Return f (k,) at x (k,): each layer is (W a + b) / sqrt(inputs + 1), weights and biases N(0, 1)."""
    a, at = x[:, None], 0
    for number, (inputs, outputs) in enumerate(sizes(width)):
        w = theta[at : at + inputs * outputs].reshape(inputs, outputs)
        b = theta[at + inputs * outputs : at + (inputs + 1) * outputs]
        at += (inputs + 1) * outputs
        a = (a @ w + b) / np.sqrt(inputs + 1)
        a = jnp.tanh(a) if number < 2 else a
    return a[:, 0]


@lru_cache(maxsize=4)
def target(width: int, sampled: bool = False) -> Target:
    """Return the posterior of the network on 20 points of a function that it draws itself.

    Args:
        width: units of each hidden layer.
        sampled: whether its exact draws are those of NUTS.
    """
    draw, dim = np.random.default_rng(0), sum((i + 1) * o for i, o in sizes(width))
    x = np.concatenate([draw.uniform(*cluster, 10) for cluster in CLUSTERS]).astype(np.float32)
    truth = np.asarray(apply(np.float32(draw.normal(size=dim)), x, width))
    y = np.float32(truth + NOISE * draw.normal(size=len(x)))

    def make(data):
        inputs, outputs, draws = data

        def log_density(theta):
            likelihood = jnp.sum(norm.logpdf(outputs, apply(theta, inputs, width), NOISE))
            return likelihood + jnp.sum(norm.logpdf(theta))

        return Target(
            log_density=log_density,
            start=Start(np.zeros(dim), np.ones(dim)),
            extent=(-3.0, 3.0, -3.0, 3.0),
            coordinates=tuple(f"weight {i}" for i in range(dim)),
            constrain=lambda theta: {"weights": theta},
            data=data,
            remake=make,
            truth=Truth(sample=(lambda key, n: jax.random.choice(key, draws, (n,))) if sampled else None),
        )

    return make((x, y, reference(width) if sampled else None))


@lru_cache(maxsize=2)
def reference(width: int) -> np.ndarray:
    """Return the draws (600, d) of NUTS."""
    posterior = target(width)
    return nuts(posterior, 0, chains=2, warmup=300, samples=300).reshape(-1, posterior.dim).astype(np.float32)


def factor(variant: str, n: int, dim: int) -> float:
    """Return lambda: 1, or min(1, f(1) - c f'(1) / gamma)."""
    times = TIMES[variant]
    return 1.0 if times is None else min(1.0, float(np.exp(-1.0)) * (1 + times * n / dim))


def run(cell: Cell) -> dict[str, float]:
    """Return the band between and in the clusters, the Stein trace, and the mean variance of the weights."""
    width, n, steps = cell["width"], cell["particles"], cell["steps"]
    posterior = target(width)
    if cell.column == "NUTS":
        x = reference(width)
    else:
        knobs = {"method.particles": n, "method.step_size": cell["rate"], "bandwidth.rule": "median"}
        method = "damped" if cell.column in TIMES else "mmd"
        if method == "damped":
            knobs |= {"method.damping": "free", "method.lambda_": factor(cell.column, n, posterior.dim)}
        else:
            posterior = target(width, sampled=True)
        spec = Spec(posterior, method=method, optimizer="adam", capacity=n + n % 2)
        stepper = compile(spec, look=False, measure=False)
        state = stepper.advance(stepper.reset(cell.seed, knobs), knobs, steps)
        if int(state.step) < steps:
            return {"diverged at": float(state.step)}
        x = np.asarray(state.particles)[:n]
    scores = np.float64(jax.lax.map(jax.grad(posterior.log_density), x))
    band = lambda at: float(
        np.float64(jax.lax.map(lambda w: apply(w, np.float32(at), width), x)).std(axis=0, ddof=1).mean()
    )
    inside = posterior.data[0]
    trace = stein_traces(x, scores).mean()
    return {
        "gap": band(GAP), "data": band(inside), "stein trace": float(trace), "variance": float(x.var(0, ddof=1).mean())
    }  # fmt: skip


def claims() -> list[Claim]:
    """Return bands, variance and Stein trace of NUTS and of each update, at both sizes."""
    found = []
    for row, n, width in (("reduced", 20, 20), ("paper", 100, 100)):
        dim = sum((i + 1) * o for i, o in sizes(width))
        for column in ("NUTS", *UPDATES):
            make = partial(Claim, row, table=None, at=("", ""), cells=column)
            found.append(make(label=f"{column}: band in the gap", metric="gap"))
            found.append(make(label=f"{column}: band at the data", metric="data"))
            found.append(make(label=f"{column}: variance of the weights", metric="variance"))
            law = 1.0
            if column in TIMES:
                law = theory.simplex_variance(dim, n, "rbf", "median", 1.0, damping=factor(column, n, dim))
            found.append(make(label=f"{column}: Stein trace", metric="stein trace", law=law))
    return found


@TABLES.register(
    "collapse_bnn",
    label="A network of two layers against HMC",
    reference="Ba et al. 2022, fig. 1 and 9",
    run=run,
    claims=claims,
    differs=DIFFERS,
    figure=Figure(
        "Band of the function between the clusters, as in figures 1 and 9",
        "mean sd",
        "gap",
        {"NUTS": "langevin", "SVGD": "svgd", "half damped": "wgd", "damped": "damped", "MMD-descent": "mmd"},
    ),
)
def collapse_bnn(full: bool, seeds: int | None = None) -> list[Cell]:
    """SVGD, its dampings, MMD-descent and NUTS. Reduced: 20 units a layer, 2 seeds; full: 100 units, 50,000 steps."""
    size, steps = (100, 50_000) if full else (20, 10_000)
    settings = {"width": size, "particles": size, "steps": steps}
    make = partial(Cell, "collapse_bnn", "paper" if full else "reduced")
    pairs = (*settings.items(), ("rate", 5e-3))
    return [make("NUTS", 0, pairs, 10.0)] + [
        make(variant, seed, pairs) for variant in UPDATES for seed in range(seeds or 2)
    ]
