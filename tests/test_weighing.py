"""Stein weights and Stein thinning, against closed forms, another solver, and a greedy choice written out."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from alarms import ar1_of
from scipy.optimize import minimize

import stein_core.posterior.weighing as module
from stein_core import Recipe, Spec, diagnose, from_density, thin, weigh
from stein_core.posterior.evidence import CHECKS
from stein_core.posterior.fitted import fit_of
from stein_core.posterior.weighing import greedy, on_simplex


def stein_kernel(x, scores):
    """The kernel in sds of the draws, pair by pair: Gorham & Mackey 2017, eq. 5, with c = 1 and beta = -1/2."""
    x, scores = x / x.std(axis=0), scores * x.std(axis=0)
    n, d = x.shape
    u = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            apart = x[i] - x[j]
            base = 1 + apart @ apart
            by_x, by_y = -apart * base**-1.5, apart * base**-1.5
            mixed = d * base**-1.5 - 3 * apart @ apart * base**-2.5
            u[i, j] = scores[i] @ scores[j] * base**-0.5 + scores[i] @ by_y + scores[j] @ by_x + mixed
    return u


def draws_of(n, d=2, seed=0, mean=0.5, sd=1.2):
    """Draws of N(mean, sd^2) in each coordinate, and the scores of N(0, I)."""
    x = mean + sd * np.random.default_rng(seed).standard_normal((n, d))
    return x, -x


@pytest.mark.parametrize(
    "gram, expected",
    [
        ([[2.0, 0.5], [0.5, 1.0]], [0.25, 0.75]),  # (c - b, a - b) / (a + c - 2 b)
        ([[2.0, 1.2], [1.2, 1.0]], [0.0, 1.0]),  # b > c: the second alone
        (np.diag([1.0, 2.0, 4.0]), [4 / 7, 2 / 7, 1 / 7]),  # 1 / diagonal
        (np.ones((4, 4)), [0.25] * 4),  # all are as good: the even ones
    ],
)
def test_the_weights_of_small_problems_in_closed_form(gram, expected):
    np.testing.assert_allclose(on_simplex(np.array(gram)), expected, atol=1e-5)


@pytest.mark.parametrize("d, seed", [(1, 0), (2, 1), (5, 2)])
def test_weights_are_optimal_and_another_solver_finds_no_better_ones(d, seed):
    x, scores = draws_of(25, d, seed)
    found = weigh(x, scores=scores)
    w, gram = found.weights, stein_kernel(x, scores)
    slopes, least = gram @ w, w @ gram @ w
    assert (w >= 0).all() and w.sum() == pytest.approx(1, abs=1e-12)
    tolerance = 1e-5 * gram.diagonal().mean()
    assert slopes.min() >= least - tolerance and np.abs(slopes[w > 1e-9] - least).max() < tolerance  # KKT
    constraint = {"type": "eq", "fun": lambda v: v.sum() - 1, "jac": np.ones_like}
    other = minimize(lambda v: (v @ gram @ v, 2 * gram @ v), np.full(25, 0.04), jac=True, bounds=[(0, 1)] * 25,
                     constraints=constraint, method="SLSQP", options={"ftol": 1e-14, "maxiter": 1000})  # fmt: skip
    assert other.success and least == pytest.approx(other.fun, abs=1e-6) and 0 < (w < 1e-9).sum() < 25
    assert found.ksd == pytest.approx((np.sqrt(gram.mean()), np.sqrt(least)))
    assert found.ess == pytest.approx(1 / np.sum(w**2))
    np.testing.assert_allclose(found.mean, w @ x)
    np.testing.assert_allclose(found.sd, np.sqrt(w @ x**2 - (w @ x) ** 2))


def test_thinning_is_the_greedy_choice_written_out():
    x, scores = draws_of(40, 2, 3)
    gram, chosen = stein_kernel(x, scores), []
    for _ in range(30):
        sums = [gram[np.ix_([*chosen, i], [*chosen, i])].sum() for i in range(40)]
        chosen.append(int(np.argmin(sums)))
    found = thin(x, 30, scores=scores)
    assert found.rows.tolist() == chosen and len(set(chosen)) < 30
    np.testing.assert_array_equal(found.draws, x[chosen])
    among = gram[np.ix_(chosen, chosen)]
    assert found.ksd == pytest.approx((np.sqrt(gram.mean()), np.sqrt(among.mean()))) and found.ksd[1] < found.ksd[0]
    assert found.ess == pytest.approx(30)
    assert greedy(np.diag([5.0, 1.0, 2.0]), 3).tolist() == [1, 2, 1]  # sums 1, 1 + 2, 4 * 1 + 2


def test_weights_bring_draws_of_another_normal_back():
    """Draws of N(0.5, 1.2^2), posterior N(0, 1)."""
    errors = []
    for seed in range(5):
        x, scores = draws_of(300, 2, seed)
        found, few = weigh(x, scores=scores), thin(x, 60, scores=scores)
        errors.append([np.abs(x.mean(axis=0)), np.abs(found.mean), np.abs(few.mean)])
        np.testing.assert_allclose(found.sd, 1, atol=0.06)
    plain, weighed, thinned = np.mean(errors, axis=(0, 2))
    assert plain > 0.45 and weighed < plain / 10 and thinned < plain / 5


def test_weights_do_not_widen_a_collapsed_set_and_say_so():
    x = 0.3 * np.random.default_rng(0).standard_normal((200, 3))
    found = weigh(x, scores=-x)
    assert (found.sd < np.abs(x).max()).all() and (found.sd < 0.7).all() and found.ksd[1] < found.ksd[0]
    for text in (str(found), repr(found), str(diagnose(found)), diagnose(found).to_html()):
        assert "Weights cannot widen draws: a collapsed set still has no point outside its hull." in text


def fitted(n=60):
    precision = np.linalg.inv(ar1_of(2))
    target = from_density(lambda x: -0.5 * x @ jnp.asarray(precision, x.dtype) @ x, np.zeros(2), ("a", "b"))
    recipe = Recipe(Spec(target, method="svgd", capacity=64), {"method.particles": n})
    return fit_of(recipe, draws_of(n)[0])


def test_a_fit_and_draws_with_a_target_and_scores_are_the_same():
    made = fitted()
    found = weigh(made)
    assert found.made is made and found.target is made.target
    for other in (weigh(made.draws, made.target), weigh(made.draws, scores=found.evidence.scores)):
        np.testing.assert_allclose(other.weights, found.weights, atol=1e-9)
    np.testing.assert_array_equal(found.values["a"], made.draws[:, 0])
    report, few = diagnose(found), diagnose(thin(made, 20))
    assert report.made is few.made is made and "SVGD" in report.made_of and "Stein weights" in report.made_of
    of_all = replace(found.evidence, law=0.5, law_of_twice=0.7, rest=0.1)  # of a run with all these particles
    assert {"count", "rest"} <= set(diagnose(of_all).findings)
    assert not {"count", "rest"} & set(diagnose(thin(of_all, 20)).findings)
    np.testing.assert_array_equal(weigh(made.draws, scores=-made.draws).values["x2"], made.draws[:, 1])


@pytest.mark.parametrize("chains", [1, 3])
def test_arviz_gets_the_logarithms_of_the_weights(chains):
    x, scores = draws_of(60)
    found = weigh(x.reshape(chains, -1, 2), scores=scores.reshape(chains, -1, 2))
    data = found.to_arviz()
    logs = np.asarray(data.sample_stats["log_weight"])
    assert logs.shape == (chains, 60 // chains) and np.isneginf(logs).sum() == (found.weights == 0).sum() > 0
    np.testing.assert_allclose(np.exp(logs).ravel(), found.weights)
    mean = (np.exp(data.sample_stats["log_weight"]) * data.posterior["x1"]).sum()
    assert float(mean) == pytest.approx(found.mean[0])
    few = thin(fitted(), 10).to_arviz()
    assert np.asarray(few.posterior["a"]).shape == (1, 10) and np.allclose(few.sample_stats["log_weight"], -np.log(10))
    assert np.asarray(few.sample_stats["lp"]).shape == (1, 10)


def test_a_report_tells_what_weights_change_and_judges_the_draws_without_them():
    x, scores = draws_of(300)
    plain, report = diagnose(x, scores=scores), diagnose(weigh(x, scores=scores))
    found = report.findings["weighing"]
    assert "weighing" not in plain.findings and report.verdict == plain.verdict and not found.wrong
    assert f"the kernel Stein discrepancy is {found.value:.3g}" in str(report) and "Stein weights  –" in str(report)
    assert list(found.each) == ["x1", "x2"] and found.sentence in report.to_html()
    ratios = weigh(x, scores=scores).sd / x.std(axis=0)
    assert list(found.each.values()) == pytest.approx(ratios) and report.about["weights"] == "Stein weights"
    thinned = diagnose(thin(x, 50, scores=scores))
    assert thinned.evidence.n == 50 and thinned.about["weights"] == "Stein thinning to 50 of 300 draws"
    assert thinned.about["of"] == "particles" and thinned.findings["width"].error == 0
    assert diagnose(weigh(x, scores=scores), reference=x).findings["reference"].wrong is False
    assert CHECKS["weighing"].facts.judges is False


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: weigh(x), "scores = None; allowed: a Fit, draws with a target, or draws with scores"),
        (lambda x: weigh(x, scores=np.where(x == x[5, 1], np.nan, -x)), "scores: row 5, column 1 is nan"),
        (lambda x: weigh(x[:1], scores=-x[:1]), "there are 1 draws; allowed: 2 to 4,096"),
        (lambda x: weigh(np.tile(x, (200, 1)), scores=np.tile(x, (200, 1))), "there are 6,000 draws; allowed: 2 to 4,"),
        (lambda x: weigh(x * [1.0, 0.0], scores=-x), "all draws have the same x2; allowed: coordinates that vary"),
        (lambda x: thin(x, 31, scores=-x), "m = 31"),
        (lambda x: thin(x, 0, scores=-x), "m = 0"),
        (lambda x: thin(x, 2.5, scores=-x), "m = 2.5"),
    ],
)
def test_what_cannot_be_weighed_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(draws_of(30)[0])


def test_copies_of_a_draw_share_its_weight():
    x, scores = draws_of(30)
    rows = np.r_[:30, 3, 3]
    found, plain = weigh(x[rows], scores=scores[rows]).weights, weigh(x, scores=scores).weights
    np.testing.assert_allclose(found[[3, 30, 31]], found[3], atol=1e-6)
    assert found[3] > 0 or plain[3] < 1e-3


@pytest.mark.long
def test_a_thousand_draws_take_seconds_and_are_optimal():
    x, scores = draws_of(1000, 1)
    found = weigh(x, scores=scores)
    gram = module.gram_of(x / x.std(axis=0), scores * x.std(axis=0))
    w = found.weights
    assert w @ gram @ w - (gram @ w).min() < 1e-6 and abs(found.mean[0]) < 1e-3 and abs(found.sd[0] - 1) < 1e-3


def test_weighed_particles_stay_particles():
    """Chance excuses nothing of them."""
    x = 0.8 * np.random.default_rng(0).normal(size=(12, 2))
    weighed = weigh(x, scores=-x)
    assert weighed.evidence.chains == 1 and diagnose(weighed, particles=True).evidence.chains == 0
    plain = diagnose(x, scores=-x, particles=True)
    assert diagnose(weighed, particles=True).findings["width"].error == plain.findings["width"].error == 0
