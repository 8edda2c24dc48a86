"""Fits of many data sets side by side, in one program: at the mode, with NUTS, or with a Stein method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer.hmc import hmc

from stein_core.base.noise import normal
from stein_core.contract.known import Start
from stein_core.contract.registry import METHODS
from stein_core.contract.spec import Spec
from stein_core.contract.target import Affine, Target, movable
from stein_core.posterior.fit import contradicted
from stein_core.posterior.rounds import POINT_SIZES
from stein_core.posterior.simulating import Simulator
from stein_core.runs.assembly import guide_of
from stein_core.runs.cache import alone
from stein_core.runs.runner import Stepper

DRAWS = 100  # of each fit
STEP_DRAWS, LEAST_DRAWS = 100, 5  # of all guides in a step, and of each
WARM, SAMPLES = 500, 1000  # steps of NUTS; the samples are thinned to DRAWS
NEWTON, CLOSE = 100, 1e-4  # steps to a mode, at most; and how near it is enough, in sds
NOWHERE = 1e30  # -log density of what is not finite
STEP_SIZES = tuple(size for size, _ in POINT_SIZES)  # each for a quarter of the steps
FLATTEST, STEEPEST = 1e-3, 1e10  # curvature at a mode
LEAST = 1e-3  # variance along a direction in the coordinates of a round, below which no new ones are taken

Fitted = Callable[[jax.Array, list[jax.Array]], jax.Array]
"""(seeds (b,), data of b data sets) -> draws (b, DRAWS or particles, values)."""


def fitted(
    made: Simulator,
    method: str,
    starts: np.ndarray,
    knobs: Mapping[str, Any],
    guide: str | None = None,
    steps: int = 400,
    rounds: int = 2,
) -> Fitted:
    """Return what fits many data sets at once.

    Args:
        made: the model.
        method: a registered method, "laplace" or "nuts".
        starts: (k, d) theta, of which the likeliest begins the search for a mode.
        knobs, guide: of a registered method.
        steps, rounds: of a registered method; a further round takes its coordinates from the draws of the one before,
            if those of any data set contradict them, as in `fit`.
    """
    at_mode = jax.jit(jax.vmap(partial(laplace, made.density, jnp.asarray(starts, float))))
    values = jax.jit(jax.vmap(jax.vmap(made.values)))
    if method == "nuts":
        sample = jax.jit(jax.vmap(partial(nuts, made.density)))
        return lambda seeds, data: values(sample(seeds, *at_mode(data), data))
    if method == "laplace":

        def normals(seeds, data):
            center, root = map(np.asarray, at_mode(data))
            z = [np.random.default_rng(seed).normal(size=(DRAWS, made.dim)) for seed in seeds.tolist()]
            return values(back(center, root, np.stack(z)))

        return normals
    stein = Stein(made, method, knobs, guide, steps)

    def run(seeds, data):
        center, root = map(np.asarray, at_mode(data))
        z = stein.draws(seeds, center, root, data)
        theta, again = back(center, root, z), np.full(len(z), True)
        for _ in range(rounds - 1):
            again &= [bool(np.isfinite(one).all()) and all(contradicted(one)) for one in z]
            if not again.any():
                break
            center, root = moved(center, root, np.where(again[:, None, None], z, 0.0))
            z = stein.draws(seeds, center, root, data)
            theta[again] = back(center, root, z)[again]
        return values(theta)

    return run


def laplace(density, starts, data):
    """Return mode (d,) and root (d, d) of the inverse curvature there, from the likeliest start (k, d).

    The mode is NaN if no finite density is found.
    """

    def loss(theta):
        value = -density((theta, data))
        return jnp.where(jnp.isfinite(value), value, NOWHERE)

    def seen(theta):
        values, vectors = jnp.linalg.eigh(jax.hessian(loss)(theta))
        return loss(theta), vectors.T @ jax.grad(loss)(theta), jnp.clip(jnp.abs(values), FLATTEST, STEEPEST), vectors

    def step(state):
        """Take a damped Newton step if it leads down, else damp more."""
        k, theta, damping, (here, slope, values, vectors) = state
        after = theta - vectors @ (slope / (values * (1 + damping)))
        there = seen(after)
        down = (there[0] < here) & jnp.isfinite(there[1]).all()
        now = jax.tree.map(lambda new, old: jnp.where(down, new, old), (after, there), (theta, state[3]))
        return k + 1, now[0], jnp.where(down, 0.2 * damping, 4 * damping + 0.1), now[1]

    def goes_on(state):
        k, _, damping, (_, slope, values, _) = state
        return (k < NEWTON) & (damping < 1e6) & (jnp.sum(slope**2 / values) > CLOSE**2)

    begin = starts[jnp.argmin(jax.vmap(loss)(starts))]
    _, mode, _, (here, _, values, vectors) = jax.lax.while_loop(goes_on, step, (0, begin, 0.0, seen(begin)))
    return jnp.where(here < NOWHERE, mode, jnp.nan), vectors / jnp.sqrt(values)


def nuts(density, seed, center, root, data):
    """Return thinned draws (DRAWS, d) of NUTS, which runs in the coordinates of a mode."""

    def potential(data):
        return lambda z: -density((center + root @ z, data))

    init, sample = hmc(potential_fn_gen=potential, algo="NUTS")
    key = jax.random.key(seed)
    z = jax.random.normal(key, center.shape)
    state = init(z, WARM, rng_key=jax.random.fold_in(key, 1), model_args=(data,))
    state = jax.lax.fori_loop(0, WARM, lambda _, state: sample(state, model_args=(data,)), state)

    def thinned(state, _):
        return jax.lax.fori_loop(0, SAMPLES // DRAWS, lambda _, s: sample(s, model_args=(data,)), state), None

    _, found = jax.lax.scan(lambda s, _: (lambda t: (t, t.z))(thinned(s, None)[0]), state, None, DRAWS)
    return center + found @ root.T


def of_posterior(made: Simulator, starts: np.ndarray, seed: int, n: int) -> np.ndarray:
    """Return n draws (n, d) of the posterior of the model's own data, from as many chains of NUTS as it takes."""
    chains = -(-n // DRAWS)
    center, root = jax.jit(partial(laplace, made.alone, jnp.asarray(starts, float)))(made.data)
    sample = jax.jit(jax.vmap(partial(nuts, made.alone), (0, None, None, None)))
    return np.asarray(sample(np.uint32(seed + np.arange(chains)), center, root, made.data)).reshape(-1, made.dim)[:n]


def back(center, root, z):
    """Return draws (b, n, d) in their own coordinates."""
    return center[:, None] + z @ np.swapaxes(root, 1, 2)


def moved(center, root, z):
    """Return the coordinates with the means and covariances of draws z (b, n, d) in those of `center` and `root`."""
    away = z - z.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.swapaxes(away, 1, 2) @ away / (z.shape[1] - 1))
    new = root @ (vectors * np.sqrt(np.maximum(values, LEAST))[:, None])
    return center + np.squeeze(root @ z.mean(axis=1)[..., None], -1), new


class Stein:
    """A Stein method on many data sets: the program of a Stepper, over seeds and data."""

    def __init__(self, made: Simulator, method: str, knobs: Mapping[str, Any], guide: str | None, steps: int):
        example = [jnp.zeros(one.shape, one.dtype) for one in made.data]

        def remake(data):
            return replace(target, log_density=lambda theta: made.density((theta, data)))

        count, single = int(knobs["method.particles"]), METHODS[method].facts.single
        start = Start(np.zeros(made.dim), np.ones(made.dim), root=np.eye(made.dim))
        target = Target(
            lambda theta: made.density((theta, example)),
            start,
            tuple(f"theta[{i}]" for i in range(made.dim)),
            constrain=lambda theta: {"theta": theta},
            data=example,
            remake=remake,
        )
        spec = Spec(
            movable(target, "whitened"),
            method=method,
            guide=guide,
            draws=max(LEAST_DRAWS, STEP_DRAWS // (1 if single else count)),
            capacity=count + count % 2,
        )
        self.stepper, self.steps = alone(spec), steps
        self.knobs = [self.stepper.knobs_of({**knobs, "method.step_size": size}).traced for size in STEP_SIZES]
        self.count = 1 if single else count
        whole = partial(Stepper._advance, self.stepper)
        self._advance = jax.jit(jax.vmap(whole, (0, None, 0, None)))
        self._reset = jax.jit(jax.vmap(partial(Stepper._reset, self.stepper), (0, None, 0)))
        self._draws = jax.jit(jax.vmap(self._drawn))

    def draws(self, seeds, center, root, data):
        """Return draws z (b, n, d) in the coordinates of each data set."""
        affine = Affine(center, root, np.linalg.inv(root), np.linalg.slogdet(root)[1])
        given = {"affine": affine, "own": data}
        with jax.default_matmul_precision("highest"):
            state = self._reset(seeds.astype(np.uint32), self.knobs[0], given)
            for k, knobs in enumerate(self.knobs):
                quarter = (k + 1) * self.steps // len(STEP_SIZES) - k * self.steps // len(STEP_SIZES)
                state = self._advance(state, knobs, given, np.int32(quarter))[0]
            return np.asarray(self._draws(seeds, state.particles))

    def _drawn(self, seed, psi):
        guide = guide_of(self.stepper.spec, self.knobs[-1])
        if not self.stepper.spec.has_density:
            return guide.location(psi[: self.count])
        which = jnp.arange(DRAWS) % self.count  # as many of each guide
        eps = normal(jax.random.key(seed), (DRAWS,), self.stepper.spec.dim + guide.noise)
        return jax.vmap(guide.sample)(psi[which], eps)
