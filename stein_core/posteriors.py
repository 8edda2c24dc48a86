"""Posteriors with data, each written as a NumPyro model."""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from stein_core import datasets
from stein_core.models import from_numpyro, target_without_data
from stein_core.registry import TARGETS


def oring_model(temperature, distress):
    """distress_i ~ Bernoulli(logistic(intercept + slope t_i)); intercept, slope ~ N(0, 5^2)."""
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 5.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 5.0))
    numpyro.sample("distress", dist.Bernoulli(logits=intercept + slope * temperature), obs=distress)


@TARGETS.register(
    "oring",
    label="Challenger O-rings",
    reference="Dalal, Fowlkes & Hoadley 1989",
    dims=(2, 2),
    default_dim=2,
    sampled=False,
)
def oring(dim):
    "Logistic regression of O-ring distress on launch temperature, 23 flights; slope per 10 °F, both priors N(0, 5²)."
    temperature = (datasets.ORING_TEMPERATURE - datasets.ORING_TEMPERATURE.mean()) / 10.0
    return from_numpyro(oring_model, jnp.float32(temperature), jnp.float32(datasets.ORING_DISTRESS))


def earth_model(density):
    """density_i ~ N(mean, sd^2); mean ~ N(0, 10^2), sd ~ HalfNormal(5)."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
    sd = numpyro.sample("sd", dist.HalfNormal(5.0))
    numpyro.sample("density", dist.Normal(mean, sd), obs=density)


@TARGETS.register(
    "earth", label="Density of the Earth", reference="Cavendish 1798", dims=(2, 2), default_dim=2, sampled=False
)
def earth(dim):
    "Mean and sd of Cavendish's 29 densities, in tenths around 5.5; sd > 0 lives on the log scale with its Jacobian."
    return from_numpyro(earth_model, jnp.float32(10.0 * (datasets.EARTH_DENSITY - 5.5)))


def gamma_model():
    """rate ~ Gamma(3, 2): density proportional to rate^2 exp(-2 rate)."""
    numpyro.sample("rate", dist.Gamma(3.0, 2.0))


@TARGETS.register("gamma", label="Gamma(3, 2)", reference="closed form", dims=(1, 1), default_dim=1, sampled=False)
def gamma(dim):
    "One positive number, Gamma with mean 1.5; without the log-Jacobian the particles' mean would be 1.0."
    return target_without_data(gamma_model)
