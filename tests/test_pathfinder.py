"""BlackJAX's Pathfinder on a normal, whose moments are known, and how its gradients are counted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stein_core import from_density
from stein_core.base.arviz_api import smoothed
from stein_core.papers.tables.pathfinder import gradients_of, pathfinder

pytest.importorskip("blackjax")
COVARIANCE = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.3], [0.0, 0.3, 2.0]])


@pytest.mark.long
def test_gradients_are_counted_as_blackjax_takes_them():
    """The same path step by step without a compiler, where a counter in the slope counts what BlackJAX computes."""
    from blackjax.optimizers.lbfgs import minimize_lbfgs

    taken = [0]
    scales = jnp.array([1.0, 4.0])

    @jax.custom_vjp
    def loss(x):
        return jnp.sum(scales * (x - 1) ** 2) + jnp.sum((x - 1) ** 4)

    def forth(x):
        taken[0] += 1
        return loss.fun(x), x

    loss.defvjp(forth, lambda x, bar: (bar * (2 * scales * (x - 1) + 4 * (x - 1) ** 3),))
    start = jnp.array([-1.5, 0.3])
    with jax.enable_x64(), jax.disable_jit():
        minimize_lbfgs(loss, start, maxiter=6)
    plain = lambda x: -(jnp.sum(scales * (x - 1) ** 2) + jnp.sum((x - 1) ** 4))  # noqa: E731
    with jax.enable_x64():
        found = int(jax.jit(lambda x: gradients_of(plain, x, 6))(start))
    assert abs(found - taken[0]) <= 2 and found > 7


def test_pathfinder_finds_a_normal():
    precision = np.linalg.inv(COVARIANCE)
    with jax.enable_x64():
        target = from_density(lambda x: -0.5 * (x - 3) @ precision @ (x - 3), np.zeros(3))
        draws, spent = pathfinder(target, 0)
    assert draws.shape == (4000, 3) and np.isfinite(draws).all()
    assert draws.mean(axis=0) == pytest.approx(3, abs=0.1) and np.cov(draws.T) == pytest.approx(COVARIANCE, abs=0.15)
    assert 20 * 3 <= spent <= 20 * 100  # each of 20 paths takes a few steps


def test_smoothed_weights_are_those_of_the_ratios_if_the_tail_is_light():
    ratios = np.random.default_rng(0).normal(size=2000) * 0.1
    weights = smoothed(ratios)
    assert weights.sum() == pytest.approx(1)
    plain = np.exp(ratios) / np.exp(ratios).sum()
    assert weights == pytest.approx(plain, rel=0.1)
    assert np.argmin(weights) == np.argmin(plain)
    heavy = np.random.default_rng(0).standard_cauchy(2000)
    assert smoothed(heavy).max() <= np.exp(heavy - heavy.max()).max() / np.exp(heavy - heavy.max()).sum()
