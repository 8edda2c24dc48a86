"""The start of a user's own NumPyro model is where its mass is."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.experimental.ode import odeint
from priors import quietly
from scipy.special import gamma

from stein_core import TARGETS, Recipe, Spec, collect, from_numpyro
from stein_core.targets.own.numpyro_models import ModelWarning
from stein_core.targets.posteriordb import flat, flat_positive

constraints = dist.constraints
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])  # Rubin 1981: eight schools
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


# ---------------------------------------------------------------- a mode that is no place to start


def centred_schools():
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    theta = numpyro.sample("theta", dist.Normal(mu, tau).expand([8]).to_event(1))
    numpyro.sample("y", dist.Normal(theta, ERRORS), obs=EFFECTS)


@pytest.fixture(scope="module")
def schools():
    with pytest.warns(ModelWarning, match="'centred_schools': The mode is no place to start: the density has no bound"):
        return from_numpyro(centred_schools)


@pytest.mark.long
def test_a_density_without_a_bound_starts_among_its_mass(schools):
    """posteriordb's 10,000 reference draws: mu 4.41 +- 3.31, theta[0] 6.19 +- 5.64, log tau 0.80 +- 1.18; NUTS on this
    centred form, which does not reach all of the neck: log tau 0.93 +- 0.89."""
    where = dict(zip(schools.coordinates, zip(schools.start.center, schools.start.scale)))
    for name, mean, sd in (("mu", 4.41, 3.31), ("log tau", 0.93, 0.89), ("theta[0]", 6.19, 5.64)):
        center, scale = where[name]
        assert abs(center - mean) < 1.5 * sd and 0.4 * sd < scale < 2 * sd, name
    assert np.isfinite(schools.log_density(jnp.float32(schools.start.center)))
    assert "short run of NUTS" in schools.start.note


@pytest.mark.rare
@pytest.mark.parametrize("method", ["svgd", "smi"])
def test_runs_from_there_end_where_tau_is_sane(schools, method):
    """From the old start, log tau = -13.5, they ended at -12.1 and -11.5. The neck still draws point masses: after 300
    steps the mean is what tells."""
    TARGETS.register("schools", label="Schools", reference="Rubin 1981", dims=(10, 10), default_dim=10)(makes(schools))
    try:
        frame = collect(Recipe(Spec("schools", 10, method)), steps=300)[-1]
    finally:
        TARGETS._entries.pop("schools")
    log_tau = frame.locations[:, schools.coordinates.index("log tau")]
    assert frame.finite and np.isfinite(frame.locations).all()
    assert -2 < log_tau.mean() < 3.5 and log_tau.min() > -6


def makes(target):
    def make(dim):
        "A target made before."
        return target

    return make


def test_the_mode_of_a_funnel_is_not_where_its_mass_is():
    """The non-centred form has a mode, at tau = 29; the reference's log tau is 0.80 +- 1.18."""

    def model():
        z = numpyro.sample("z", dist.Normal(0, 1).expand([8]).to_event(1))
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfCauchy(5))
        numpyro.sample("y", dist.Normal(mu + tau * z, ERRORS), obs=EFFECTS)

    with pytest.warns(ModelWarning, match="the normal approximation there is far from the density"):
        target = from_numpyro(model)
    assert target.coordinates[:2] == ("mu", "log tau")
    assert abs(target.start.center[1] - 0.80) < 1.18 and 0.6 < target.start.scale[1] < 2.4
    np.testing.assert_allclose(target.start.scale[2:], 0.95, rtol=0.35)


# ---------------------------------------------------------------- the mode, where it is a place to start


def test_a_regression_with_badly_scaled_columns():
    """Normal noise of a known size and priors as good as flat: the posterior is N(lstsq, noise^2 (X^T X)^-1)."""
    rng = np.random.default_rng(4)
    year, income = rng.uniform(1990, 2020, 60), rng.lognormal(10, 1, 60)
    x = np.column_stack([np.ones(60), year, income, 1e-3 * rng.normal(size=60)])
    y = x @ [-300.0, 0.2, 3e-4, 900.0] + 0.07 * rng.normal(size=60)

    def model(x, y):
        b = numpyro.sample("b", dist.Normal(0, 1e6).expand([4]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ b, 0.07), obs=y)

    target = quietly(model, x, y)
    mode, sd = np.linalg.lstsq(x, y)[0], 0.07 * np.sqrt(np.diagonal(np.linalg.inv(x.T @ x)))
    assert (np.abs(target.start.center - mode) < 1e-3 * sd).all()
    np.testing.assert_allclose(target.start.scale, sd, rtol=1e-4)


@pytest.mark.long
def test_an_autoregression():
    """Its priors are wide, so the mode of alpha and beta is that of least squares."""
    rng = np.random.default_rng(0)
    y = np.zeros(200)
    for t in range(3, 200):
        y[t] = 0.1 + y[t - 3 : t] @ [0.1, -0.3, 0.7] + 0.3 * rng.normal()

    def ar(y):
        alpha, sigma = numpyro.sample("alpha", dist.Normal(0, 10)), numpyro.sample("sigma", dist.HalfCauchy(2.5))
        beta = numpyro.sample("beta", dist.Normal(0, 10).expand([3]).to_event(1))
        lags = jnp.stack([y[3 - k : len(y) - k] for k in (1, 2, 3)], axis=1)
        numpyro.sample("y", dist.Normal(alpha + lags @ beta, sigma), obs=y[3:])

    target = quietly(ar, y)
    x = np.column_stack([np.ones(197), y[2:-1], y[1:-2], y[:-3]])
    best, (rest,) = np.linalg.lstsq(x, y[3:])[:2]
    assert target.coordinates == ("alpha", "beta[0]", "beta[1]", "beta[2]", "log sigma")
    assert (np.abs(target.start.center[:4] - best) < 0.02 * target.start.scale[:4]).all()
    np.testing.assert_allclose(
        target.start.scale[:4], np.sqrt(rest / 197 * np.diagonal(np.linalg.inv(x.T @ x))), rtol=0.02
    )


@pytest.mark.long
def test_a_garch_model():
    """Flat priors, a bound that depends on another site, and a scan. The mode is near what made the data, and
    higher."""
    rng = np.random.default_rng(0)
    true = {"alpha0": 0.5, "alpha1": 0.4, "beta1": 0.3, "mu": 1.0}
    returns, sigma = np.empty(300), 1.0
    for t in range(300):
        returns[t] = true["mu"] + sigma * rng.normal()
        sigma = np.sqrt(true["alpha0"] + true["alpha1"] * (returns[t] - true["mu"]) ** 2 + true["beta1"] * sigma**2)

    target = quietly(garch, returns, 1.0)
    values = {k: float(v) for k, v in target.constrain(jnp.float32(target.start.center)).items()}
    assert set(values) == set(true) and values["alpha1"] + values["beta1"] < 1
    for name, value in true.items():
        assert abs(values[name] - value) < 0.35, name
    logit = lambda p: np.log(p / (1 - p))  # noqa: E731
    theta = np.float32([np.log(0.5), logit(0.4), logit(0.3 / 0.6), 1.0])
    assert target.log_density(jnp.float32(target.start.center)) > target.log_density(theta)


def garch(y, sigma1):
    mu, alpha0 = flat("mu"), flat_positive("alpha0")
    alpha1 = numpyro.sample("alpha1", dist.Uniform(0, 1))
    beta1 = numpyro.sample("beta1", dist.Uniform(0, 1 - alpha1))
    numpyro.factor("flat", jnp.log(1 - alpha1))  # Stan's bounds without a prior: undo the uniform's density

    def step(sigma, before):
        sigma = jnp.sqrt(alpha0 + alpha1 * (before - mu) ** 2 + beta1 * sigma**2)
        return sigma, sigma

    first = sigma1 * jnp.ones_like(mu)
    sigma = jnp.concatenate([first[None], jax.lax.scan(step, first, y[:-1])[1]])
    numpyro.sample("y", dist.Normal(mu, sigma), obs=y)


def test_the_higher_of_two_modes():
    """Weights 0.1 and 0.9, both within reach of the starts; one search ends in either."""

    def model():
        x = flat("x")
        low, high = dist.Normal(-1.5, 0.2).log_prob(x), dist.Normal(1.2, 0.2).log_prob(x)
        numpyro.factor("mixture", jnp.logaddexp(jnp.log(0.1) + low, jnp.log(0.9) + high))

    for seed in range(6):
        assert quietly(model, seed=seed).start.center == pytest.approx([1.2], abs=1e-4)


def test_points_without_a_finite_density_are_stepped_over():
    """Gamma(7, 3) but NaN below x = 1 and -inf beyond 4: three quarters of the starts and many steps are lost."""

    def model():
        x = flat("x")
        inside = jnp.sqrt(x - 1.0) * 0.0 + jnp.where(x < 4.0, 0.0, -jnp.inf)
        numpyro.factor("density", 6 * jnp.log(x) - 3 * x + inside)

    target = quietly(model)
    assert target.start.center == pytest.approx([2.0], abs=1e-5)
    assert target.start.scale == pytest.approx([np.sqrt(4 / 6)], rel=1e-5)


def test_the_few_points_with_a_finite_density_are_found():
    """N(1.9, 0.02^2), and NaN below 1.8: 95 of 100 starts are lost, with seed 0 the first 26."""

    def model():
        x = flat("x")
        numpyro.factor("density", -0.5 * ((x - 1.9) / 0.02) ** 2 + 0.0 * jnp.sqrt(x - 1.8))

    target = quietly(model)
    assert target.start.center == pytest.approx([1.9], abs=1e-5) and target.start.scale == pytest.approx(
        [0.02], rel=1e-5
    )


def test_a_curvature_that_is_not_a_number_is_no_error():
    """exp(-|x|^1.5) from two hinges: beside a hinge JAX's second derivative is NaN. Its sd is 1 / sqrt(Gamma(2/3))."""

    def model():
        x = flat("x")
        numpyro.factor("density", -(jnp.maximum(x, 0.0) ** 1.5) - jnp.maximum(-x, 0.0) ** 1.5)

    with pytest.warns(ModelWarning, match="no curvature where it is highest"):
        target = from_numpyro(model)
    assert abs(target.start.center[0]) < 0.3 and target.start.scale == pytest.approx([gamma(2 / 3) ** -0.5], rel=0.3)


def test_a_curvature_without_any_number_is_no_error():
    """The same in three directions that are mixed: LAPACK raises on a matrix of NaN alone."""
    mixed = np.eye(3) - 2 / 3  # orthogonal

    def model():
        y = flat("x", 3) @ mixed
        numpyro.factor("density", jnp.sum(-(jnp.maximum(y, 0.0) ** 1.5) - jnp.maximum(-y, 0.0) ** 1.5))

    with pytest.warns(ModelWarning, match="no curvature where it is highest"):
        target = from_numpyro(model)
    assert (np.abs(target.start.center) < 0.3).all()
    assert target.start.scale == pytest.approx(np.full(3, gamma(2 / 3) ** -0.5), rel=0.3)


@pytest.mark.long
def test_an_ordinary_differential_equation():
    """JAX has no forward mode of `odeint`. Of y' = -k y the end is exp(-k): the mode is where it meets the data."""

    def model():
        log_k = flat("log_k")
        end = odeint(lambda y, t, k: -k * y, jnp.ones_like(log_k), jnp.array([0.0, 1.0]), jnp.exp(log_k))[-1]
        numpyro.sample("end", dist.Normal(end, 0.01), obs=0.5)

    target = quietly(model)
    slope = 0.5 * np.log(2)  # of the end, against log k
    assert target.start.center == pytest.approx([np.log(np.log(2))], abs=1e-5)
    assert target.start.scale == pytest.approx([0.01 / slope], rel=1e-4)


# ---------------------------------------------------------------- posteriordb

DATA = Path(os.environ.get("STEIN_DATA", ""), "posteriordb")


def kidiq(x, y):
    b, sigma = flat("beta", 3), numpyro.sample("sigma", dist.HalfCauchy(2.5))
    numpyro.sample("y", dist.Normal(x @ b, sigma), obs=y)


def autoregression(y):
    alpha, sigma = numpyro.sample("alpha", dist.Normal(0, 10)), numpyro.sample("sigma", dist.HalfCauchy(2.5))
    beta = numpyro.sample("beta", dist.Normal(0, 10).expand([5]).to_event(1))
    lags = jnp.stack([y[5 - k : len(y) - k] for k in range(1, 6)], axis=1)
    numpyro.sample("y", dist.Normal(alpha + lags @ beta, sigma), obs=y[5:])


def two_normals(y):
    mu = numpyro.sample("mu", dist.ImproperUniform(constraints.ordered_vector, (), (2,)))
    numpyro.factor("prior", dist.Normal(0, 2).log_prob(mu).sum())
    sigma = numpyro.sample("sigma", dist.HalfNormal(2).expand([2]).to_event(1))
    theta = numpyro.sample("theta", dist.Beta(5, 5))
    first, second = (dist.Normal(mu[i], sigma[i]).log_prob(y) for i in (0, 1))
    numpyro.factor("data", jnp.logaddexp(jnp.log(theta) + first, jnp.log1p(-theta) + second).sum())


POSTERIORS = {
    "kidiq-kidscore_momhsiq": lambda r: (
        kidiq, np.column_stack([np.ones(434), r["data_mom_hs"], r["data_mom_iq"]]), np.float64(r["data_kid_score"])
    ),
    "arK-arK": lambda r: (autoregression, r["data_y"]),
    "garch-garch11": lambda r: (garch, r["data_y"], float(r["data_sigma1"])),
    "low_dim_gauss_mix-low_dim_gauss_mix": lambda r: (two_normals, r["data_y"]),
}  # fmt: skip


@pytest.mark.skipif(not DATA.is_dir(), reason="STEIN_DATA names no folder with posteriordb's reference draws")
@pytest.mark.rare
@pytest.mark.parametrize("name", POSTERIORS)
def test_starts_among_the_reference_draws(name):
    with np.load(DATA / f"{name}.npz") as file:
        reference = dict(file)
    target = quietly(*POSTERIORS[name](reference))
    values = target.constrain(jnp.float32(target.start.center))
    center = {f"{k}[{i[0] + 1}]" if i else k: float(v[i]) for k, v in values.items() for i in np.ndindex(*v.shape)}
    expected = dict(zip(reference["names"], zip(reference["mean"], reference["sd"])))
    assert set(center) == set(expected)
    for parameter, (mean, sd) in expected.items():
        assert abs(center[parameter] - mean) < 3 * sd, parameter
