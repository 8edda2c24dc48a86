"""Posteriors with data, written as NumPyro models; `from_numpyro` makes a Target of any NumPyro model."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.extend.core import jaxpr_as_fun
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.distributions.transforms import ExpTransform, IdentityTransform, IndependentTransform
from numpyro.infer.util import constrain_fn, log_density, potential_energy
from scipy.optimize import minimize

from stein_core import datasets
from stein_core.registry import TARGETS
from stein_core.types import Target

_one_at_a_time = threading.Lock()


def from_numpyro(model, *args, seed: int = 0, **kwargs) -> Target:
    """The posterior of a NumPyro model called with (*args, **kwargs), on the unconstrained space with the log-Jacobian.

    theta is the model's latent sites, in alphabetical order, each mapped by `biject_to(support)` and flattened.
    `center` and `scale` are the mode and the standard deviations of the Laplace approximation there, found by BFGS
    from `seed`'s prior draw; they only say where to start and to look.

    Raises ValueError for a model with discrete latents or without any latent site.
    """
    with _one_at_a_time:
        return _from_numpyro(model, args, kwargs, seed)


def numpyro_density(model, example: tuple):
    """The log density of a NumPyro model with real-valued latents as a function (theta, *args), recorded once for
    arguments like `example`; theta is the sites in alphabetical order, flattened. The arguments may be traced."""
    unflatten = None

    def draw():
        nonlocal unflatten
        trace = handlers.trace(handlers.seed(model, jax.random.key(0))).get_trace(*example)
        theta, unflatten = ravel_pytree(
            {k: v["value"] for k, v in sorted(trace.items()) if v["type"] == "sample" and not v["is_observed"]}
        )
        return theta

    with _one_at_a_time:
        start = jax.eval_shape(draw)  # its shape only: each operation that is carried out is a program that JAX keeps
        with jax.default_matmul_precision("highest"):
            record = jax.make_jaxpr(lambda theta, args: -potential_energy(model, args, {}, unflatten(theta)))(start, example)
    run = jaxpr_as_fun(record)
    return lambda theta, *args: run(theta, *args)[0]


def _from_numpyro(model, args, kwargs, seed) -> Target:
    trace = handlers.trace(handlers.seed(model, jax.random.key(seed))).get_trace(*args, **kwargs)
    latent = {k: v for k, v in sorted(trace.items()) if v["type"] == "sample" and not v["is_observed"]}
    if not latent:
        raise ValueError(f"model {model.__name__!r} has no latent site: there is nothing to infer.")
    for name, site in latent.items():
        if site["fn"].support.is_discrete:
            raise ValueError(f"site {name!r} of {model.__name__!r} is discrete; allowed: continuous latents only.")
    transforms = {k: _bare(biject_to(v["fn"].support)) for k, v in latent.items()}
    start, unflatten = ravel_pytree({k: transforms[k].inv(v["value"]) for k, v in latent.items()})

    def unconstrained(theta):
        return -potential_energy(model, args, kwargs, unflatten(theta))

    def constrain(theta):
        values = constrain_fn(model, args, kwargs, unflatten(theta))
        return {k: values[k] for k in latent}

    def joint(theta):
        return log_density(model, args, kwargs, constrain(theta))[0]

    names = []
    for name in latent:
        inner = transforms[name]
        prefix = {IdentityTransform: "", ExpTransform: "log "}.get(type(inner), "unconstrained ")
        shape = jnp.shape(inner.inv(latent[name]["value"]))
        names += [f"{prefix}{name}{list(i) if i else ''}" for i in np.ndindex(*shape)]

    unconstrained, constrain, joint = (_free_of_numpyro(f, start) for f in (unconstrained, constrain, joint))
    center, scale = _laplace(unconstrained, start)
    x, y = (0, 1) if len(center) > 1 else (0, 0)
    return Target(
        log_density=unconstrained,
        log_joint=None if all(isinstance(t, IdentityTransform) for t in transforms.values()) else joint,
        constrain=constrain,
        center=center,
        scale=scale,
        extent=tuple(float(center[i] + side * 4.5 * scale[i]) for i in (x, y) for side in (-1, 1)),
        coordinates=tuple(names),
    )


def _bare(transform):
    """The transform of one element, where a whole site is transformed element by element."""
    while isinstance(transform, IndependentTransform):
        transform = transform.base_transform
    return transform


def _free_of_numpyro(function, theta):
    """`function` as recorded JAX operations: NumPyro's handlers keep one stack for all threads, so its models must not
    be run while another thread may be compiling."""
    record, shape = jax.make_jaxpr(function, return_shape=True)(theta)
    run = jaxpr_as_fun(record)
    return lambda theta: jax.tree.unflatten(jax.tree.structure(shape), run(theta))


def _laplace(log_p, start):
    """Mode of log_p and the standard deviations of the normal with its curvature there (float64 by SciPy)."""
    value_and_grad = jax.jit(jax.value_and_grad(lambda theta: -log_p(theta)))

    def objective(theta):
        value, slope = value_and_grad(jnp.asarray(theta, jnp.float32))
        return float(value), np.asarray(slope, float)

    mode = minimize(objective, np.asarray(start, float), jac=True, method="BFGS").x
    curvature = np.asarray(jax.jit(jax.hessian(lambda theta: -log_p(theta)))(jnp.asarray(mode, jnp.float32)), float)
    # A direction without curvature (a flat or saddle-shaped density) gets unit variance instead of an infinite one.
    values, vectors = np.linalg.eigh(curvature)
    values = np.where(values > 1e-6, values, 1.0)
    return mode, np.sqrt(np.sum(vectors**2 / values, axis=1))


def oring_model(temperature, distress):
    """distress_i ~ Bernoulli(logistic(intercept + slope t_i)); intercept, slope ~ N(0, 5^2)."""
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 5.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 5.0))
    numpyro.sample("distress", dist.Bernoulli(logits=intercept + slope * temperature), obs=distress)


@TARGETS.register(
    "oring", label="Challenger O-rings", reference="Dalal, Fowlkes & Hoadley 1989", dims=(2, 2), default_dim=2, sampled=False
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


@TARGETS.register("earth", label="Density of the Earth", reference="Cavendish 1798", dims=(2, 2), default_dim=2, sampled=False)
def earth(dim):
    "Mean and sd of Cavendish's 29 densities, in tenths around 5.5; sd > 0 lives on the log scale with its Jacobian."
    return from_numpyro(earth_model, jnp.float32(10.0 * (datasets.EARTH_DENSITY - 5.5)))


def gamma_model():
    """rate ~ Gamma(3, 2): density proportional to rate^2 exp(-2 rate)."""
    numpyro.sample("rate", dist.Gamma(3.0, 2.0))


@TARGETS.register("gamma", label="Gamma(3, 2)", reference="closed form", dims=(1, 1), default_dim=1, sampled=False)
def gamma(dim):
    "One positive number, Gamma with mean 1.5; without the log-Jacobian the particles' mean would be 1.0."
    return from_numpyro(gamma_model)
