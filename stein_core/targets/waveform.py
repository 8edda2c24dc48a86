"""Posteriors on which the semi-implicit papers compare: a logistic regression and a conditioned diffusion."""

from functools import lru_cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.contract.knobs import Option
from stein_core.contract.known import Start, Truth
from stein_core.contract.registry import TARGETS
from stein_core.contract.target import Target
from stein_core.targets.data import downloads

REFERENCE = Path(__file__).with_name("waveform_reference.npz")  # of papers/waveform.py
INPUTS = 22


@lru_cache(maxsize=1)
def waveform_reference() -> np.ndarray | None:
    """Return 1,000 draws (1000, 22) of NUTS on the target `waveform`; None before `papers.waveform` has run."""
    if not REFERENCE.is_file():
        return None
    with np.load(REFERENCE, allow_pickle=False) as file:
        return file["draws"]


FAR = "The start is around 0, which is far from the mass in the first coordinate."


@jax.custom_jvp
def _softplus(x):
    """Return log(1 + exp(x)). JAX's own derivative of it takes three times as many exponentials."""
    return jax.nn.softplus(x)


_softplus.defjvp(lambda x, slope: (_softplus(*x), jax.nn.sigmoid(*x) * slope[0]))


@TARGETS.register(
    "waveform",
    label="Waveform regression",
    reference="Yin & Zhou 2018; KSIVI, sec. 6.2",
    dims=(INPUTS, INPUTS),
    default_dim=INPUTS,
    data=downloads.waveform,
    sampled=False,
    listed=False,
)
def waveform(dim, *, data):
    """Logistic regression of 400 waveforms on 21 inputs and a constant, weights N(0, 100). Its reference: 1,000 draws
    of NUTS."""
    x, y = (jnp.asarray(each, float) for each in data)

    def log_prior(theta):
        return -0.005 * jnp.sum(theta**2)

    def log_density(theta):
        logits = x @ theta
        return jnp.sum(y * logits - _softplus(logits)) + log_prior(theta)

    return Target(
        log_density=log_density,
        log_prior=log_prior,
        start=Start(np.zeros(dim), np.ones(dim), note=FAR),
        truth=Truth(reference=waveform_reference()),
        extent=(-1.0, 11.0, -4.0, 4.0),
        coordinates=("constant", *(f"weight {i}" for i in range(1, dim))),
        constrain=lambda theta: {"weights": theta},
    )


BETA, NOISE, EVERY = 10.0, 0.1, 5  # drift's factor, sd of an observation, times from one observation to the next
SIMULATED = Option(
    "simulated",
    "same",
    choices=("same", "as coded"),
    label="drift of the data",
    help="the model's, or as the published code has it: without 1 / (1 + u^2)",
)


@lru_cache(maxsize=8)
def _observed(dim: int, simulated: str) -> np.ndarray:
    """Return the observations (dim / 5,) of a path, at every fifth time."""
    draw, dt, u, path = np.random.default_rng(2022), 1.0 / dim, 0.0, []
    for _ in range(dim):
        drift = BETA * u * (1 - u**2) / (1.0 if simulated == "as coded" else 1 + u**2)
        u = u + drift * dt + np.sqrt(dt) * draw.normal()
        path.append(u)
    return np.array(path)[EVERY - 1 :: EVERY] + NOISE * draw.normal(size=dim // EVERY)


@TARGETS.register(
    "diffusion",
    label="Conditioned diffusion",
    reference="Detommaso et al. 2018; KSIVI, sec. 6.3",
    dims=(5, 1000),
    default_dim=100,
    dim_step=EVERY,
    sampled=False,
    options=(SIMULATED,),
)
def diffusion(dim, *, simulated):
    """A path of du = 10 u (1 - u^2) / (1 + u^2) dt + dw on [0, 1] from u = 0, seen at every fifth time with noise of sd
    0.1. The data are a path of our own, for the paper's seed belongs to another generator."""
    dt, seen = 1.0 / dim, _observed(dim, simulated)

    def log_density(theta):
        before = jnp.concatenate([jnp.zeros(1), theta[:-1]])
        moves = theta - before - dt * BETA * before * (1 - before**2) / (1 + before**2)
        misfit = theta[EVERY - 1 :: EVERY] - jnp.asarray(seen, float)
        return -0.5 * jnp.sum(moves**2) / dt - 0.5 * jnp.sum(misfit**2) / NOISE**2

    times = (np.arange(dim) + 1) * dt
    return Target(
        log_density=log_density,
        start=Start(np.zeros(dim), np.ones(dim)),
        extent=(-2.0, 2.0, -2.0, 2.0),
        coordinates=tuple(f"u({time:.3f})" for time in times),
        constrain=lambda theta: {"path": theta},
    )
