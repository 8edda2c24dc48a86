"""Closed forms against force balances written out in float64, quadrature, Monte Carlo and printed numbers."""

import jax
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from stein_core import KERNELS, UnknownName, theory

RADIAL = [e.name for e in KERNELS.entries() if e.facts.argument != "inner"]
INNER = [name for name in KERNELS if name not in RADIAL]


def profile_of(kernel):
    """f and f' in float64; the slope by central differences, so nothing is shared with `theory` but f itself."""

    def f(u):
        with jax.enable_x64():
            return np.float64(KERNELS[kernel].make(np.float64(u)))

    return f, lambda u: (f(u + 1e-5 * u) - f(u - 1e-5 * u)) / (2e-5 * u)


def simplex(n, d, v):
    """n points in R^d at equal distances, centred, with mean variance v per dimension, 1/(n-1) form."""
    points = np.eye(n) - 1 / n
    basis = np.linalg.svd(points)[2][: n - 1]  # they span n - 1 dimensions
    flat = np.zeros((n, d))
    flat[:, : n - 1] = points @ basis.T
    return flat * np.sqrt(v / flat.var(0, ddof=1).mean())


def twice_sigma_squared(rule, x):
    """The bandwidth rules as their papers print them."""
    square = ((x[:, None] - x) ** 2).sum(-1)
    pairs = square[np.triu_indices(len(x), 1)]
    return {
        "median": np.median(pairs), "median_log": np.median(pairs) / np.log(len(x)), "fixed": 2.0,
        "root_dim": 2.0 * x.shape[1],
        "numpyro": np.median(np.sqrt(square)) ** 2 / np.log(len(x)),
        "liuwang": np.median(square) / np.log(len(x) + 1),
    }[rule]  # fmt: skip


def svgd_force(x, kernel, sigma, alpha=1.0, damping=1.0):
    """(attraction, repulsion) of SVGD on N(0, I), by loops over pairs."""
    n, (f, slope) = len(x), profile_of(kernel)
    attract, repulse = np.zeros_like(x), np.zeros_like(x)
    for own in range(n):
        for other in range(n):
            gap = x[other] - x[own]
            u = gap @ gap / (2 * sigma**2)
            attract[own] -= x[other] * (f(u) if other != own else damping) / n
            if other != own:
                repulse[own] += alpha * slope(u) * gap / sigma**2 / n
    return attract, repulse


@pytest.mark.parametrize("kernel", RADIAL)
@pytest.mark.parametrize("rule", theory.RULES)
def test_forces_balance_at_the_variance_of_the_simplex_law(kernel, rule):
    cases = [(4, 2, 1.0, 1.0, 1.0), (4, 5, 0.3, 1.0, 1.0), (30, 6, 1.0, 1.0, 0.8), (9, 6, 4.0, 1.0, 1.5)]
    cases += [(12, 6, 1.0, 0.9, 1.0)] if KERNELS[kernel].name != "laplace" else []
    for d, n, alpha, damping, factor in cases:
        v = theory.simplex_variance(d, n, kernel, rule, alpha, damping, factor)
        assert v > 0, (d, n)
        x = simplex(n, d, v)
        sigma = factor * np.sqrt(twice_sigma_squared(rule, x) / 2)
        attract, repulse = svgd_force(x, kernel, sigma, alpha, damping)
        np.testing.assert_allclose(attract + repulse, 0, atol=2e-6 * np.abs(repulse).max(), err_msg=f"{d} {n} {alpha}")


def test_printed_numbers_of_the_simplex_law():
    for d, expected in ((20, 0.14979), (50, 0.05991), (100, 0.02996)):  # ln(20) / d, the 1/n form
        assert theory.simplex_variance(d, 20) * 19 / 20 == pytest.approx(expected, abs=6e-6)
    assert theory.simplex_variance(100, 50, rule="median") == pytest.approx(0.5 / (np.e - 1), rel=1e-9)
    # 2 points with NumPyro's median lie at +-.4299, with the median over pairs at +-.8326.
    for rule, x in (("numpyro", 0.4299), ("median_log", 0.8326)):
        assert np.sqrt(theory.simplex_variance(1, 2, rule=rule) / 2) == pytest.approx(x, abs=6e-5)


@pytest.mark.parametrize("kernel", RADIAL)
def test_where_the_law_is_linear_in_alpha(kernel):
    for rule in theory.RULES:
        one, three = (theory.simplex_variance(30, 6, kernel, rule, alpha) for alpha in (1.0, 3.0))
        if rule in ("fixed", "root_dim"):
            assert abs(three / one - 3) > 0.03
        else:
            assert three == pytest.approx(3 * one, rel=1e-9)
    assert theory.simplex_variance(30, 6, "rbf", "root_dim", 3.0) == pytest.approx(np.log(1 + 3 * 6 / 30), rel=1e-6)


def test_no_number_where_a_law_does_not_hold():
    for d, n in ((10, 1), (10, 12), (1, 3)):
        assert np.isnan(theory.simplex_variance(d, n))
    assert np.isfinite(theory.simplex_variance(10, 11))
    assert np.isnan(theory.simplex_variance(10, 5, factor=0.0)) and np.isnan(
        theory.simplex_variance(10, 5, damping=0.1)
    )
    assert np.isnan(theory.simplex_variance(10, 5, rule="median", damping=np.exp(-1.0)))  # lambda = f(1): nothing pulls
    assert [theory.simplex_variance(10, 5, rule=rule, alpha=0.0) for rule in theory.RULES] == [0.0] * len(theory.RULES)
    for kernel in INNER:
        assert np.isnan([theory.simplex_variance(10, 5, kernel), theory.proposition_3(2, kernel),
                         theory.proposition_5(2, kernel), theory.damping(2, kernel)]).all()  # fmt: skip
    for prediction in (theory.proposition_3, theory.corollary_4, theory.proposition_5, theory.proposition_5_rbf,
                       theory.proposition_5_imq):  # fmt: skip
        assert np.isnan(prediction(1.0)) and np.isfinite(prediction(1.01))
    outside = [theory.corollary_6(10, 10), theory.proposition_7(10, 1), theory.proposition_7(10, 11),
               theory.mmd_variance(10, 12), theory.mmd_variance(10, 1),
               theory.damping(0.0), theory.langevin_variance(2.0), theory.langevin_variance(0.0)]  # fmt: skip
    assert np.isnan(outside).all()
    with pytest.raises(UnknownName, match="did you mean 'rbf'"):
        theory.simplex_variance(10, 5, "rbff")
    with pytest.raises(UnknownName, match="did you mean 'median'"):
        theory.simplex_variance(10, 5, rule="medain")


@pytest.mark.parametrize("kernel", RADIAL)
def test_the_papers_limits_are_the_law_at_finite_n(kernel):
    for d, n in ((12, 10), (30, 10), (400, 100)):
        median = theory.simplex_variance(d, n, kernel, "median")
        root = theory.simplex_variance(d, n, kernel, "root_dim")
        assert theory.proposition_3(d / n, kernel) == pytest.approx(median, rel=1e-6)
        assert theory.proposition_5(d / n, kernel) == pytest.approx(root, rel=1e-6)


def printed_imq(g):
    """Ba et al. 2022, app. C.3, as printed."""
    root = (3 * g**4 * np.sqrt(3 * (8 * g + 27)) + 8 * g**6 + 36 * g**5 + 27 * g**4) ** (1 / 3)
    return (4 * g * (g + 3) / root + root / g**2) / 6 - 2 / 3


def test_predictions_are_the_printed_ones():
    for gamma in (1.01, 1.5, 2.0, 4.0, 40.0):
        assert theory.corollary_4(gamma) == pytest.approx(theory.proposition_3(gamma), rel=1e-9)
        # f(1) = 2^(-1/2), f'(1) = -2^(-5/2), and 1 / (1 + log 2), -1 / (2 (1 + log 2)^2)
        imq, log_inverse = 2**-2.5 / (1 - 2**-0.5), 0.5 / (1 + np.log(2)) / np.log(2)
        assert theory.proposition_3(gamma, "imq") == pytest.approx(imq / gamma, rel=1e-9)
        assert theory.proposition_3(gamma, "log_inverse") == pytest.approx(log_inverse / gamma, rel=1e-9)
        assert theory.proposition_5_rbf(gamma) == pytest.approx(theory.proposition_5(gamma, "rbf"), rel=1e-6)
        assert theory.proposition_5_imq(gamma) == pytest.approx(printed_imq(gamma), rel=1e-9)
        assert theory.proposition_5_imq(gamma) == pytest.approx(theory.proposition_5(gamma, "imq"), rel=1e-6)


@pytest.mark.parametrize("alpha, factor", [(1.0, 1.0), (0.5, 1.0), (1.0, 1.5)])
def test_imq_with_a_fixed_bandwidth_falls_as_the_cube_root(alpha, factor):
    """Cor. 6, at gamma = 2: the exact law approaches the power law, and its slope approaches -1/3."""
    dims = np.array([10**4, 10**6, 10**8])
    exact = np.array([theory.simplex_variance(int(d), int(d) // 2, "imq", "fixed", alpha, factor=factor) for d in dims])
    power = np.array([theory.corollary_6(d, d / 2, alpha, factor) for d in dims])
    np.testing.assert_allclose(np.diff(np.log(power)) / np.diff(np.log(dims)), -1 / 3, rtol=1e-9)
    assert np.diff(np.log(exact))[-1] / np.log(100) == pytest.approx(-1 / 3, abs=0.005)
    gaps = exact / power - 1
    assert (np.abs(gaps) < [0.2, 0.05, 0.01]).all() and (np.diff(np.abs(gaps)) < 0).all()


@pytest.mark.parametrize("kernel", RADIAL)
def test_damping_gives_variance_one(kernel):
    f, slope = profile_of(kernel)
    for d, n in ((20, 10), (200, 50), (10**6, 10)):
        assert theory.damping(d / n, kernel) == pytest.approx(min(1, f(1) - slope(1) * n / d), rel=1e-6)
        assert theory.simplex_variance(d, n, kernel, "median", damping=theory.damping(d / n, kernel)) == pytest.approx(
            1
        )
    assert theory.damping(0.1, kernel) == 1.0  # many particles need none
    assert theory.damping(2.0) == pytest.approx(np.exp(-1) * 1.5, rel=1e-9)


def test_mmd_descent_balances_at_its_variance():
    """The mean of -grad_y k(y, x) over y ~ N(0, I) by Gauss-Hermite quadrature, coordinate by coordinate."""
    y, w = hermegauss(120)
    w = w / w.sum()
    for d, n in ((1, 2), (3, 4), (10, 6), (40, 5)):
        v = theory.mmd_variance(d, n)
        x = simplex(n, d, v)
        square = twice_sigma_squared("median", x) / 2
        k = np.exp(-((x[0][:, None] - y) ** 2) / (2 * square))  # (d, nodes): k is their product
        mean = k @ w
        slope = ((y - x[0][:, None]) / square * k) @ w
        attract = np.array([slope[i] * np.prod(np.delete(mean, i)) for i in range(d)])
        repulse = sum(np.exp(-1) * (x[0] - other) / square for other in x[1:]) / n
        np.testing.assert_allclose(attract, -repulse, atol=1e-9 * np.abs(repulse).max() + 1e-12)


def test_mmd_descent_in_high_dimensions_is_proposition_7():
    for n in (2, 3, 5, 20):
        for factor in (1.0, 2.0):  # the limit does not depend on it
            v = theory.mmd_variance(10**7, n, "median", factor)
            assert v * (n - 1) / n == pytest.approx(theory.proposition_7(10**7, n), rel=1e-5)
    assert theory.proposition_7(100, 3) == 0.5
    gaps = [n * (1 - theory.mmd_variance(4 * n, n) * (n - 1) / n) for n in (10, 40, 160)]  # 1 - O(1/n)
    assert max(gaps) < 3 and np.ptp(gaps[1:]) < 0.1 * gaps[-1]


def test_langevin_variance_is_that_of_its_autoregression():
    for epsilon in (0.01, 0.5, 1.5):
        v = 3.0
        for _ in range(5000):
            v = (1 - epsilon) ** 2 * v + 2 * epsilon
        assert theory.langevin_variance(epsilon) == pytest.approx(v, rel=1e-9)


def test_band_of_the_mean():
    means = np.random.default_rng(0).normal(scale=3.0, size=(20_000, 5, 4)).mean((1, 2))
    assert theory.mean_band(4, 5, 9.0) == pytest.approx(means.std(), rel=0.02)  # its own error: 0.5%


@pytest.mark.parametrize("d, sigma, norm", [(1, 0.8, 1.3), (3, 1.0, 0.5), (8, 2.0, 3.0)])
def test_noise_of_both_forces_by_monte_carlo(d, sigma, norm):
    rng = np.random.default_rng(1)
    x, y = np.eye(1, d)[0] * norm, rng.normal(size=(400_000, d))
    k = np.exp(-((x - y) ** 2).sum(1) / (2 * sigma**2))[:, None]
    for law, terms in ((theory.noise_of_s1, -y * k), (theory.noise_of_s2, (x - y) * k / sigma**2)):
        squares = ((terms - terms.mean(0)) ** 2).sum(1)
        error = squares.std() / np.sqrt(len(y))
        assert error < 0.01 * squares.mean()
        assert law(d, sigma, norm) == pytest.approx(squares.mean(), abs=5 * error)


def test_noise_of_the_driving_force_grows_with_the_dimension_and_of_the_repulsion_falls():
    """Prop. 2: of order d and 1/d where sigma^2 and |x|^2 are of order d."""
    for law, power in ((theory.noise_of_s1, 1), (theory.noise_of_s2, -1)):
        small, large = (law(d, np.sqrt(d), np.sqrt(d)) for d in (10**3, 10**5))
        assert np.log(large / small) / np.log(100) == pytest.approx(power, abs=0.02)
