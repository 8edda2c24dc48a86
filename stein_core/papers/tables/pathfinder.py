"""Multi-path Pathfinder of BlackJAX (Zhang et al. 2022), with its gradients counted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from stein_core.base.arviz_api import smoothed
from stein_core.contract.target import Target

PATHS, STEPS = 20, 200  # of L-BFGS: paths, and most steps of each
SEEN, POOL, DRAWS = 25, 200, 4000  # draws for the ELBO of a step, draws of a path, and draws in the end
MEMORY, LEAST_SLOPE, LEAST_FALL = 10, 1e-8, 1e-10  # pairs of L-BFGS, and where it stops
WIDE = 2.0  # starts are uniform within +- this


def pathfinder(target: Target, seed: int) -> tuple[np.ndarray, int]:
    """Run L-BFGS from several starts and draw from the best normal of each path, by smoothed weights.

    Search, normals and their draws are BlackJAX's. Its own loop over the normals of a path is not used: it can wait for
    ever on two cores, since two batches of matrix factorisations then share two threads (JAX 0.10).

    Args:
        target: the posterior.
        seed: of starts and draws.

    Returns:
        draws (n, d) of theta, and the number of gradients. Densities without a gradient are not counted.

    Raises:
        ValueError: no path has a finite ELBO.
    """
    path = jax.jit(partial(_path, target.log_density))
    rng, keys = np.random.default_rng(seed), jax.random.split(jax.random.key(seed), PATHS)
    found = [path(key, jnp.asarray(rng.uniform(-WIDE, WIDE, target.dim))) for key in keys]
    good = [(np.asarray(draws), np.asarray(ratios)) for draws, ratios, elbo, _ in found if np.isfinite(elbo)]
    if not good:
        raise ValueError("no path of Pathfinder has a finite ELBO.")
    draws, ratios = (np.concatenate(parts) for parts in zip(*good))
    usable = np.isfinite(ratios)
    chosen = rng.choice(int(usable.sum()), DRAWS, p=smoothed(ratios[usable]))
    return draws[usable][chosen], sum(int(spent) for *_, spent in found)


def _path(density: Callable, key: jax.Array, start: jax.Array):
    """Return POOL draws (n, d) of the normal with the best ELBO of a path, their log weights, that ELBO, and how many
    gradients it took (Zhang et al. 2022, algorithm 1)."""
    from blackjax.optimizers.lbfgs import bfgs_sample, lbfgs_inverse_hessian_factors, minimize_lbfgs

    stops = {"maxiter": STEPS, "maxcor": MEMORY, "gtol": LEAST_SLOPE, "ftol": LEAST_FALL}
    (_, status), past = minimize_lbfgs(lambda theta: -density(theta), start, **stops)
    moves, turns = (
        jnp.pad(jnp.where(past.update_mask[1:], jnp.diff(each, axis=0), 0.0), ((MEMORY, 0), (0, 0)))
        for each in (past.x, past.g)
    )

    def normal(key, at, count):
        window = [jax.lax.dynamic_slice_in_dim(each, at, MEMORY).T for each in (moves, turns)]
        factors = lbfgs_inverse_hessian_factors(*window, past.alpha[at])
        draws, log_q = bfgs_sample(key, count, past.x[at], past.g[at], past.alpha[at], *factors)
        return draws, jax.vmap(density)(draws) - log_q

    first, second = jax.random.split(key)
    elbos = jax.lax.map(lambda at: jnp.mean(normal(jax.random.fold_in(first, at), at, SEEN)[1]), jnp.arange(STEPS + 1))
    elbos = jnp.where((jnp.arange(STEPS + 1) < status.iter_num) & jnp.isfinite(elbos), elbos, -jnp.inf)
    best = jnp.argmax(elbos)
    return *normal(second, best, POOL), elbos[best], gradients_of(density, start)


def gradients_of(density: Callable, start: jax.Array, steps: int = STEPS) -> jax.Array:
    """Return how many gradients the L-BFGS of a path takes: BlackJAX does not tell.

    It takes the steps of BlackJAX's own loop, with the same parts of Optax and the same stops.

    Args:
        density: theta (d,) -> scalar.
        start: (d,).
        steps: most steps.
    """
    loss = lambda theta: -density(theta)  # noqa: E731
    solver = optax.lbfgs(memory_size=MEMORY, linesearch=optax.scale_by_zoom_linesearch(max_linesearch_steps=1000))
    known = optax.value_and_grad_from_state(loss)

    def step(carry):
        theta, state, count, spent, _ = carry
        value, slope = known(theta, state=state)
        move, after = solver.update(slope, state, theta, value=value, grad=slope, value_fn=loss)
        new = theta + move
        there = loss(new)
        less = jnp.abs(value - there) / jnp.maximum(jnp.maximum(jnp.abs(value), jnp.abs(there)), 1.0)
        goes_on = (jnp.linalg.norm(slope) > LEAST_SLOPE) & (less > LEAST_FALL)
        tried = optax.tree.get(after, "num_linesearch_steps")
        return new, after, count + 1, (spent + tried + 1).astype(jnp.int32), goes_on

    first = (start, solver.init(start), 0, jnp.int32(1), True)
    return jax.lax.while_loop(lambda carry: carry[4] & (carry[2] < steps), step, first)[3]
