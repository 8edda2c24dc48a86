"""The widths along directions: what the check *Shape* and the verdict say of draws whose coordinates look right."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from alarms import ar1_of, banana, log_gamma, multivariate_t5, normal

from stein_core import Recipe, Spec, collect, diagnose, from_density
from stein_core.posterior.evidence import CHECKS, Evidence
from stein_core.posterior.fitted import fit_of

AR1 = ar1_of(10)
NAMES = tuple(f"x{j + 1}" for j in range(10))


def shape_of(x, scores, chains=1):
    seen = Evidence(x, tuple(f"x{j}" for j in range(x.shape[1])), scores, chains=chains)
    seen.__dict__["ess"] = float(len(x))  # the draws are independent
    return CHECKS["shape"].make(seen)


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 5])
def test_block_svgd_at_rest_has_a_right_stein_trace_and_the_verdict_names_the_direction_that_it_lost(size):
    """An AR(1) with rho .9 in 10 dimensions. Each block of coordinates rests as if it were alone."""
    precision = np.linalg.inv(AR1)
    target = from_density(lambda x: -0.5 * x @ jnp.asarray(precision, x.dtype) @ x, np.zeros(10), NAMES)
    spec = Spec(target, method="blocks", optimizer="adam", capacity=64)
    recipe = Recipe(spec, {"method.particles": 50, "method.size": size, "method.step_size": 0.02})
    x = collect(recipe, 3000, 3000)[-1].particles
    covariance = np.cov(x.T)
    lost = np.sqrt(np.linalg.eigvals(precision @ covariance).real.min())
    report = diagnose(fit_of(recipe, x))
    assert not report.findings["stein_trace"].wrong and report.findings["stein_trace"].value > 0.7
    assert report.findings["shape"].value == pytest.approx(lost, rel=0.02) and lost < 0.16
    told = re.match(
        r"Too narrow along (x\d+(?: [+-] (?:0\.\d )?x\d+)+): ([\d.]+) % of the right width\.", report.verdict
    )
    assert told and float(told[2]) == pytest.approx(100 * lost, abs=0.6) and report.ok is False
    loadings = report.evidence.directions[0].loadings
    named = [NAMES.index(name) for name in re.findall(r"x\d+", told[1])]
    assert named == np.argsort(-np.abs(loadings))[: len(named)].tolist() and len(named) > 1
    if size == 1:  # the widest axis: x1 to x10 go together
        widest = np.linalg.eigh(AR1)[1][:, -1]
        assert widest @ covariance @ widest < 0.03 * np.linalg.eigvalsh(AR1)[-1] and "-" not in told[1]
    assert "of the variance" in report.findings["shape"].sentence


@pytest.mark.parametrize("axis", [0, 9])
def test_of_particles_with_the_right_trace_the_direction_is_said_before_a_coordinate(axis):
    """The covariance is AR1's with one axis nearly lost and the others wider: the eigenvalues are those of C P."""
    values, vectors = np.linalg.eigh(AR1)
    factors = np.where(np.arange(10) == axis, 0.01, 1.1)
    z = np.random.default_rng(0).standard_normal((50, 10))
    z = (z - z.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(z.T))).T
    x = z * np.sqrt(factors * values) @ vectors.T
    report = diagnose(x, scores=-x @ np.linalg.inv(AR1), particles=True)
    assert not report.findings["stein_trace"].wrong and report.findings["shape"].value == pytest.approx(0.1)
    assert re.match(r"Too narrow along x\d+ [+-] .*: 10 % of the right width\.", report.verdict)
    assert "with 1 % of the variance" in report.findings["shape"].sentence


def test_a_coordinate_is_said_first_if_no_direction_is_clearly_worse():
    x = 0.5 * np.random.default_rng(0).standard_normal((500, 10))
    report = diagnose(x, scores=-x)
    assert report.findings["shape"].wrong and report.verdict.startswith("Too narrow, worst in x")


def test_svgd_with_50_particles_in_20_dimensions_is_wrong():
    recipe = Recipe(Spec("gaussian", dim=20, method="svgd", capacity=64), {"method.particles": 50})
    report = diagnose(fit_of(recipe, collect(recipe, 1000, 1000)[-1].particles))
    assert report.findings["shape"].wrong and report.findings["width"].wrong
    assert report.verdict.startswith("Too narrow, worst in")


@pytest.mark.parametrize("n", [200, 1000])
def test_independent_draws_with_the_right_sds_are_too_wide_along_a_difference(n):
    x = np.random.default_rng(0).standard_normal((n, 10))
    report = diagnose(x, scores=-x @ np.linalg.inv(AR1))
    assert report.ok is False and re.match(r"Too wide along x\d+ - ", report.verdict)
    assert report.findings["shape"].value == pytest.approx(np.linalg.eigvalsh(AR1)[0] ** -0.5, rel=0.1)


@pytest.mark.parametrize(
    "make, d", [(banana, 2), (banana, 5), (normal, 5), (multivariate_t5, 10), (log_gamma(1.0), 2), (log_gamma(3.0), 10)]
)
def test_exact_draws_are_called_wrong_in_less_than_1_of_100_sets(make, d):
    """400 sets. Without the scale of the error the banana has 2 of 100 with 200 draws: its large terms are rare."""
    sets = [make(np.random.default_rng(10_000 + seed), 200, d) for seed in range(400)]
    assert sum(shape_of(*each).wrong is True for each in sets) <= 3


@pytest.mark.parametrize("n, d", [(20, 10), (24, 10), (50, 30)])
def test_too_few_draws_for_the_dimension_are_not_judged_but_particles_are(n, d):
    x = np.random.default_rng(0).standard_normal((n, d))
    found = shape_of(x, -x)
    assert found.wrong is None and "too few" in found.sentence
    assert shape_of(x, -x, chains=0).wrong
