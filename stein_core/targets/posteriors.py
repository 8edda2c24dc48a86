"""Posteriors with data, each written as a NumPyro model."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.stats import gamma as gamma_density, norm

from stein_core.contract.known import Start
from stein_core.contract.registry import TARGETS
from stein_core.contract.target import COORDINATES, precondition
from stein_core.targets.data import datasets
from stein_core.targets.own.numpyro_models import from_numpyro, target_without_data
from stein_core.targets.own.rows import BATCH, target_of_rows


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
    options=(COORDINATES,),
)
def oring(dim, *, coordinates):
    "Logistic regression of O-ring distress on launch temperature, 23 flights; slope per 10 °F, both priors N(0, 5²)."
    return precondition(from_numpyro(oring_model, *_oring_data()), coordinates)


def _oring_data():
    temperature = (datasets.ORING_TEMPERATURE - datasets.ORING_TEMPERATURE.mean()) / 10.0
    return jnp.asarray(temperature, float), jnp.asarray(datasets.ORING_DISTRESS, float)


def earth_model(density):
    """density_i ~ N(mean, sd^2); mean ~ N(0, 10^2), sd ~ HalfNormal(5)."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
    sd = numpyro.sample("sd", dist.HalfNormal(5.0))
    numpyro.sample("density", dist.Normal(mean, sd), obs=density)


@TARGETS.register(
    "earth",
    label="Density of the Earth",
    reference="Cavendish 1798",
    dims=(2, 2),
    default_dim=2,
    sampled=False,
    options=(COORDINATES,),
)
def earth(dim, *, coordinates):
    "Mean and sd of Cavendish's 29 densities, in tenths around 5.5; sd > 0 lives on the log scale with its Jacobian."
    return precondition(from_numpyro(earth_model, *_earth_data()), coordinates)


def _earth_data():
    return (jnp.asarray(10.0 * (datasets.EARTH_DENSITY - 5.5), float),)


def stack_model(air, water, acid, loss):
    """loss_i ~ N(mean + air a_i + water w_i + acid c_i, sd^2); N(0, 10^2) priors, N(0, 30^2) for the mean."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 30.0))
    slopes = [numpyro.sample(name, dist.Normal(0.0, 10.0)) for name in ("air", "water", "acid")]
    sd = numpyro.sample("sd", dist.HalfNormal(10.0))
    at = mean + sum(slope * x for slope, x in zip(slopes, (air, water, acid)))
    numpyro.sample("loss", dist.Normal(at, sd), obs=loss)


@TARGETS.register(
    "stackloss",
    label="Stack loss of a plant",
    reference="Brownlee 1965",
    dims=(5, 5),
    default_dim=5,
    sampled=False,
    options=(COORDINATES,),
)
def stackloss(dim, *, coordinates):
    "Regression of the ammonia that a plant loses on air flow, water temperature and acid, each in its sds; 21 days."
    return precondition(from_numpyro(stack_model, *_stack_data()), coordinates)


def _stack_data():
    *inputs, loss = datasets.STACK_LOSS
    data = (*((x - x.mean()) / x.std(ddof=1) for x in inputs), loss)
    return tuple(jnp.asarray(each, float) for each in data)


MODELS = {  # name of a target -> (its model, what returns the arguments): what `calibrate` can simulate
    "oring": (oring_model, _oring_data),
    "earth": (earth_model, _earth_data),
    "stackloss": (stack_model, _stack_data),
}


def gamma_model():
    """rate ~ Gamma(3, 2): density proportional to rate^2 exp(-2 rate)."""
    numpyro.sample("rate", dist.Gamma(3.0, 2.0))


@TARGETS.register(
    "gamma",
    label="Gamma(3, 2)",
    reference="closed form",
    dims=(1, 1),
    default_dim=1,
    sampled=False,
    options=(COORDINATES,),
)
def gamma(dim, *, coordinates):
    "One positive number, Gamma with mean 1.5; without the log-Jacobian the particles' mean would be 1.0."
    return precondition(target_without_data(gamma_model), coordinates)


def gamma_logistic(inputs: int):
    """Return the parts of a logistic regression with w ~ N(0, 1/a), a ~ Gamma(1, rate 0.01) for `rows.target_of_rows`.

    Gershman et al. 2012: theta is (w, log a).

    Args:
        inputs: number of weights.

    Returns:
        log prior, log likelihood of rows (x, y), and the other facts of the Target.
    """

    def log_joint_prior(theta):
        weights, precision = theta[:-1], jnp.exp(theta[-1])
        return jnp.sum(norm.logpdf(weights, 0, precision**-0.5)) + gamma_density.logpdf(precision, 1.0, scale=100.0)

    def log_likelihood(theta, rows):
        x, y = rows
        logits = x @ theta[:-1]
        return y * logits - jax.nn.softplus(logits)

    facts = {
        "log_joint_prior": log_joint_prior,
        "start": Start(np.zeros(inputs + 1), np.full(inputs + 1, 0.1)),
        "extent": (-1.0, 1.0, -1.0, 1.0),
        "coordinates": (*(f"weight {i}" for i in range(inputs)), "log a"),
        "constrain": lambda theta: {"weights": theta[..., :-1], "a": jnp.exp(theta[..., -1])},
    }
    return lambda theta: log_joint_prior(theta) + theta[-1], log_likelihood, facts


INPUTS = 55


@TARGETS.register(
    "covertype",
    label="Covertype",
    reference="Liu & Wang 2016, sec. 5; Gershman et al. 2012",
    dims=(INPUTS + 1, INPUTS + 1),
    default_dim=INPUTS + 1,
    knobs=(BATCH,),
    data=datasets.covertype,
    sampled=False,
    listed=datasets.data_file(datasets.COVERTYPE) is not None,
)
def covertype(dim, *, data, batch):
    """Logistic regression of 581,012 plots of forest on 55 inputs, in mini-batches: weights N(0, 1/a), a ~ Gamma(1,
    rate 0.01), and theta is (weights, log a)."""
    log_prior, log_likelihood, facts = gamma_logistic(INPUTS)
    return target_of_rows(log_prior, log_likelihood, data, batch=batch, **facts)
