"""Any NumPyro model becomes a target: every support, either precision, and a clear word on what cannot be taken."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import potential_energy
from priors import quietly

from stein_core import from_numpyro
from stein_core.targets.own.numpyro_models import ModelWarning
from stein_core.targets.posteriordb import flat, flat_positive

constraints = dist.constraints


# ---------------------------------------------------------------- any support


def vector(*shape):
    return dist.Normal(0, 1).expand(shape).to_event(len(shape))


def improper(support, event=(), batch=()):
    return dist.ImproperUniform(support, batch, event)


SUPPORTS = {  # of a few sites at once: name -> (distribution, size of its part of theta)
    "flat": lambda: {
        "real": (improper(constraints.real), 1),
        "positive": (improper(constraints.positive), 1),
        "interval": (improper(constraints.interval(-1.0, 2.0)), 1),
        "vectors": (improper(constraints.real_vector, (3,), (2,)).to_event(1), 6),
        "simplex": (improper(constraints.simplex, (3,)), 2),
        "ordered": (improper(constraints.ordered_vector, (3,)), 3),
        "positive_ordered": (improper(constraints.positive_ordered_vector, (3,)), 3),
        "correlations": (improper(constraints.corr_cholesky, (3, 3)), 3),
    },
    "numbers": lambda: {
        "interval": (dist.Uniform(-2.0, 3.0), 1),
        "unit_interval": (dist.Beta(2.0, 3.0), 1),
        "truncated_below": (dist.TruncatedNormal(0.0, 1.0, low=0.5), 1),
        "truncated_above": (dist.TruncatedNormal(0.0, 1.0, high=-0.5), 1),
        "truncated": (dist.TruncatedNormal(0.0, 1.0, low=-0.5, high=1.0), 1),
        "greater_than": (dist.Pareto(1.5, 3.0), 1),
        "circular": (dist.VonMises(0.3, 2.0), 1),
    },
    "vectors": lambda: {
        "simplex": (dist.Dirichlet(jnp.array([2.0, 3.0, 4.0])), 2),
        "simplexes": (dist.Dirichlet(jnp.ones((2, 4))).to_event(1), 6),
        "ordered": (dist.TransformedDistribution(vector(3), dist.transforms.OrderedTransform()), 3),
        "zero_sum": (dist.ZeroSumNormal(1.0, event_shape=(4,)), 3),
    },
    "matrices": lambda: {
        "any": (dist.MatrixNormal(jnp.zeros((2, 3)), jnp.eye(2), jnp.eye(3)), 6),
        "correlation": (dist.LKJ(3, 2.0), 3),
        "correlation_cholesky": (dist.LKJCholesky(4, 2.0), 6),
        "lower_cholesky": (dist.WishartCholesky(5.0, jnp.eye(2)), 3),
        "positive_definite": (dist.Wishart(5.0, jnp.eye(3)), 6),
    },
}


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(name, marks=pytest.mark.rare if name in ("flat", "matrices") else pytest.mark.long)
        for name in SUPPORTS
    ],
)
def test_density_and_values_on_every_support(group):
    """The density is NumPyro's own potential energy; values lie in the support and have the distribution's shape."""
    sites = dict(sorted(SUPPORTS[group]().items()))

    def model():
        for name, (fn, _) in SUPPORTS[group]().items():
            x = numpyro.sample(name, fn)
            numpyro.sample(f"{name}_data", dist.Normal(jnp.sum(x), 1.0), obs=0.7)
            numpyro.factor(f"{name}_proper", -0.5 * jnp.sum(x**2))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # a normal approximation of such a mixture may be poor
        target = from_numpyro(model)
    assert target.dim == sum(size for _, size in sites.values()) == len(set(target.coordinates))
    assert (
        np.isfinite(target.start.center).all()
        and np.isfinite(target.start.scale).all()
        and (target.start.scale > 0).all()
    )
    maps = {name: dist.biject_to(fn.support) for name, (fn, _) in sites.items()}
    at = {name: maps[name].inverse_shape(fn.shape()) for name, (fn, _) in sites.items()}
    assert all(int(np.prod(at[name])) == size for name, (_, size) in sites.items())
    energy = jax.jit(lambda parts: potential_energy(model, (), {}, parts))
    constrain, slope = jax.jit(target.constrain), jax.jit(jax.value_and_grad(target.log_density))
    for theta in np.float32(target.start.center + np.random.default_rng(1).uniform(-1, 1, (3, target.dim))):
        values, ends = constrain(theta), np.cumsum([size for _, size in sites.values()])
        for name, (fn, _) in sites.items():
            assert values[name].shape == fn.shape() and np.all(fn.support(values[name])), name
        parts = {n: p.reshape(at[n]) for n, p in zip(sites, np.split(theta, ends[:-1]))}
        value, gradient = slope(theta)
        assert float(value) == pytest.approx(-float(energy(parts)), rel=1e-5, abs=1e-5)
        assert np.isfinite(gradient).all()


def test_a_flat_prior_beside_others():
    """Two sites and data: NumPyro's potential energy again, and the closed form of the mode."""

    def model(y):
        sigma = flat_positive("sigma")
        numpyro.sample("y", dist.Normal(flat("mu"), sigma), obs=y)

    y = np.array([1.0, 2.0, 4.0, 7.0, 3.0])
    target = quietly(model, y)
    for theta in np.float32([[0.0, 0.0], [3.0, 1.0], [-2.0, -0.5]]):
        energy = potential_energy(model, (jnp.float32(y),), {}, {"mu": theta[0], "sigma": theta[1]})
        assert float(target.log_density(theta)) == pytest.approx(-float(energy), rel=1e-5)
    # n log-likelihood terms and the log-Jacobian of log sigma: sigma^2 = sum of squares / (n - 1)
    np.testing.assert_allclose(target.start.center, [y.mean(), np.log(y.std(ddof=1))], atol=1e-5)


# ---------------------------------------------------------------- precision


def test_arrays_around_the_model_are_searched_in_float64_too():
    """JAX takes a NumPy array in the precision of its first use as long as that use is kept."""
    x, y = np.linspace(2000.0, 2020.0, 30), np.sin(np.arange(30.0))

    def model():
        a, b = (numpyro.sample(name, dist.Normal(0, 1e5)) for name in "ab")
        numpyro.sample("y", dist.Normal(a + b * jnp.clip(x, 0, 3000), 0.1), obs=y)

    target = quietly(model)
    slope, intercept = np.polyfit(x, y, 1)
    assert (np.abs(target.start.center - [intercept, slope]) < 1e-2 * target.start.scale).all()
    assert target.log_density(jnp.zeros(2)).dtype == jnp.zeros(1).dtype == np.float32


def test_a_scan_that_begins_with_its_data_is_searched_in_float64():
    """A scan takes no data in float32 beside parameters in float64."""

    def model(y):
        b = numpyro.sample("b", dist.Normal(0.0, 10.0))
        last, _ = jax.lax.scan(lambda carry, v: (0.5 * carry + b * v, None), y[0], y[1:])
        numpyro.sample("end", dist.Normal(last, 0.1), obs=0.5)

    for y in (np.float32([0.0, 1.0, 0.2, 0.4]), jnp.float32([0.0, 1.0, 0.2, 0.4])):
        target = quietly(model, y)  # last = 0.75 b, as below
        np.testing.assert_allclose([*target.start.center, *target.start.scale], [37.5 / 56.26, 56.26**-0.5], rtol=1e-6)


def test_a_model_that_runs_only_in_float32_says_so():
    def model(y):
        b = numpyro.sample("b", dist.Normal(0.0, 10.0))
        last, _ = jax.lax.scan(lambda carry, v: (0.5 * carry + b * v, None), jnp.float32(0.0), y)
        numpyro.sample("end", dist.Normal(last, 0.1), obs=0.5)

    with pytest.warns(ModelWarning, match="sought in float32, since the model does not run in float64: scan"):
        target = from_numpyro(model, np.float32([1.0, 0.2, 0.4]))
    # last = 0.75 b, so b has precision (0.75 / 0.1)^2 + 1 / 100
    assert target.start.scale == pytest.approx([1 / np.sqrt(56.25 + 0.01)], rel=1e-3)
    assert target.start.center == pytest.approx([37.5 / 56.26], rel=1e-3)


# ---------------------------------------------------------------- refused, or doubted


def test_what_cannot_be_taken_is_refused_by_name():
    data = jnp.arange(10.0)

    def subsampled():
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        with numpyro.plate("rows", 10, subsample_size=4) as rows:
            numpyro.sample("y", dist.Normal(mu, 1), obs=data[rows])

    def random():
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        noise = jax.random.normal(numpyro.prng_key())
        numpyro.sample("y", dist.Normal(mu + noise, 1), obs=0.0)

    def fixed():
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Delta(1.0)), 1), obs=0.0)

    def sphere():
        u = numpyro.sample("u", dist.ProjectedNormal(jnp.ones(3)))
        numpyro.sample("y", dist.Normal(u[0], 1), obs=0.0)

    def circulant():
        row = numpyro.sample("row", improper(constraints.positive_definite_circulant_vector, (3,)))
        numpyro.sample("y", dist.Normal(row[0], 1), obs=0.0)

    def nowhere():
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0, 1)), 1), obs=jnp.nan)

    for model, says in (
        (subsampled, "plate 'rows' of 'subsampled' takes 4 of its 10 rows at random; allowed: plates without"),
        (random, r"model 'random' asks for random numbers \(`numpyro.prng_key`"),
        (fixed, "site 'mu' of 'fixed' is a Delta"),
        (sphere, "spherical sample site 'u'"),
        (circulant, "site 'row' of 'circulant' has support .*, without a map to the reals; allowed: supports"),
        (nowhere, "not finite at any of 104 points"),
    ):
        with pytest.raises(ValueError, match=says):
            from_numpyro(model)


def test_forgotten_data_is_noticed():
    def model(x, y=None):
        w = numpyro.sample("w", vector(3))
        numpyro.sample("y", dist.Normal(x @ w, 1.0), obs=y)

    x, y = np.random.default_rng(2).normal(size=(5, 3)), np.ones(5)
    with pytest.warns(ModelWarning, match=r"'model' has no observed site; what it infers: w \(3,\), y \(5,\)"):
        assert from_numpyro(model, x).dim == 8
    assert quietly(model, x, y=y).dim == 3
