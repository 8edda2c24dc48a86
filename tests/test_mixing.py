"""The weights of modes in draws, beside those of the density."""

import jax.numpy as jnp
import numpy as np
import pytest

from stein_core import diagnose, from_density
from stein_core.contract.known import Mode
from stein_core.posterior.evidence import CHECKS, Evidence
from stein_core.posterior.mixing import weights_of

SHARE = 0.9


def far_apart(theta):
    """Return the log density of 0.9 N(10, 1) + 0.1 N(-4.5, 1/4) in x, times N(0, 1)."""
    x = theta[0]
    parts = jnp.log(SHARE) - 0.5 * (x - 10) ** 2, jnp.log(1 - SHARE) + jnp.log(2.0) - 2.0 * (x + 4.5) ** 2
    return jnp.logaddexp(*parts) - 0.5 * theta[1] ** 2


def drawn(share, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    high = rng.random(n) < share
    x[:, 0] = np.where(high, 10 + x[:, 0], -4.5 + x[:, 0] / 2)
    return x


@pytest.fixture(scope="module")
def target():
    return from_density(far_apart, np.array([9.0, 0.0]), ("x", "y"))


@pytest.mark.parametrize("share, right", [(0.5, False), (0.8, False), (0.98, False), (0.9, True)])
def test_weights_of_far_modes_that_the_density_does_not_have_are_named(target, share, right):
    report = diagnose(drawn(share), target)
    found = report.findings["modes"]
    assert report.ok is right and found.wrong is not right
    assert "x = 10 has" in found.sentence or "x = -4.5 has" in found.sentence
    if not right:
        assert "its mass is 90% +- " in report.verdict or "its mass is 10% +- " in report.verdict


def test_a_mass_and_its_error_are_those_of_repeated_sets(target):
    known = 1.0 + np.arange(300)  # seeds
    shares = []
    for seed in known.astype(int):
        x = drawn(0.9, 2000, seed)
        log_p = np.logaddexp(np.log(0.9) - 0.5 * (x[:, 0] - 10) ** 2, np.log(0.2) - 2 * (x[:, 0] + 4.5) ** 2)
        shares.append(weights_of(target.start.modes, x, 7.0 + log_p - 0.5 * x[:, 1] ** 2, lambda row: 2000.0))
    apart = np.array([each.draws[0] - each.density[0] for each in shares])
    assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(300)
    assert apart.std() == pytest.approx(np.mean([each.errors[0] for each in shares]), rel=0.15)
    assert np.mean([each.density[0] for each in shares]) == pytest.approx(0.9, abs=0.005)


def test_a_skew_mode_has_its_true_mass_not_that_of_the_normal_approximation():
    """x = log of a Gamma(1) variable in one mode: by Laplace its mass is 0.92 times the true one."""

    def log_p(x):
        return np.logaddexp((x - 30) - np.exp(x - 30), -0.5 * x**2 - 0.5 * np.log(2 * np.pi))  # half and half

    rng = np.random.default_rng(0)
    x = np.where(rng.random(20_000) < 0.5, 30 + np.log(rng.gamma(1, 1, 20_000)), rng.normal(size=20_000))
    laplace = [np.exp(-1.0) * np.sqrt(2 * np.pi), 1.0]
    share = laplace[0] / sum(laplace)
    assert abs(share - 0.5) > 0.02
    modes = Mode(np.array([30.0]), np.eye(1), share), Mode(np.zeros(1), np.eye(1), 1 - share)
    found = weights_of(modes, x[:, None], log_p(x), lambda row: float(len(row)))
    assert found.density[0] == pytest.approx(0.5, abs=4 * found.errors[0]) and found.errors[0] < 0.007


def test_exact_draws_are_rarely_blamed_and_few_ones_are_not_judged(target):
    blamed = 0
    for seed in range(200):
        x = drawn(0.9, 500, seed)
        log_p = np.logaddexp(np.log(0.9) - 0.5 * (x[:, 0] - 10) ** 2, np.log(0.2) - 2 * (x[:, 0] + 4.5) ** 2)
        seen = Evidence(x, ("x", "y"), None, log_p - 0.5 * x[:, 1] ** 2, modes=target.start.modes)
        blamed += CHECKS["modes"].make(seen).wrong
    assert blamed <= 2
    assert (
        diagnose(drawn(0.6, 60), target).findings["modes"].sentence == "2 modes have draws, too few to tell their mass."
    )


def test_a_small_mode_without_draws_is_told_with_what_it_would_change():
    def log_p(theta):  # 0.99 N(0, 1) + 0.01 N(20, 1)
        x = theta[0]
        return jnp.logaddexp(jnp.log(0.99) - 0.5 * x**2, jnp.log(0.01) - 0.5 * (x - 20) ** 2)

    target = from_density(log_p, np.array([19.0]), ("x",))
    assert [round(mode.share, 3) for mode in target.start.modes] == [0.99, 0.01]
    report = diagnose(np.random.default_rng(0).normal(size=(2000, 1)), target)
    assert report.ok and not report.findings["modes"].wrong
    sd = np.sqrt(1 + 0.01 * 20**2)  # to first order in the mass
    assert f"about 1.0% of the mass. With it the sd of x would be {sd:.1f}" in report.findings["modes"].sentence
    assert report.verdict.endswith("but modes with about 1.0% of the mass have no draws.")
