"""What the verdict sees, and what it does not claim: draws whose faults are known, against closed forms."""

import json
import math

import numpy as np
import pytest
from alarms import correlated, funnel, lost
from test_cli import run  # noqa: F401  (a fixture)

from stein_core import diagnose
from stein_core.posterior.evidence import Evidence


def report_of(make, n, seed=0):
    x, scores = make(np.random.default_rng(seed), n)
    return diagnose(x, scores=scores)


@pytest.mark.parametrize("q", [0.5, 0.7, 0.95])
def test_wrong_correlations_are_seen_and_named_with_the_ratio_of_sds_along_a_direction(q):
    """Along (x1 - x2) the draws have variance 1 - q for 1, along (x1 + x2) 1 + q. Each mean and sd is right."""
    report = report_of(correlated(q), 4000)
    found = report.findings["shape"]
    assert report.ok is False and found.wrong and not report.findings["width"].wrong
    assert found.value == pytest.approx(math.sqrt(1 - q), abs=0.03)
    said = f": {100 * found.value:.0f} % of the right width. The centre is right. Do not report intervals"
    assert report.verdict.startswith("Too narrow along x") and said in report.verdict
    assert f"{found.value:.2f} times as wide" in str(report)
    narrow, wide = report.evidence.directions
    assert wide.ratio == pytest.approx(1 + q, abs=0.12)
    for direction, sign in ((narrow, -1), (wide, 1)):
        one, other = direction.loadings
        assert one * sign == pytest.approx(other, rel=0.15)
    assert narrow.words(("a", "b")) in ("a - b", "b - a", "a - 0.9 b", "b - 0.9 a")


@pytest.mark.parametrize("axis", [0, 4, 8])
def test_a_lost_inner_direction_is_seen_and_the_verdict_prints_it_first(axis):
    report = report_of(lost(axis), 2000)
    assert report.findings["shape"].value == pytest.approx(0.1, abs=0.02)
    assert report.ok is False and report.verdict.startswith("Too narrow along x") and ": 10 % of" in report.verdict


def test_the_shape_of_particles_is_the_eigenvalues_of_precision_times_covariance():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    precision, x = root @ root.T + np.eye(4), rng.normal(size=(30, 4)) * [1.0, 2.0, 0.5, 3.0]
    values = np.sort(np.linalg.eigvals(precision @ np.cov(x.T)).real)
    narrow, wide = Evidence(x, tuple("abcd"), -x @ precision, chains=0).directions
    np.testing.assert_allclose([narrow.ratio, wide.ratio], values[[0, -1]], rtol=1e-8)
    assert narrow.error == wide.error == 0.0


def test_selected_directions_of_exact_draws_have_a_ratio_of_1_in_the_mean():
    """The extreme eigenvalues have not: with d / n = 0.06 they are near 0.57 and 1.55 (Marchenko and Pastur)."""
    found, plain = [], []
    for seed in range(40):
        x = np.random.default_rng(seed).standard_normal((500, 30))
        seen = Evidence(x, tuple(f"x{j}" for j in range(30)), -x)
        found.append([(each.ratio, (each.ratio - 1) / each.error) for each in seen.directions])
        plain.append(np.linalg.eigvalsh(np.cov(x.T))[[0, -1]])
    ratios, z = np.moveaxis(np.array(found), 2, 0)
    np.testing.assert_allclose(ratios.mean(axis=0), 1.0, atol=0.04)
    assert np.mean(plain, axis=0)[0] < 0.65 and np.mean(plain, axis=0)[1] > 1.45 and 0.7 < z.std() < 1.3


def test_rows_of_both_halves_are_apart_also_if_some_are_there_many_times():
    """60 exact draws in 10 dimensions, each 20 times in random order, as after importance resampling."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = rng.permutation(np.repeat(rng.standard_normal((60, 10)), 20, axis=0))
        seen = Evidence(x, tuple("abcdefghij"), -x)
        first = seen.which < 30
        assert not {tuple(row) for row in x[first]} & {tuple(row) for row in x[~first]}
        assert seen.ess <= 60 and diagnose(seen).findings["shape"].wrong in (False, None)


def test_tails_say_nothing_if_the_draws_are_far_from_the_scores():
    """Draws of N(0, I) for an AR(1) with rho .9 have right sds. `tails` printed 1.54 for one of them."""
    precision = np.linalg.inv(0.9 ** np.abs(np.subtract.outer(np.arange(10), np.arange(10))))
    x = np.random.default_rng(0).standard_normal((500, 10))
    report = diagnose(x, scores=-x @ precision)
    assert report.findings["shape"].wrong and report.findings["tails"].wrong is None
    assert report.verdict.startswith("Too wide along x")
    row = next(line for line in str(report).splitlines() if line.strip().startswith("Tails"))
    assert "  ?  " in row and "ok" not in row.split()


def test_copies_of_draws_count_once():
    """Of 60 exact draws, each 20 times, the means are off by 1 / sqrt(60), not by 1 / sqrt(1200)."""
    blamed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.permutation(np.repeat(rng.standard_normal((60, 5)), 20, axis=0))
        blamed += diagnose(x, scores=-x).ok is False
    assert blamed <= 3


def test_exact_draws_of_a_funnel_are_not_blamed_for_a_regression_that_chance_has_bent():
    bent = 0
    for n, d, sd in ((300, 30, 1.5), (2000, 10, 3.0)):
        for seed in range(8):
            report = report_of(lambda rng, n: funnel(sd)(rng, n, d), n, seed)
            if found := report.findings.get("curvature"):
                bent += 1
                assert found.wrong is None and "too few draws to tell" in found.sentence
                assert report.ok is None and "could not be checked" in report.verdict
    assert bent >= 8


def test_a_density_that_grows_outwards_is_named_with_its_direction():
    x = np.random.default_rng(0).standard_normal((500, 3)) @ np.diag([1.0, 5.0, 0.1])
    scores = -x * [1.0, 1 / 25, 100.0]
    scores[:, 1] *= -1
    found = diagnose(x, scores=scores).findings["curvature"]
    assert (
        found.wrong and found.sentence.startswith("Along x2 the scores") and found.value == pytest.approx(-1, abs=0.2)
    )


def test_numbers_that_are_not_finite_are_no_right_ones():
    x = np.random.default_rng(0).standard_normal((200, 2))
    with np.errstate(all="ignore"):
        assert diagnose(1e200 * x, scores=-1e200 * x).ok is False
        seen = Evidence(1e200 * x, ("a", "b"), -1e200 * x * np.array([1.0, -1.0]))  # inf - inf
        found = diagnose(seen)
    assert math.isnan(found.findings["stein_trace"].value) and found.findings["stein_trace"].wrong


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda x: x + 5.0, "Off centre, worst in x"),
        (lambda x: x * 0.5, "Too narrow on average: r is 0.2"),
        (lambda x: x * np.where(np.arange(500) == 7, 0.3, 1.0), "Too narrow, worst in x8: its r is 0.10"),
        (lambda x: x + 2.0 * (np.arange(500) == 7), "Off centre, worst in x8: its mean score is -1.9 of its sds"),
    ],
)
def test_each_mean_and_each_width_is_judged_in_500_coordinates(change, words):
    x = np.random.default_rng(0).standard_normal((2000, 500))
    y = change(x)
    report = diagnose(y, scores=-y)
    assert report.ok is False and words in report.verdict, report.verdict
    right = diagnose(x, scores=-x)
    assert right.ok is None and right.verdict == "No fault was found, but tails could not be checked."
    assert right.findings["shape"].wrong is False and "at most 240" in right.to_html()
    particles = diagnose(x, scores=-x, particles=True)
    assert "500 coordinates, and directions of particles are sought in at most 400" in str(particles)


def autoregression(n: int, d: int, seed: int, rho: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """Return exact draws (n, d) of a stationary AR(1), and draws with its conditional sds but no correlation."""
    noise = np.random.default_rng(seed).normal(size=(n, d))
    exact = np.empty((n, d))
    exact[:, 0] = noise[:, 0]
    for j in range(1, d):
        exact[:, j] = rho * exact[:, j - 1] + np.sqrt(1 - rho**2) * noise[:, j]
    alone = noise * np.sqrt((1 - rho**2) / np.r_[1, np.full(d - 2, 1 + rho**2), 1])
    return exact, alone


def scores_of(x: np.ndarray, rho: float = 0.9) -> np.ndarray:
    """Return the scores (n, d) of the same AR(1)."""
    left = (x[:, 1:] - rho * x[:, :-1]) / (1 - rho**2)
    scores = np.zeros_like(x)
    scores[:, 1:] -= left
    scores[:, :-1] += rho * left
    scores[:, 0] -= x[:, 0]
    return scores


def test_lost_correlations_of_many_coordinates_are_found_and_exact_draws_pass():
    """Each coordinate's own r is 1 in both: only directions tell."""
    exact, alone = autoregression(2000, 800, 0)
    wrong = diagnose(alone, scores=scores_of(alone))
    assert wrong.findings["stein_trace"].wrong is False and wrong.findings["shape"].wrong is True
    assert wrong.verdict.startswith("Too narrow along") and wrong.findings["shape"].value < 0.7
    right = diagnose(exact, scores=scores_of(exact))
    assert right.findings["shape"].wrong is False and right.ok is not False


@pytest.mark.long
def test_exact_draws_of_many_coordinates_are_blamed_once_in_a_hundred_at_most():
    blamed = 0
    for seed in range(100):
        x = autoregression(1000, 450, seed)[0] if seed % 2 else np.random.default_rng(seed).standard_t(8, (1000, 450))
        scores = scores_of(x) if seed % 2 else -9 * x / (8 + x**2)
        blamed += diagnose(x, scores=scores).ok is False
    assert blamed <= 3  # the chance of more is 2 % if one in a hundred is due


def test_a_strong_correlation_does_not_blame_each_coordinate():
    """An SMI fit of this posterior has right sds, within 3 %, but each r_j is between 0.46 and 1.45."""
    rng = np.random.default_rng(0)
    covariance = np.full((5, 5), 0.999) + 0.001 * np.eye(5)
    bent = np.eye(5) + 0.03 * rng.standard_normal((5, 5))
    x = rng.standard_normal((4000, 5)) @ bent @ np.linalg.cholesky(covariance).T
    report = diagnose(x, scores=-x @ np.linalg.inv(covariance))
    assert report.ok and np.abs(report.evidence.trace[0] - 1).max() > 0.4


def test_weights_that_disagree_are_in_the_headline():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4000, 2))
    log_p = -0.5 * np.sum(x**2, axis=1)
    log_q = log_p - 1.2 * rng.exponential(size=4000)  # Pareto weights of index 1.2
    report = diagnose(Evidence(x, ("a", "b"), -x, log_p, log_q))
    k = report.findings["k_hat"].value
    assert report.ok and k > 0.7
    assert report.verdict == (
        f"No sign of a wrong location or width, but the weights disagree: k-hat is {k:.2f}, above 0.7."
    )


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda y: np.where(np.arange(800).reshape(400, 2) == 11, np.nan, y), "reference: row 5, column 1 is nan"),
        (lambda y: y.ravel(), r"reference has shape \(800,\); allowed: \(k, 2\) or \(chains, k, 2\)"),
        (lambda y: y.T, r"reference has shape \(2, 400\); allowed: \(k, 2\)"),
        (lambda y: y.reshape(-1, 4), r"reference has shape \(200, 4\); allowed: \(k, 2\)"),
        (lambda y: y[:3], r"reference has shape \(3, 2\).*at least 4 rows"),
    ],
)
def test_a_reference_of_another_shape_or_with_nan_is_refused(change, message):
    x, y = np.random.default_rng(0).standard_normal((2, 400, 2))
    with pytest.raises(ValueError, match=message):
        diagnose(x, scores=-x, reference=change(y))


def test_scores_are_not_turned():
    x = np.random.default_rng(0).standard_normal((500, 2))
    for scores in (-x.T, -x[:, :1], -x.reshape(250, 4)):
        with pytest.raises(ValueError, match=r"scores have shape .*; allowed: that of the draws, \(500, 2\)"):
            diagnose(x, scores=scores)
    chains = x.reshape(5, 100, 2)
    assert diagnose(chains, scores=-chains).ok and diagnose(chains, scores=-x).ok


def test_a_reference_whose_chains_disagree_decides_nothing():
    rng = np.random.default_rng(0)
    x, chains = rng.standard_normal((500, 2)), rng.standard_normal((4, 500, 2))
    good = diagnose(x, reference=chains)
    assert good.ok and "R-hat 1.0" in good.findings["reference"].sentence
    apart = diagnose(x, scores=-x, reference=chains + 5.0 * np.arange(4)[:, None, None])
    assert apart.ok is None and "the chains of the reference disagree: R-hat is" in str(apart)
    assert "reference could not be checked" in apart.verdict


def test_the_errors_of_draws_and_reference_are_in_the_comparison():
    blamed = []
    for n in (30, 60, 100, 200):
        for seed in range(20):
            rng = np.random.default_rng(seed)
            blamed.append(diagnose(rng.standard_normal((n, 10)), reference=rng.standard_normal((4000, 10))).ok)
    assert blamed.count(False) <= 2
    rng = np.random.default_rng(0)
    x, slow = rng.standard_normal((4000, 2)), np.empty((4000, 2))
    slow[0] = 0.0
    for i in range(1, 4000):  # AR(1): 4000 rows are worth about 10
        slow[i] = 0.995 * slow[i - 1] + math.sqrt(1 - 0.995**2) * rng.standard_normal(2)
    found = diagnose(x, reference=slow).findings["reference"]
    assert not found.wrong and int(found.sentence.split("The reference has ")[1].split()[0]) < 60
    assert diagnose(0.7 * x, reference=x[:2000]).ok is False and diagnose(x + 0.3, reference=x[:2000]).ok is False


def test_chance_excuses_nothing_of_particles():
    x = np.random.default_rng(0).standard_normal((60, 2))
    x = 0.83 * (x - x.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T))).T
    drawn, found = (diagnose(x, scores=-x, particles=each).findings for each in (False, True))
    assert drawn["width"].value == pytest.approx(0.83) and not drawn["width"].wrong and not drawn["stein_trace"].wrong
    assert found["width"].value == pytest.approx(0.83) and found["width"].wrong and found["stein_trace"].wrong
    assert found["width"].error == found["shape"].error == 0 and found["shape"].value == pytest.approx(0.83)
    with pytest.raises(ValueError, match="2 chains; allowed: particles"):
        diagnose(x.reshape(2, 30, 2), scores=-x.reshape(2, 30, 2), particles=True)


def test_a_report_with_scores_that_is_not_fully_checked_does_not_ask_for_scores():
    x = np.random.default_rng(0).standard_normal((1000, 401))
    page = diagnose(x, scores=-x).to_html()
    assert "Without scores" not in page and "np.savez" not in page and "? Cannot be told" in page
    assert "Without scores these draws cannot be checked." in diagnose(x[:, :3]).to_html()


def test_the_command_line_takes_particles(run, tmp_path):  # noqa: F811
    x = np.random.default_rng(0).standard_normal((60, 2))
    x = 0.83 * (x - x.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T))).T
    np.savez(tmp_path / "x.npz", draws=x, scores=-x)
    for words, wrong in (((), False), (("--particles",), True)):
        _, out, _ = run("diagnose", tmp_path / "x.npz", "--json", *words)
        assert json.loads(out)["findings"]["width"]["wrong"] is wrong


def test_the_centre_is_not_called_right_if_a_reference_says_that_it_is_off():
    """The scores are those of draws around 0, the reference lies half a sd away and is twice as wide."""
    x = np.random.default_rng(0).standard_normal((2000, 2))
    right = 2.0 * np.random.default_rng(1).standard_normal((4, 1000, 2)) + [1.0, 0.0]
    report = diagnose(x, scores=-x, reference=right)
    assert report.ok is False and not report.findings["location"].wrong
    assert "of the reference's width. The centre is off too." in report.verdict
    same = diagnose(x, scores=-x, reference=right - [1.0, 0.0])
    assert "of the reference's width. The centre is right." in same.verdict
