"""Targets of many rows of data: the density of all of them, and an unbiased estimate from a mini-batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.contract.knobs import Knob
from stein_core.contract.known import Start
from stein_core.contract.target import Target
from stein_core.contract.types import Array
from stein_core.targets.own.density import plain, start_points, thetas
from stein_core.targets.own.starts import find_start

BLOCK = 8192  # rows whose likelihood is computed at once
MOST = 256  # rows of a mini-batch that a program has room for
BATCH = Knob(
    "batch", 100, 1, MOST, "integer", "mini-batch", "rows of the data that each step reads, drawn with replacement"
)


class Around(NamedTuple):
    """Hold a theta (d,), and value and slope (d,) of the log likelihood of all rows there."""

    theta: np.ndarray
    value: float
    slope: np.ndarray


def target_of_rows(
    log_prior: Callable[[Array], Array],
    log_likelihood: Callable[[Array, Any], Array],
    data: Any,
    *,
    batch: Any = None,
    most: int = MOST,
    log_joint_prior: Callable[[Array], Array] | None = None,
    around: Around | None = None,
    **facts: Any,
) -> Target:
    """Make a Target of a prior and of rows that are independent given theta.

    log p(theta, data) = log_prior(theta) + sum_i log_likelihood(theta, row_i). With a batch of B rows a step takes
    log_prior + (N / B) times the sum over B rows, drawn with replacement: an unbiased estimate, and one for all
    particles and draws. Source: Welling & Teh 2011.

    Args:
        log_prior: theta (d,) -> scalar, with the log-Jacobian if parameters are constrained.
        log_likelihood: (theta (d,), rows) -> (B,) log density of each row; rows are `data` with B for N.
        data: arrays, or any tree of them, whose first axis is the N rows.
        batch: number of rows that a step takes, 1 to `most`, may be traced; None for all rows.
        most: rows that a mini-batch has room for; each costs as much as one that is read.
        log_joint_prior: log_prior without the log-Jacobian; None if nothing is constrained.
        around: a theta near the mode, with the likelihood of all rows there. A mini-batch then estimates only what the
            likelihood differs from its tangent at that theta, which has far less noise (Baker et al. 2019, control
            variates). None for plain mini-batches.
        facts: the other fields of Target.
    """
    data = jax.tree.map(jnp.asarray, data)
    count, likelihood = count_of(data), likelihood_of(log_likelihood, data)

    def minibatch(key, joint):
        chosen = jax.random.randint(key, (most,), 0, count, jnp.int32)  # the same in float64
        rows = jax.tree.map(lambda array: array[chosen], data)
        weights = jnp.where(jnp.arange(most) < batch, count / batch, 0.0)
        prior = log_joint_prior if joint and log_joint_prior is not None else log_prior
        if around is None:
            return lambda theta: prior(theta) + weights @ log_likelihood(theta, rows)

        def estimate(theta):
            away = theta - around.theta
            there, tangent = jax.jvp(lambda theta: log_likelihood(theta, rows), (jnp.asarray(around.theta),), (away,))
            rest = weights @ (log_likelihood(theta, rows) - there - tangent)
            return prior(theta) + around.value + around.slope @ away + rest

        return estimate

    return Target(
        log_density=lambda theta: log_prior(theta) + likelihood(theta),
        log_joint=log_joint_prior and (lambda theta: log_joint_prior(theta) + likelihood(theta)),
        log_prior=log_prior,
        minibatch=None if batch is None else minibatch,
        **facts,
    )


def count_of(data: Any) -> int:
    """Return the number of rows."""
    return len(jax.tree.leaves(data)[0])


def likelihood_of(log_likelihood: Callable[[Array, Any], Array], data: Any) -> Callable[[Array], Array]:
    """Return theta (d,) -> the log likelihood of all rows, block by block."""
    count = count_of(data)

    def likelihood(theta):
        if count <= BLOCK:
            return jnp.sum(log_likelihood(theta, data))
        whole = count // BLOCK * BLOCK
        blocks = jax.tree.map(lambda rows: rows[:whole].reshape(-1, BLOCK, *rows.shape[1:]), data)
        # The gradient computes each block again instead of keeping all of them.
        one = jax.checkpoint(lambda total, rows: (total + jnp.sum(log_likelihood(theta, rows)), None))
        total, _ = jax.lax.scan(one, jnp.zeros(()), blocks)
        return total + jnp.sum(log_likelihood(theta, jax.tree.map(lambda rows: rows[whole:], data)))

    return likelihood


def from_rows(
    log_prior: Callable[[Array], Array],
    log_likelihood: Callable[[Array, Any], Array],
    data: Any,
    *,
    start: Start | Sequence[float],
    batch: int | None = BATCH.default,
    seed: int = 0,
    **settings: Any,
) -> Target:
    """Make a Target without a name of rows of data. The size of its mini-batch is the knob `target.batch`.

    The data are on the device once for all its programs.

    Args:
        log_prior, log_likelihood, data: as for `target_of_rows`.
        start: the Start of particles; or a theta (d,) from which the mode is sought with all rows, as in
            `from_density`. Mini-batches then use the tangent at the mode, see `around` of `target_of_rows`.
        batch: rows of a mini-batch, 1 to 256, which is the knob's default; None if each step takes all rows.
        seed: of the other starts of the search.
        settings: further arguments of `target_of_rows`.

    Raises:
        ValueError: a start of another shape, or a density that is finite at no point that was tried.
    """
    data, around = jax.tree.map(np.asarray, data), None
    if not isinstance(start, Start):
        with jax.enable_x64():
            likelihood = likelihood_of(log_likelihood, jax.tree.map(jnp.asarray, data))
            whole = lambda theta: log_prior(theta) + likelihood(theta)  # noqa: E731
            start = find_start(whole, start_points(start, whole), seed)
            value, slope = jax.jit(jax.value_and_grad(likelihood))(jnp.asarray(start.center))
        around = Around(np.asarray(start.center), float(value), np.asarray(slope, float))
        settings = plain(thetas(len(start.center))) | settings

    def make(data, batch=None):
        return target_of_rows(log_prior, log_likelihood, data, batch=batch, around=around, start=start, **settings)

    knobs = () if batch is None else (replace(BATCH, default=BATCH.check(batch)),)
    return replace(make(data, batch), data=data, remake=make, knobs=knobs)
