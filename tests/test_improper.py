"""Posteriors of no finite mass are named, and proper ones with heavy tails are not."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.distributions import constraints

from stein_core import TARGETS, diagnose, fit, from_numpyro
from stein_core.contract.known import Start
from stein_core.contract.spec import Spec, target_of
from stein_core.contract.target import Target
from stein_core.targets.own.rays import flat_direction

DRAWN = np.random.default_rng(0).normal(size=(200, 2))


def plain(log_density, d=2, scale=1.0) -> Target:
    """Return a Target around 0 without a search for its mode."""
    names = tuple("abcdef"[:d])
    return Target(log_density, Start(np.zeros(d), np.full(d, scale)), names, lambda theta: {})


@pytest.mark.parametrize(
    "log_density, along",
    [
        (lambda x: -0.5 * (x[0] + x[1] - 2) ** 2, ("a - b", "b - a", "-a + b", " - a + b", " - b + a")),
        (lambda x: -jnp.logaddexp(0.0, -x[0]) - 0.5 * x[1] ** 2, ("a",)),  # a separable logistic regression
        (lambda x: -0.9 * jnp.log1p(jnp.abs(x[0])) - 0.5 * x[1] ** 2, ("a", " - a")),  # falls slower than 1 / x
    ],
)
def test_a_density_that_does_not_fall_is_named_with_the_direction(log_density, along):
    assert flat_direction(plain(log_density)) in along
    report = diagnose(DRAWN, plain(log_density))
    assert report.ok is False and "The posterior may be improper: along" in report.verdict
    assert "a prior that falls on both sides" in report.verdict


@pytest.mark.parametrize(
    "log_density",
    [
        lambda x: -jnp.sum(jnp.log1p(x**2)),  # Cauchy
        lambda x: -1.5 * jnp.log1p(jnp.abs(x[0])) - 0.5 * x[1] ** 2,
        lambda x: -0.5 * (x[0] / 3) ** 2 - 0.5 * x[1] ** 2 * jnp.exp(-x[0]) - 0.5 * x[0],  # Neal's funnel
        lambda x: x[0] - jnp.exp(x[0]) - 0.5 * x[1] ** 2,  # log of an exponential variable
        lambda x: -0.5 * (x[0] - x[1]) ** 2 * 1e8 - 0.5 * x[1] ** 2,  # a narrow ridge
        lambda x: x[0] - jnp.log1p(jnp.exp(2 * x[0])) - 0.5 * (x[1] / 1e3) ** 2,  # log of a half-Cauchy variable
    ],
)
def test_a_proper_density_is_not_called_improper(log_density):
    assert flat_direction(plain(log_density)) == ""


@pytest.mark.rare
def test_no_registered_target_is_called_improper():
    asked = [entry.name for entry in TARGETS.listed() if entry.facts.default_dim <= 60]
    assert len(asked) > 8
    assert {name: along for name in asked if (along := flat_direction(target_of(Spec(name, method="svgd"))))} == {}


@pytest.mark.rare
def test_a_fit_that_diverges_says_why_and_what_to_do():
    def schools(y):  # flat in log tau
        mu = numpyro.sample("mu", dist.Normal(0, 10))
        log_tau = numpyro.sample("log_tau", dist.ImproperUniform(constraints.real, (), ()))
        theta = numpyro.sample("theta", dist.Normal(mu, jnp.exp(log_tau)).expand([8]).to_event(1))
        numpyro.sample("y", dist.Normal(theta, 10.0), obs=y)

    y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="may be improper: along log_tau its") as said:
        fit(schools, y, progress=False)
    assert "alpha" not in str(said.value) and "falls on both sides" in str(said.value)
    broken = plain(lambda x: -jnp.sum(x**2) + 0.0 * jnp.sqrt(0.5 - x[0]))  # no number beyond 0.5
    with pytest.raises(ValueError, match="diverged at step .* Try a smaller alpha"):
        fit(broken, method="svgd", coordinates="raw", steps=8, progress=False)


def test_data_that_are_not_finite_are_named_with_their_rows():
    def line(x, y=None):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(slope * x, 1.0), obs=y)

    x = np.linspace(-2, 2, 20)
    y = np.where(np.isin(np.arange(20), [3, 7]), np.nan, x)
    with pytest.raises(ValueError, match="Argument 'y' has 2 numbers that are not finite, in rows 3, 7.$"):
        from_numpyro(line, x, y=y)
