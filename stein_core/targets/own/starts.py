"""Where particles start on a user's density: at its mode, or at the mean of a short NUTS run."""

from __future__ import annotations

from itertools import islice
from typing import Callable, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import MCMC, NUTS
from scipy.optimize import minimize

from stein_core.base.pieces import resting
from stein_core.contract.known import Mode, Start
from stein_core.contract.target import LARGE

SEARCHES = 8  # for the mode
TRIES = 100  # uniform points at most, as many as NumPyro takes, until SEARCHES of them have a finite density
PROBES = 200  # random signs, from which the diagonal of a large Hessian is estimated
DRAWS = 256  # of Laplace's approximation, to compare it with the density
WARMUP = SAMPLES = 400  # steps of NUTS
ENOUGH = 20  # draws of NUTS for each coordinate, above which their covariance is taken as it is
REJECTED = 1e100  # value of a point without a finite density: SciPy's line search cannot take infinity


def find_start(log_density: Callable, drawn: np.ndarray, seed: int = 0) -> Start:
    """Find a center and a scale of a density: Laplace's approximation if it fits, else the moments of a NUTS run.

    The search for the mode begins at `drawn` and at uniform draws in (-2, 2)^d, NumPyro's own initialisation. The
    approximation fits if log density minus log approximation hardly varies over draws of the approximation: its
    interquartile range is at most sqrt(d). A Gaussian has 0. A mode in the neck of a funnel, or a density without a
    bound, has far more.

    Above LARGE coordinates no Hessian is made. The center is then the mode of one search, and the scale is that of the
    diagonal of the curvature: an estimate, and of each coordinate alone. `note` says so.

    Args:
        log_density: theta (d,) -> scalar, differentiable twice; evaluated in the precision of `drawn`.
        drawn: (k, d) points to start from, at most 4 are used beside the uniform ones; (0, d) if there are none.
        seed: of the uniform draws, of the comparison and of NUTS.

    Raises:
        ValueError: the density or its gradient is finite at none of the points.
    """
    dim, rng = drawn.shape[1], np.random.default_rng(seed)
    compiled = jax.jit(jax.value_and_grad(lambda theta: -log_density(theta)))

    spent = [0]

    @resting
    def evaluate(theta):
        spent[0] += 1
        value, slope = compiled(jnp.asarray(theta, drawn.dtype))
        value, slope = float(value), np.asarray(slope, float)
        return (value, slope) if np.isfinite(value) and np.isfinite(slope).all() else (REJECTED, np.zeros(dim))

    points = [*np.float64(drawn[: SEARCHES // 2]), *rng.uniform(-2.0, 2.0, (TRIES, dim))]
    starts = list(islice((theta for theta in points if evaluate(theta)[0] < REJECTED), SEARCHES))
    if not starts:
        raise ValueError(
            f"the log density or its gradient is not finite at any of {len(points)} points: draws of the prior, and of "
            "uniform numbers in (-2, 2) for each unconstrained coordinate. Check the data and the priors."
        )
    if dim > LARGE:
        return _diagonal(log_density, evaluate, starts[0], rng, spent)
    curvature = _hessian(log_density, jnp.asarray(starts[0], drawn.dtype), spent)
    found = [_descend(evaluate, curvature, theta) for theta in starts]
    modes = [mode for mode in found if mode.root is not None]
    best = min(modes, key=lambda mode: mode.value, default=None)
    if best and _spread_of_weights(evaluate, best, rng) <= np.sqrt(dim):
        sds = np.linalg.norm(best.root, axis=1)
        return Start(best.theta, sds, root=best.root, modes=_shares(modes), gradients=spent[0])
    why = (
        "the normal approximation there is far from the density"
        if best
        else "the density has no bound, or no curvature where it is highest"
    )
    lowest = min(starts, key=lambda theta: evaluate(theta)[0])  # of the negative log density
    center, scale, root, steps = _nuts(log_density, jnp.asarray(lowest, drawn.dtype), seed)
    return Start(
        center,
        scale,
        root=root,
        note=f"The mode is no place to start: {why}. Particles start around the mean of a short run of NUTS instead "
        f"(one chain, {WARMUP} + {SAMPLES} steps), with its standard deviations; both are rough.",
        gradients=spent[0] + steps,
    )


class _Found(NamedTuple):
    """A point where the search ended.

    Args:
        theta: (d,).
        value: negative log density there.
        root: R with R R^T the inverse Hessian of `value`; None if the Hessian is not positive definite.
    """

    theta: np.ndarray
    value: float
    root: np.ndarray | None


def _diagonal(log_density, evaluate, theta, rng, spent) -> Start:
    """Return the mode, and scales from the diagonal of the Hessian there, estimated from random signs.

    The mean of v * (H v) over signs v is the diagonal (Bekas, Kokiopoulou and Saad 2007).
    """
    theta = minimize(evaluate, theta, jac=True, method="L-BFGS-B", options={"maxiter": 1000, "maxfun": 2000}).x
    slope = jax.grad(lambda theta: -log_density(theta))
    signs = jnp.asarray(rng.choice([-1.0, 1.0], (PROBES, len(theta))))
    at = jnp.asarray(theta, signs.dtype)
    product = jax.jit(lambda v: v * jax.vjp(slope, at)[1](v)[0])  # H is symmetric
    curvature = np.mean([np.asarray(product(v), float) for v in signs], axis=0)
    spent[0] += 2 * PROBES
    positive = curvature[curvature > 0]
    least = 1e-3 * np.median(positive) if len(positive) else 1.0
    note = (
        f"{len(theta):,} coordinates: the start is a mode, with the curvature of each coordinate alone. Guides see no "
        "correlations."
    )
    return Start(theta, 1 / np.sqrt(np.maximum(curvature, least)), note=note, gradients=spent[0])


def _hessian(log_density, theta, spent):
    """Return the compiled Hessian of -log_density. Without a forward mode, as for an ODE, it is reverse over
    reverse. Its cost is added to spent[0]."""
    slope = jax.grad(lambda theta: -log_density(theta))
    try:
        compiled = jax.jit(jax.jacfwd(slope))
        compiled(theta)
    except TypeError:
        compiled = jax.jit(jax.jacrev(slope))

    def hessian(at):
        spent[0] += len(theta)
        return np.asarray(compiled(jnp.asarray(at, theta.dtype)), float)

    return hessian


def _descend(evaluate, hessian, theta) -> _Found:
    """Minimise: L-BFGS finds the way, then Newton steps, which do not depend on the units of a coordinate."""
    theta = minimize(evaluate, theta, jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
    value, slope = evaluate(theta)
    root = None
    for _ in range(50):
        curvature = hessian(theta)
        if not np.isfinite(curvature).all():
            return _Found(theta, value, None)
        unit = 1.0 / np.sqrt(np.maximum(np.abs(np.diagonal(curvature)), 1e-16))
        values, vectors = np.linalg.eigh(curvature * np.outer(unit, unit))
        root = unit[:, None] * vectors / np.sqrt(values) if values[0] > 1e-10 else None
        step = -unit * (vectors @ (vectors.T @ (unit * slope) / np.maximum(np.abs(values), 1e-10)))
        if root is not None and -slope @ step < 1e-9:  # nats, twice
            break
        for fraction in 0.5 ** np.arange(40):
            new_value, new_slope = evaluate(theta + fraction * step)
            if new_value < value:
                break
        else:
            break
        theta, value, slope = theta + fraction * step, new_value, new_slope
    return _Found(theta, value, root)


def _shares(found: list[_Found]) -> tuple[Mode, ...]:
    """Return the different ones of these modes, the highest first, with their shares of the mass."""
    apart: list[_Found] = []
    for one in sorted(found, key=lambda one: one.value):
        if all(np.linalg.norm(np.linalg.solve(other.root, one.theta - other.theta)) > 1 for other in apart):
            apart.append(one)
    logs = np.array([np.linalg.slogdet(one.root)[1] - one.value for one in apart])
    shares = np.exp(logs - logs.max())
    return tuple(Mode(one.theta, one.root, float(share)) for one, share in zip(apart, shares / shares.sum()))


def _spread_of_weights(evaluate, mode, rng) -> float:
    """Return the interquartile range of log density minus log approximation over the approximation's draws."""
    z = rng.standard_normal((DRAWS, len(mode.theta)))
    weights = [0.5 * row @ row - evaluate(mode.theta + mode.root @ row)[0] for row in z]
    return float(np.subtract(*np.percentile(weights, [75, 25])))


def _nuts(log_density, theta, seed):
    """Return center, standard deviations and root of a short run, and the gradients that it took.

    If the draws are few, the scores say more of the covariance than the draws: see `matched`. A coordinate that never
    moved has standard deviation 1.
    """
    kernel = NUTS(potential_fn=lambda theta: -log_density(theta), target_accept_prob=0.9, max_tree_depth=7)
    sampler = MCMC(kernel, num_warmup=WARMUP, num_samples=SAMPLES, progress_bar=False)
    key = jax.random.key(seed)
    sampler.warmup(key, init_params=theta, collect_warmup=True, extra_fields=("num_steps",))
    steps = int(np.sum(sampler.get_extra_fields()["num_steps"]))
    sampler.run(sampler.post_warmup_state.rng_key, extra_fields=("num_steps",))
    steps += int(np.sum(sampler.get_extra_fields()["num_steps"]))
    draws = np.asarray(sampler.get_samples(), float)
    scale = draws.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    found = None
    if len(draws) < ENOUGH * len(theta):
        steps += len(draws)
        scores = jax.jit(jax.vmap(jax.grad(log_density)))(jnp.asarray(draws, theta.dtype))
        found = matched(draws, np.asarray(scores, float))
    if found is None:
        standard = (draws - draws.mean(axis=0)) / scale
        correlation = standard.T @ standard / len(draws)
        np.fill_diagonal(correlation, 1.0 + 1e-6)
        found = draws.mean(axis=0), scale[:, None] * np.linalg.cholesky(correlation)
    return found[0], scale, found[1], steps


def matched(draws: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return mean (d,) and root R (d, d) of the normal whose scores agree best with these, in Fisher divergence.

    Its covariance is the M with M cov(scores) M = cov(draws). For a normal posterior both are exact, even if the draws
    have another covariance or mean.

    Source: Cai et al. 2024, "Batch and match": the limit of its update without regularisation.

    Args:
        draws, scores: (n, d).

    Returns:
        None if draws or scores do not span all coordinates, or a score is not finite.
    """
    n, d = draws.shape
    unit = draws.std(axis=0)
    if n < 2 * d or not (unit > 0).all() or not np.isfinite(scores).all():
        return None
    places = np.cov(((draws - draws.mean(axis=0)) / unit).T).reshape(d, d)
    slopes = np.cov((scores * unit).T).reshape(d, d)
    values, vectors = np.linalg.eigh(slopes)
    if values[0] <= 1e-10 * values[-1]:
        return None
    half, back = (vectors * values**power @ vectors.T for power in (0.5, -0.5))
    values, vectors = np.linalg.eigh(half @ places @ half)
    if values[0] <= 1e-10 * values[-1]:
        return None
    root = unit[:, None] * (back @ vectors * values**0.25)
    return draws.mean(axis=0) + root @ (root.T @ scores.mean(axis=0)), root
