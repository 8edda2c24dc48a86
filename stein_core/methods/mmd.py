"""MMD-descent: gradient descent on the maximum mean discrepancy to the target."""

import math
from functools import partial

import jax
import jax.numpy as jnp

from stein_core import theory
from stein_core.base.distances import squared_distances
from stein_core.base.streams import Stream
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS, Registry
from stein_core.forces.interaction import Forces, distances_and_bandwidth, flow
from stein_core.forces.sums import kernel_forces

DRIVINGS = Registry("driving force")
REDRAWS = Registry("target samples")
MOST_SAMPLES = 1024


@DRIVINGS.register("kernel_derivative", label="kernel derivative", reference="Ba et al. 2022, sec. 4.2")
def kernel_derivative(problem, samples, x, sigma):
    "-mean_y grad_y k(y, x) over target samples y: low noise."
    y, weights = samples()
    return -kernel_forces(problem, y, weights, y, x, squared_distances(y, x, weights), sigma).repulse


@DRIVINGS.register("log_derivative", label="log derivative", reference="Ba et al. 2022, sec. 4.2")
def log_derivative(problem, samples, x, sigma):
    "mean_y k(y, x) grad log p(y) over target samples y: SVGD's driving force with true samples; fixed ones diverge."
    y, weights = samples()
    score = jax.vmap(jax.grad(problem.target.log_density))(y)
    return kernel_forces(problem, y, weights, score, x, squared_distances(y, x, weights), sigma).attract


@DRIVINGS.register("closed_form", label="closed form", reference="Ba et al. 2022, app. C.1")
def closed_form(problem, samples, x, sigma):
    "-(sigma^2 / (1 + sigma^2))^(d/2) exp(-|x|^2 / (2 + 2 sigma^2)) x / (1 + sigma^2): target N(0, I), RBF kernel."
    square = jnp.sum(x**2, axis=1, keepdims=True)
    log_mean = -0.5 * problem.d * jnp.log1p(sigma**-2) - square / (2 + 2 * sigma**2)
    return -jnp.exp(log_mean) * x / (1 + sigma**2)


@REDRAWS.register("redrawn", label="redrawn", reference="Ba et al. 2022, sec. 4.2")
def redrawn(key, own):
    "New target samples in every step."
    return key


@REDRAWS.register("fixed", label="fixed", reference="Ba et al. 2022, sec. 4.2")
def fixed(key, own):
    "The same target samples in every step: the deterministic bias."
    return own


def check(spec, knobs):
    """Refuse the closed form for a target or kernel that it does not hold for.

    Raises:
        ValueError: names the target, the kernel and what is allowed.
    """
    asked, kernel = knobs.get("method.driving", "kernel_derivative"), knobs.get("kernel.name", "rbf")
    if asked == "closed_form" and (spec.target, kernel) != ("gaussian", "rbf"):
        raise ValueError(
            f"driving force = 'closed_form' (method.driving) is for target 'gaussian' and kernel 'rbf', not "
            f"{spec.target!r} and {kernel!r}; allowed here: kernel_derivative, log_derivative."
        )


def noisy(choices) -> bool:
    """Return whether the force at one place changes from step to step."""
    return choices["method.driving"] != "closed_form" and choices["method.redraw"] == "redrawn"


KNOBS = (
    Knob("driving", "kernel_derivative", label="driving force", choices=DRIVINGS, help="how the target pulls"),
    Knob("redraw", "redrawn", label="samples are", choices=REDRAWS, help="whether a step has samples of its own"),
    Knob("samples", 200, 1, MOST_SAMPLES, "integer", "target samples", "how many target samples pull"),
)


def has_law(knobs) -> bool:
    "Whether these knobs are those of the exact laws."
    return (knobs["kernel.name"], knobs["method.driving"]) == ("rbf", "closed_form")


def law(d, n, knobs):
    "The variance at the regular simplex, see `theory.mmd_variance`."
    if not has_law(knobs):
        return math.nan
    return theory.mmd_variance(d, n, knobs["bandwidth.rule"], knobs["bandwidth.factor"])


def limit(d, n, knobs):
    "Ba et al. 2022, Prop. 7, with 1/(n-1): for rule `median`, with any bandwidth factor."
    holds = has_law(knobs) and knobs["bandwidth.rule"] == "median" and n > 1
    return theory.proposition_7(d, n) * n / (n - 1) if holds else math.nan


def exact_force(target, kernel):
    "The driving force in closed form where it holds."
    return {"method.driving": "closed_form"} if (target, kernel) == ("gaussian", "rbf") else {}


@METHODS.register(
    "mmd",
    label="MMD-descent",
    reference="Ba et al. 2022, eq. 4",
    guides=("point",),
    knobs=KNOBS,
    exact=True,
    check=check,
    noisy=noisy,
    law=law,
    limit=limit,
    simplex=True,
    exact_force=exact_force,
    colour=("#774308", "#BC9B83"),
    marker="square",
)
def mmd(problem, *, driving, redraw, samples):
    """True samples of the target pull the particles, and the particles repel each other as in SVGD. It does not
    collapse, but the target must have an exact sampler."""

    def field(key, state):
        particles = state.particles
        weights = problem.weights(particles.shape[0])
        squared, sigma = distances_and_bandwidth(problem, particles)
        repulse = kernel_forces(problem, particles, weights, particles, particles, squared, sigma).repulse

        def target_samples():
            own = jax.random.fold_in(state.key, Stream.FIXED)
            chosen = REDRAWS.pick(redraw, key, own)
            y = problem.target.truth.sample(chosen, MOST_SAMPLES)
            y = y if problem.mask is None else y * problem.mask
            return y, (jnp.arange(MOST_SAMPLES) < samples) / samples

        branch = lambda entry: partial(entry.make, problem, target_samples)  # noqa: E731
        attract = DRIVINGS.pick(driving, particles, sigma, branch=branch)
        return Forces(attract, repulse)

    return flow(problem, field)
