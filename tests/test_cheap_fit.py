"""What makes a fit cheap: its program, its paired draws, its start and its stops. Truths are closed forms and NUTS."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from stein_core import Recipe, Spec, diagnose, fit, from_density
from stein_core.contract.known import Start
from stein_core.contract.target import Target
from stein_core.posterior.lean import LeanStepper
from stein_core.posterior.rounds import DRAWS, GUIDE_SIZES
from stein_core.runs.cache import compile
from stein_core.runs.force_left import ESTIMATES
from stein_core.targets.own.rays import flat_direction
from stein_core.targets.own.starts import matched

STEPS = sum(many for _, many in GUIDE_SIZES)


def regression(x, y):
    slope = numpyro.sample("slope", dist.Normal(0, 10).expand([3]).to_event(1))
    numpyro.sample("y", dist.Normal(x @ slope, 1.0), obs=y)


def test_the_lean_program_takes_the_steps_of_the_other_one_with_the_choices_it_was_made_for():
    spec = Spec("gaussian", dim=3, method="svgd", capacity=8)
    knobs = {"method.particles": 6, "kernel.name": "imq", "bandwidth.rule": "median"}
    recipe = Recipe(spec, knobs, seed=4)
    other, lean = compile(spec, measure=False), LeanStepper(spec, recipe.knobs)
    ends = []
    for stepper in (other, lean):
        state = stepper.reset(recipe.seed, recipe.knobs)
        ends.append(np.asarray(stepper.advance(state, recipe.knobs, 20).particles)[:6])
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-4, atol=1e-5)
    rbf = compile(spec, measure=False)
    state = rbf.reset(4, {**knobs, "kernel.name": "rbf"})
    assert (
        np.abs(np.asarray(rbf.advance(state, {**knobs, "kernel.name": "rbf"}, 20).particles)[:6] - ends[1]).max() > 1e-2
    )
    for stepper, has in ((lean, False), (other, True)):
        program = str(jax.make_jaxpr(lambda state: stepper._look(state, recipe.knobs.traced, None)[0])(state))
        assert ("branches=" in program) == has


def test_draws_in_pairs_leave_no_noise_in_the_gradient_of_a_normal():
    """The score of a normal is linear, so the gradients of eps and -eps add up to the exact one, whatever eps is."""
    spec = Spec("gaussian", dim=4, method="vi", draws=2, capacity=1)
    lean, usual = LeanStepper(spec, {}), compile(spec, measure=False)
    spreads = []
    for stepper in (lean, usual):
        state = stepper.reset(0, {})
        keys = [state._replace(key=jax.random.PRNGKey(k)) for k in range(6)]
        forces = np.stack([stepper.look(one, {}, False).attract[0, :4] for one in keys])
        spreads.append(forces.std(axis=0).max())
    assert spreads[0] < 1e-5 < 0.01 < spreads[1]


def test_the_matched_normal_is_exact_for_a_normal_posterior_though_the_draws_are_not_of_it():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6)) + 2 * np.eye(6)
    covariance, mean = root @ root.T, rng.normal(size=6)
    draws = 3.0 + rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6))
    scores = -(draws - mean) @ np.linalg.inv(covariance)
    found_mean, found_root = matched(draws, scores)
    np.testing.assert_allclose(found_mean, mean, atol=1e-8)
    np.testing.assert_allclose(found_root @ found_root.T, covariance, rtol=1e-7, atol=1e-8)
    assert matched(draws[:8], scores[:8]) is None and matched(draws, scores * np.nan) is None


ROUNDS = {
    "right at once": ([(0.5, 0.0)], 1),
    "worse, and a smaller bound": ([(1.3, 0.0), (1.7, -0.1)], 1),
    "worse, and a larger bound": ([(1.3, 0.0), (1.7, 0.1)], 2),
    "better at last": ([(1.7, 0.0), (1.3, 0.1), (0.9, 0.1)], 3),
    "worse at last": ([(1.9, 0.0), (1.8, 0.1), (1.7, 0.2), (1.75, 0.1)], 3),
}


@pytest.mark.parametrize("case", ROUNDS)
def test_of_the_last_two_rounds_the_one_with_the_larger_evidence_bound_is_kept(case, monkeypatch):
    """Gaps and bounds of the rounds are given; which of them the fit returns is seen in its frame."""
    (found, kept), ends = ROUNDS[case], []
    module, left = sys.modules[fit.__module__], list(found)
    monkeypatch.setattr(module, "_judged", lambda rounds, done: ends.append(done.frame) or left.pop(0))
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 3))
    made = fit(regression, x, x @ [1.0, -1.0, 0.5], steps=10, progress=False)
    assert left == [] and len(ends) == len(found) and made.frame is ends[kept - 1]


def test_the_evidence_bound_of_an_exact_fit_is_the_evidence(monkeypatch):
    """If q = p, log p - log q is log p(y), here of a linear model with normal priors: a closed form."""
    module, found = sys.modules[fit.__module__], []
    judged = module._judged
    monkeypatch.setattr(module, "_judged", lambda rounds, done: found.append(judged(rounds, done)[1]) or (0, 0))
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 3))
    y = x @ [1.0, -1.0, 0.5] + rng.normal(size=30)
    fit(regression, x, y, progress=False)
    covariance = x @ x.T * 100 + np.eye(30)
    evidence = -0.5 * (y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(2 * np.pi * covariance)[1])
    assert found == [pytest.approx(evidence, abs=0.05)]


def test_a_fit_of_a_regression_is_exact_counts_its_gradients_and_says_so():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 3)) @ np.array([[1, 0.9, 0], [0, 0.5, 0], [0, 0, 5.0]])
    y = x @ [1.0, -1.0, 0.5] + rng.normal(size=30)
    made = fit(regression, x, y, progress=False)
    covariance = np.linalg.inv(x.T @ x + np.eye(3) / 100)
    errors = (made.draws.mean(axis=0) - covariance @ x.T @ y) / np.sqrt(np.diagonal(covariance))
    ratios = made.draws.std(axis=0) / np.sqrt(np.diagonal(covariance))
    assert np.abs(errors).max() < 0.06 and np.abs(ratios - 1).max() < 0.06
    assert made.recipe.spec.guide == "full" and made.rounds == 1
    judged = 1000
    assert made.gradients == made.target.start.gradients + STEPS * DRAWS + judged + ESTIMATES * DRAWS
    assert 8 < made.target.start.gradients < 2000
    report = diagnose(made)
    assert report.ok and report.about["gradients"] == made.gradients


def growth(x, y):
    top = numpyro.sample("K", dist.LogNormal(3, 1))
    rate = numpyro.sample("r", dist.LogNormal(-1, 1))
    middle = numpyro.sample("t0", dist.Normal(5, 5))
    noise = numpyro.sample("s", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(top / (1 + jnp.exp(-rate * (x - middle))), noise), obs=y)


@pytest.mark.long
def test_a_growth_curve_with_skewed_parameters_comes_out_wide_enough():
    """NUTS, 4 x 4,000 draws: log K 3.639 (.723), log r -.361 (.171), log s -1.079 (.457), t0 7.321 (1.468).

    Guides with independent coordinates have .73 of the sds, and means .29 sd off.
    """
    x = np.arange(6.0)
    y = 20 / (1 + np.exp(-0.7 * (x - 6))) + np.random.default_rng(17).normal(0, 0.3, 6)
    made = fit(growth, x, y, progress=False)
    mean, sd = np.array([3.639, -0.361, -1.079, 7.321]), np.array([0.723, 0.171, 0.457, 1.468])
    assert made.target.coordinates == ("log K", "log r", "log s", "t0")
    assert np.abs((made.draws.mean(axis=0) - mean) / sd).max() < 0.15
    ratios = made.draws.std(axis=0) / sd
    assert ratios.min() > 0.83 and ratios.max() < 1.1
    assert made.rounds > 1  # its scores said that it should go on


def test_a_run_of_points_ends_when_it_is_at_rest():
    made = fit("gaussian", method="svgd", particles=5, progress=False)
    assert made.history[-1]["step"] < 2000 and made.rest < 0.01
    assert made.gradients == made.history[-1]["step"] * 6 + 6


def test_a_center_far_below_the_mass_says_nothing_of_a_proper_posterior():
    """Along x0 the density rises for 1e8 scales, since the center is so poor a place."""
    start = Start(np.array([0.7, 0.0]), np.array([0.13, 1.0]))
    steep = lambda theta: -0.5 * theta @ theta - 1e17 * (1 - 1e-8 * theta[0]) ** 2  # noqa: E731
    assert flat_direction(Target(steep, start, ("a", "b"), lambda theta: {"theta": theta})) == ""
    flat = lambda theta: -0.5 * theta[0] ** 2  # noqa: E731
    assert flat_direction(Target(flat, start, ("a", "b"), lambda theta: {"theta": theta})) == "b"


def test_a_fit_without_steps_is_refused():
    with pytest.raises(ValueError, match="steps = 0"):
        fit("gaussian", steps=0)


@pytest.mark.long
def test_ten_thousand_coordinates_are_fitted_with_the_scale_of_each(optimized):
    """y_i ~ N(theta_i, sd_i) with theta_i ~ N(0, 1): the posterior is normal, coordinate by coordinate."""
    rng = np.random.default_rng(0)
    sd = rng.uniform(0.3, 2.0, 10_000)
    y = rng.normal(size=10_000) + sd * rng.normal(size=10_000)

    def means(y, sd):
        theta = numpyro.sample("theta", dist.Normal(0, 1).expand([10_000]).to_event(1))
        numpyro.sample("y", dist.Normal(theta, sd), obs=y)

    with pytest.warns(UserWarning, match="curvature of each coordinate alone"):
        made = fit(means, y, sd, progress=False)
    variance = 1 / (1 + 1 / sd**2)
    assert np.abs((made.draws.mean(axis=0) - variance * y / sd**2) / np.sqrt(variance)).max() < 0.1
    ratio = made.draws.std(axis=0) / np.sqrt(variance)
    assert 0.93 < ratio.min() and ratio.max() < 1.07  # 4,000 draws: 1.1 % of noise, and the largest of 10,000
    assert made.gradients < 30_000 and "Guides see no correlations" in made.note


@pytest.mark.long
def test_correlations_that_guides_of_many_coordinates_cannot_have_are_found(optimized):
    def walk(x):
        return -0.5 * (x[0] ** 2 + jnp.sum((x[1:] - 0.9 * x[:-1]) ** 2) / 0.19)

    target = from_density(walk, np.zeros(2500))
    assert target.start.root is None and target.start.scale[5:-5] == pytest.approx(0.19**0.5 / 1.81**0.5, rel=0.25)
    report = diagnose(fit(target, progress=False))
    assert report.ok is False and report.verdict.startswith("Too narrow along")
    with pytest.raises(ValueError, match="coordinates = 'whitened' needs a covariance, and the target has 2500"):
        fit(target, coordinates="whitened", progress=False)


@pytest.mark.long
def test_many_groups_of_a_funnel_get_a_verdict(optimized):
    """Centred groups of unknown width, in more coordinates than a covariance is made of."""
    y = np.random.default_rng(0).normal(size=2100)

    def groups(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1.0))
        theta = numpyro.sample("theta", dist.Normal(0, tau).expand([2100]).to_event(1))
        numpyro.sample("y", dist.Normal(theta, 1.0), obs=y)

    with pytest.warns(UserWarning, match="2,101 coordinates"):
        report = diagnose(fit(groups, y, progress=False, steps=100))
    assert report.ok is not True and report.verdict
