"""Every target is what it says: score, samples, moments, normaliser, extent; and NumPyro models become targets."""

import threading
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import integrate, optimize, special, stats

from stein_core import TARGETS, Recipe, Spec, collect, from_numpyro, target_of
from stein_core.base.errors import UnknownName
from stein_core.sweep.grids import run_sweep
from stein_core.targets.data.datasets import EARTH_DENSITY, ORING_DISTRESS, ORING_TEMPERATURE, STACK_LOSS

DRAWS = 600_000  # enough to see a score that is 5% wrong on every target
ENTRIES = [e for e in TARGETS.entries() if e.facts.sampled and e.facts.data is None]
CLOSED = [e.name for e in ENTRIES if target_of(Spec(e.name)).truth.sample is not None]
SHAPES = [name for name in CLOSED if TARGETS[name].facts.dims[0] <= 2 <= TARGETS[name].facts.dims[1]]


@lru_cache(maxsize=None)
def drawn(name):
    target = target_of(Spec(name))
    return target, np.float64(jax.jit(target.truth.sample, static_argnums=1)(jax.random.key(5), DRAWS))


def z_scores(terms, expected):
    """|mean - expected| in standard errors, per column; terms (N, ...)."""
    error = terms.std(0) / np.sqrt(len(terms))
    return np.abs(terms.mean(0) - expected) / error


def worst_stein(x, score):
    """Worst z-score of E[w s] = -E[grad w] and E[w x s^T] = -E[w I + x grad w^T], w = 1 / (1 + |x|^2 / 20): Stein's
    identity for the mean and the covariance, damped so that heavy tails keep a variance (w = 1 is the plain form)."""
    w = 1 / (1 + (x**2).sum(1, keepdims=True) / 20)
    slope = -(w**2) * x / 10
    first = w * score + slope
    second = (w * x)[:, :, None] * score[:, None] + w[:, :, None] * np.eye(x.shape[1]) + x[:, :, None] * slope[:, None]
    return max(z_scores(first, 0).max(), z_scores(second, 0).max())


@pytest.mark.parametrize("name", CLOSED)
def test_score_fits_the_exact_samples(name):
    target, x = drawn(name)
    score = np.float64(jax.jit(jax.vmap(jax.grad(target.log_density)))(np.float32(x)))
    assert worst_stein(x, score) < 5
    steeper = 1.1 if name == "eight_gaussians" else 1.05  # its far modes add noise
    assert worst_stein(x, steeper * score) > 6  # a score that is 5% too steep does not pass
    if name in ("gaussian", "correlated", "two_modes", "three_modes"):  # light tails: the plain form too
        plain = x[:, :, None] * score[:, None]
        assert z_scores(score, 0).max() < 5 and z_scores(plain, -np.eye(2)).max() < 5
        assert z_scores(1.05 * plain, -np.eye(2)).max() > 6


@pytest.mark.parametrize("name", [name for name in CLOSED if target_of(Spec(name)).truth.variance is not None])
def test_exact_moments_fit_the_exact_samples(name):
    target, x = drawn(name)
    assert z_scores(x, target.truth.mean).max() < 5
    square = (x - target.truth.mean) ** 2
    if name != "funnel":  # its fourth moment is far too large for a normal bound: by quadrature instead
        assert z_scores(square, target.truth.variance).max() < 5
        assert z_scores(1.05 * square, target.truth.variance).max() > 6
    else:
        assert z_scores(square, target.truth.variance)[1] < 5
        assert target.truth.variance[0] == pytest.approx(
            integrate.quad(lambda v: np.exp(v) * stats.norm.pdf(v, 0, 1.5), -20, 20)[0]
        )


@pytest.mark.parametrize("name", SHAPES)
def test_density_is_normalised_and_lives_in_its_extent(name):
    """Trapezoids on a grid spaced like sinh: fine in the middle, and out to 55 for the tails of funnel and Student."""
    target = target_of(Spec(name))
    t = np.linspace(-1, 1, 1501)
    x = 0.5 * np.sinh(5.4 * t)
    weight = 0.5 * 5.4 * np.cosh(5.4 * t) * (t[1] - t[0])
    density = jax.jit(jax.vmap(jax.vmap(lambda a, b: target.log_density(jnp.stack([a, b])), (0, None)), (None, 0)))
    with jax.default_matmul_precision("highest"):  # as in a run
        mass = np.exp(np.float64(density(np.float32(x), np.float32(x)))) * np.outer(weight, weight)  # [y, x]
    assert mass.sum() == pytest.approx(np.exp(target.truth.log_normalizer), abs=1e-3)
    x0, x1, y0, y1 = target.extent
    inside = np.outer((y0 < x) & (x < y1), (x0 < x) & (x < x1))
    assert 0.9 < mass[inside].sum() < 1.001


def test_gaussian_in_other_dimensions():
    for d in (1, 7):
        target = target_of(Spec("gaussian", d))
        x = np.linspace(-2, 3, d)
        assert float(target.log_density(np.float32(x))) == pytest.approx(stats.norm.logpdf(x).sum(), rel=1e-5)
        assert target.truth.mean.shape == target.truth.variance.shape == (d,)
        assert target.truth.sample(jax.random.key(0), 3).shape == (3, d)


@pytest.mark.parametrize("name, density", [
    ("two_gaussians", lambda x: 0.5 * (stats.norm.pdf(x, -0.5) + stats.norm.pdf(x, 0.5))),
    ("cubic", lambda x: np.exp(-np.abs(x) ** 3 / 3) / 2.5758),  # the integral of exp(-|x|^3 / 3), to 5 digits
])  # fmt: skip
def test_toy_densities_in_one_dimension(name, density):
    target = target_of(Spec(name, 1))
    x = np.linspace(-9, 9, 20_001)
    ours = np.exp(np.float64(jax.vmap(target.log_density)(np.float32(x)[:, None])))
    np.testing.assert_allclose(ours, density(x), rtol=1e-3, atol=1e-7)
    assert np.trapezoid(ours, x) == pytest.approx(1, abs=1e-4)
    assert np.trapezoid(ours * x**2, x) == pytest.approx(float(target.truth.variance[0]), rel=1e-4)
    draws = np.float64(target.truth.sample(jax.random.key(2), 200_000))[:, 0]
    for power in (1, 2, 3, 4):
        for odd in (1, np.sign(draws)):
            expected = np.trapezoid(density(x) * x**power * (1 if np.isscalar(odd) else np.sign(x)), x)
            assert z_scores(odd * draws**power, expected) < 5, power


def test_only_the_first_of_many_coordinates_has_two_modes():
    target, x = target_of(Spec("two_gaussians", 7)), np.linspace(-1, 2, 7)
    rest = stats.norm.logpdf(x[1:]).sum()
    first = np.log(0.5 * stats.norm.pdf(x[0], -0.5) + 0.5 * stats.norm.pdf(x[0], 0.5))
    assert float(target.log_density(np.float32(x))) == pytest.approx(first + rest, rel=1e-5)
    np.testing.assert_allclose(target.truth.variance, [1.25] + [1.0] * 6)
    assert target_of(Spec("cubic", 3)).truth.sample(jax.random.key(0), 4).shape == (4, 3)


STACKED = [name for name in TARGETS if TARGETS[name].facts.dim_step == 2]


@pytest.mark.long
@pytest.mark.parametrize("name", STACKED)
def test_stacked_shapes_are_independent_copies(name):
    one, three = target_of(Spec(name)), target_of(Spec(name, 6))
    x = np.random.default_rng(3).normal(size=(20, 6))
    copies = sum(jax.vmap(one.log_density)(np.float32(x[:, i : i + 2])) for i in (0, 2, 4))
    np.testing.assert_allclose(jax.vmap(three.log_density)(np.float32(x)), copies, rtol=1e-5, atol=1e-5)
    for group, fact in (("truth", "mean"), ("truth", "variance"), ("start", "scale"), ("start", "center")):
        of_three, of_one = (getattr(getattr(each, group), fact) for each in (three, one))
        np.testing.assert_array_equal(of_three, np.tile(of_one, 3))
    draws = np.float64(three.truth.sample(jax.random.key(4), 40_000))
    assert draws.shape == (40_000, 6) and len(three.coordinates) == len(set(three.coordinates)) == 6
    _, plane = drawn(name)
    for pair in (draws[:, :2], draws[:, 2:4], draws[:, 4:]):  # each copy has the distribution of the shape itself
        for column, other in zip(pair.T, plane.T):
            assert stats.ks_2samp(column, other[:100_000]).pvalue > 1e-4
    ranks = stats.spearmanr(draws).statistic  # copies know nothing of each other
    assert np.abs(ranks - np.kron(np.eye(3), np.ones((2, 2))) * ranks).max() < 5 / np.sqrt(40_000)
    if one.truth.covariance is not None:
        np.testing.assert_allclose(three.truth.covariance, np.kron(np.eye(3), one.truth.covariance))
        np.testing.assert_allclose(np.cov(plane.T), one.truth.covariance, atol=0.03)
        np.testing.assert_allclose(np.diag(three.truth.covariance), three.truth.variance)
    with pytest.raises(ValueError, match="dim = 5 is no multiple of 2; nearest for target .*: 4 or 6"):
        Spec(name, 5)


# ---------------------------------------------------------------- posteriors with data


def test_oring_data_and_posterior():
    """Dalal, Fowlkes & Hoadley's maximum likelihood fit, then our posterior against the same likelihood in NumPy."""

    def fit(prior_sd, x):
        def loss(b):
            eta = b[0] + b[1] * x
            return np.sum(np.logaddexp(0, eta) - ORING_DISTRESS * eta) + np.sum(b**2) / (2 * prior_sd**2)

        return loss, optimize.minimize(
            loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 9999}
        ).x

    assert len(ORING_TEMPERATURE) == 23 and ORING_DISTRESS.sum() == 7
    np.testing.assert_allclose(fit(np.inf, ORING_TEMPERATURE)[1], [15.043, -0.2322], rtol=5e-4)
    target = target_of(Spec("oring"))
    loss, mode = fit(5.0, (ORING_TEMPERATURE - ORING_TEMPERATURE.mean()) / 10)
    np.testing.assert_allclose(target.start.center, mode, atol=2e-3)
    constant = -2 * np.log(5 * np.sqrt(2 * np.pi))
    for theta in (mode, [0.0, 0.0], [2.0, -3.0]):
        assert float(target.log_density(np.float32(theta))) == pytest.approx(constant - loss(np.array(theta)), rel=1e-5)
    curvature = jax.hessian(lambda th: -target.log_density(th))(np.float32(mode))
    np.testing.assert_allclose(target.start.scale, np.sqrt(np.diagonal(np.linalg.inv(curvature))), rtol=1e-2)
    assert target.log_joint is None and target.coordinates == ("intercept", "slope")


def test_stack_loss_is_a_regression_with_named_coefficients():
    """Least squares on the raw columns gives the published line (Brownlee 1965), and the density is SciPy's."""
    *inputs, loss = STACK_LOSS
    raw = np.column_stack([np.ones(21), *inputs])
    line, rest, _, _ = np.linalg.lstsq(raw, loss)
    np.testing.assert_allclose([*line, np.sqrt(rest[0] / 17)], [-39.920, 0.7156, 1.2953, -0.1521, 3.243], rtol=1e-3)
    target = target_of(Spec("stackloss"))
    assert target.coordinates == ("acid", "air", "mean", "log sd", "water")
    x = stats.zscore(np.array(inputs), axis=1, ddof=1)
    acid, air, mean, log_sd, water = theta = np.array([-0.4, 6.0, 17.0, 1.2, 4.0])
    expected = stats.norm.logpdf(loss, mean + air * x[0] + water * x[1] + acid * x[2], np.exp(log_sd)).sum()
    expected += stats.norm.logpdf([acid, air, water], 0, 10).sum() + stats.norm.logpdf(mean, 0, 30)
    expected += stats.halfnorm.logpdf(np.exp(log_sd), scale=10) + log_sd
    assert float(target.log_density(np.float32(theta))) == pytest.approx(expected, abs=2e-3)


def test_evidence_of_earth_is_the_same_in_both_spaces():
    """Written again with scipy.stats over (mean, sd); ours is a density of (mean, log sd), so they agree only if the
    log-Jacobian is there: without it the second integral is that of p / sd, half of it."""
    assert len(EARTH_DENSITY) == 29 and EARTH_DENSITY.mean() == pytest.approx(5.448, abs=5e-4)
    data = 10 * (EARTH_DENSITY - 5.5)
    spread, n = np.sum((data - data.mean()) ** 2), len(data)
    peak = stats.norm.logpdf(data, data.mean(), data.std()).sum()

    def joint(mean, sd):  # likelihood by its sufficient statistics
        log_likelihood = -0.5 * (spread + n * (data.mean() - mean) ** 2) / sd**2 - n * np.log(sd * np.sqrt(2 * np.pi))
        return np.exp(log_likelihood + stats.norm.logpdf(mean, 0, 10) + stats.halfnorm.logpdf(sd, scale=5) - peak)

    expected, error = integrate.dblquad(lambda mean, sd: joint(mean, sd), 0.5, 9.0, -5.0, 4.0, epsrel=1e-7)
    assert error < 1e-5 * expected
    target = target_of(Spec("earth"))
    assert target.coordinates == ("mean", "log sd")
    mean, log_sd = np.linspace(-5, 4, 301), np.linspace(np.log(0.5), np.log(9), 301)
    grid = np.stack(np.meshgrid(mean, log_sd), axis=-1).reshape(-1, 2)
    cell = (mean[1] - mean[0]) * (log_sd[1] - log_sd[0])
    ours, bare = (np.exp(np.float64(jax.jit(jax.vmap(f))(np.float32(grid))) - peak).sum() * cell
                  for f in (target.log_density, target.log_joint))  # fmt: skip
    assert ours == pytest.approx(expected, rel=2e-3)
    assert abs(bare / expected - 1) > 0.3  # the check can tell
    values = target.constrain(np.float32([0.3, np.log(2.0)]))
    assert set(values) == {"mean", "sd"} and float(values["sd"]) == pytest.approx(2.0, rel=1e-5)


# ---------------------------------------------------------------- any NumPyro model


@pytest.mark.long
def test_from_numpyro_handles_vectors_positives_and_simplexes():
    def model(y):
        numpyro.sample("b", dist.Normal(0, 2).expand([3]).to_event(1))
        numpyro.sample("a", dist.Gamma(3.0, 2.0))
        p = numpyro.sample("p", dist.Dirichlet(jnp.array([2.0, 3.0, 4.0])))
        with numpyro.plate("data", len(y)):
            numpyro.sample("y", dist.Categorical(p), obs=y)

    target = from_numpyro(model, jnp.array([0, 2, 2]))
    names = ("log a", "b[0]", "b[1]", "b[2]", "unconstrained p[0]", "unconstrained p[1]")
    assert target.coordinates == names and target.dim == 6 and target.start.scale.shape == (6,)
    theta = np.float32([0.4, 1.0, -1.0, 0.5, 0.3, -0.7])
    values = {k: np.float64(v) for k, v in target.constrain(theta).items()}
    assert list(values) == ["a", "b", "p"] and values["p"].sum() == pytest.approx(1)
    joint = stats.gamma.logpdf(values["a"], 3, scale=0.5) + stats.norm.logpdf(values["b"], 0, 2).sum()
    joint += stats.dirichlet.logpdf(values["p"] / values["p"].sum(), [2, 3, 4]) + np.log(values["p"][[0, 2, 2]]).sum()
    assert float(target.log_joint(theta)) == pytest.approx(joint, rel=1e-5)
    # the volume element of theta -> (a, b, first two of p), by automatic differentiation of `constrain`
    flat = jax.jacobian(
        lambda th: jnp.concatenate([jnp.atleast_1d(v)[: 3 - (k == "p")] for k, v in target.constrain(th).items()])
    )
    log_jacobian = np.linalg.slogdet(np.float64(flat(theta)))[1]
    assert abs(log_jacobian) > 0.5
    assert float(target.log_density(theta)) == pytest.approx(joint + log_jacobian, rel=1e-4)
    # the mode of the unconstrained density: log a at log(3/2), b at 0
    np.testing.assert_allclose(target.start.center[:4], [np.log(1.5), 0, 0, 0], atol=1e-3)
    np.testing.assert_allclose(target.start.scale[:4], [3**-0.5, 2, 2, 2], rtol=1e-2)


def test_from_numpyro_refuses_what_it_cannot_do():
    def discrete():
        numpyro.sample("k", dist.Poisson(3.0))

    def observed():
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=1.0)

    with pytest.raises(ValueError, match="site 'k' of 'discrete' is discrete"):
        from_numpyro(discrete)
    with pytest.raises(ValueError, match="model 'observed' has no latent site"):
        from_numpyro(observed)


@pytest.mark.long
def test_numpyro_models_on_two_threads_at_once():
    """NumPyro keeps one handler stack for all threads: without care, models pick up each other's sites."""

    def model_of(name, wide):
        def model():
            for i in range(12):  # long enough to overlap
                numpyro.sample(f"{name}{i:02d}", dist.Normal(0.0, wide))

        return model

    targets, failures = {}, []

    def work(name, wide):
        try:
            target = from_numpyro(model_of(name, wide))
            # Differentiating and compiling goes on outside the lock while the other thread may be tracing.
            slope = jax.jit(jax.grad(target.log_density))(jnp.ones(target.dim))
            targets[name] = (target.coordinates, np.asarray(slope))
        except Exception as error:  # handed to the main thread, which fails on it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name, wide)) for name, wide in zip("ab", (1.0, 2.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and set(targets) == set("ab")
    for name, wide in zip("ab", (1.0, 2.0)):
        coordinates, slope = targets[name]
        assert coordinates == tuple(f"{name}{i:02d}" for i in range(12))
        np.testing.assert_allclose(slope, -1 / wide**2, rtol=1e-5)


def test_a_target_is_deaf_to_numpyro_handlers():
    """What another thread has on NumPyro's stack while ours differentiates or compiles must change nothing."""

    def model():
        numpyro.sample("a", dist.Normal(0.0, 2.0))

    target = from_numpyro(model)
    with numpyro.handlers.scale(scale=3.0):
        slope = jax.jit(jax.grad(target.log_density))(jnp.ones(1))
    np.testing.assert_allclose(slope, -0.25, rtol=1e-5)


def test_gamma_density_on_the_log_scale():
    target = target_of(Spec("gamma"))
    u = np.linspace(-3, 2, 9)
    expected = stats.gamma.logpdf(np.exp(u), 3, scale=0.5) + u
    np.testing.assert_allclose(jax.vmap(target.log_density)(np.float32(u)[:, None]), expected, rtol=1e-4)
    assert target.start.center[0] == pytest.approx(np.log(1.5), abs=1e-3)  # also digamma(3) - log 2 = 0.23 lies in view
    assert target.extent[0] < special.digamma(3) - np.log(2) < target.extent[1]


@pytest.mark.long
def test_a_spec_takes_a_target_without_a_name():
    names = list(TARGETS)

    def model(observed):
        rate = numpyro.sample("rate", dist.Normal(jnp.zeros(2), 2.0).to_event(1))
        numpyro.sample("observed", dist.Normal(rate, 1.0).to_event(1), obs=observed)

    # The posterior of a normal mean: precision 1 / 4 + 1, so mean 0.8 y and variance 0.8.
    found = {}
    for y in (np.array([1.0, 3.0]), np.array([-2.0, 0.0])):
        spec = Spec(from_numpyro(model, y), method="vi", draws=100)
        assert spec.dim == 2 and "rate[0], rate[1]" in repr(spec) and len(repr(spec)) < 250
        end = collect(Recipe(spec, {"method.step_size": 0.01}), steps=2000)[-1]
        assert end.locations[0] == pytest.approx(0.8 * y, abs=0.05)
        assert end.scales[0] == pytest.approx(np.sqrt(0.8), abs=0.05)
        found[spec] = end
    assert len(found) == 2 and list(TARGETS) == names


def test_what_needs_a_name_refuses_a_target_without_one(tmp_path):
    target = target_of(Spec("banana"))
    assert Spec(target) == Spec(target) != Spec("banana")
    recipe = Recipe(Spec(target, method="svgd"))
    for act in (recipe.to_dict, lambda: recipe.to_python(3), lambda: run_sweep([recipe], store=None)):
        with pytest.raises(ValueError, match="has no name that a file could keep; allowed: a registered name"):
            act()
    with pytest.raises(ValueError, match="dim = 3 is out of range; allowed: 2 to 2."):
        Spec(target, 3)


def test_a_target_that_is_not_listed_is_in_no_message(monkeypatch):
    monkeypatch.setattr(TARGETS, "_entries", dict(TARGETS._entries))
    TARGETS.register("ringlet", label="", reference="", dims=(2, 2), default_dim=2, listed=False)(TARGETS["ring"].make)
    assert Spec("ringlet").dim == 2
    with pytest.raises(UnknownName) as error:
        Spec("ringlets")
    assert "ringlet'" not in str(error.value) and "ringlet," not in str(error.value) and "ring" in str(error.value)
