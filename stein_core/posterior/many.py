"""Fits of many data sets side by side, in one program: at the mode, with NUTS, or with a Stein method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.optimize import minimize
from numpyro.infer.hmc import hmc

from stein_core.contract.known import Start
from stein_core.contract.registry import METHODS
from stein_core.contract.spec import Spec, capacity_for
from stein_core.contract.target import Affine, Target, movable
from stein_core.posterior.simulating import Simulator
from stein_core.runs.assembly import guide_of
from stein_core.runs.cache import alone
from stein_core.runs.runner import Stepper

DRAWS = 100  # of each fit
STEP_SIZES = (0.1, 0.03, 0.01, 0.003)  # as in `fit`: each for a quarter of the steps
WARM, SAMPLES = 500, 1000  # steps of NUTS; the samples are thinned to DRAWS
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
    steps: int = 1000,
    rounds: int = 2,
) -> Fitted:
    """Return what fits many data sets at once.

    Args:
        made: the model.
        method: a registered method, "laplace" or "nuts".
        starts: (k, d) theta, of which the likeliest begins the search for a mode.
        knobs, guide: of a registered method.
        steps, rounds: of a registered method; a further round takes its coordinates from the draws of the one before.
    """
    at_mode = jax.jit(jax.vmap(partial(laplace, made.density, jnp.asarray(starts, float))))
    values = jax.jit(jax.vmap(jax.vmap(made.values)))
    if method == "nuts":
        sample = jax.jit(jax.vmap(partial(nuts, made.density)))
        return lambda seeds, data: values(sample(seeds, *at_mode(data), data))
    if method == "laplace":
        normal = jax.jit(jax.vmap(normal_draws))
        return lambda seeds, data: values(normal(seeds, *at_mode(data)))
    stein = Stein(made, method, knobs, guide, steps)

    def run(seeds, data):
        center, root = at_mode(data)
        z = stein.draws(seeds, center, root, data)
        for _ in range(rounds - 1):
            center, root = jax.vmap(moved)(center, root, z)
            z = stein.draws(seeds, center, root, data)
        return values(jax.vmap(lambda c, r, z: c + z @ r.T)(center, root, z))

    return run


def laplace(density, starts, data):
    """Return mode (d,) and root (d, d) of the inverse curvature there, from the likeliest start (k, d)."""

    def loss(theta):
        value = -density((theta, data))
        return jnp.where(jnp.isfinite(value), value, 1e30)

    begin = starts[jnp.argmin(jax.vmap(loss)(starts))]
    mode = minimize(loss, begin, method="BFGS", options={"maxiter": 300}).x
    values, vectors = jnp.linalg.eigh(jax.hessian(loss)(mode))
    return mode, vectors / jnp.sqrt(jnp.clip(jnp.abs(values), FLATTEST, STEEPEST))


def normal_draws(seed, center, root):
    """Return draws (DRAWS, d) of a normal."""
    return center + jax.random.normal(jax.random.key(seed), (DRAWS, len(center))) @ root.T


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


def moved(center, root, z):
    """Return the coordinates with the mean and covariance of draws z (n, d) in those of `center` and `root`."""
    mean, (values, vectors) = z.mean(axis=0), jnp.linalg.eigh(jnp.atleast_2d(jnp.cov(z.T)))
    return center + root @ mean, root @ (vectors * jnp.sqrt(jnp.maximum(values, LEAST)))


class Stein:
    """A Stein method on many data sets: the program of a Stepper, over seeds and data."""

    def __init__(self, made: Simulator, method: str, knobs: Mapping[str, Any], guide: str | None, steps: int):
        example = [jnp.zeros(one.shape, one.dtype) for one in made.data]

        def remake(data):
            return replace(target, log_density=lambda theta: made.density((theta, data)))

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
            draws=20,
            capacity=capacity_for(knobs["method.particles"]),
        )
        self.stepper, self.steps = alone(spec), steps
        self.knobs = [self.stepper.knobs_of({**knobs, "method.step_size": size}).traced for size in STEP_SIZES]
        self.count = 1 if METHODS[method].facts.single else int(knobs["method.particles"])
        whole = partial(Stepper._advance, self.stepper)
        self._advance = jax.jit(jax.vmap(whole, (0, None, 0, None)))
        self._reset = jax.jit(jax.vmap(partial(Stepper._reset, self.stepper), (0, None, 0)))
        self._draws = jax.jit(jax.vmap(self._drawn))

    def draws(self, seeds, center, root, data):
        """Return draws z (b, n, d) in the coordinates of each data set."""
        inverse = jnp.linalg.inv(root)
        affine = Affine(center, root, inverse, -jnp.linalg.slogdet(inverse)[1])
        given = {"affine": affine, "own": data}
        with jax.default_matmul_precision("highest"):
            state = self._reset(seeds.astype(np.uint32), self.knobs[0], given)
            for k, knobs in enumerate(self.knobs):
                quarter = (k + 1) * self.steps // len(STEP_SIZES) - k * self.steps // len(STEP_SIZES)
                state = self._advance(state, knobs, given, np.int32(quarter))[0]
            return self._draws(seeds, state.particles[:, : self.count])

    def _drawn(self, seed, psi):
        guide = guide_of(self.stepper.spec, self.knobs[-1])
        if not self.stepper.spec.has_density:
            return guide.location(psi)
        which = jnp.arange(DRAWS) % len(psi)  # as many of each guide
        eps = jax.random.normal(jax.random.key(seed), (DRAWS, self.stepper.spec.dim + guide.noise))
        return jax.vmap(guide.sample)(psi[which], eps)
