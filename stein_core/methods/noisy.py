"""Noisy SVGD: SVGD with Langevin dynamics of weight 1/beta."""

import jax
import jax.numpy as jnp

from stein_core import theory
from stein_core.base.streams import Stream
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import Forces, flow, forces_from, gradients
from stein_core.methods.svgd import ALPHA

BETA = Knob("beta", 1.0, 1e-3, 1e6, "log", "beta", "SVGD's weight against Langevin's: 0 is Langevin, infinity is SVGD")


def law(d, n, knobs):
    "`theory.noisy_variance` around SVGD's own rest."
    kernel, rule, factor = (knobs[name] for name in ("kernel.name", "bandwidth.rule", "bandwidth.factor"))
    settings = kernel, rule, knobs["method.alpha"], factor
    return theory.noisy_variance(d, n, knobs["method.beta"], *settings, step_size=knobs["method.step_size"])


@METHODS.register(
    "noisy",
    label="Noisy SVGD",
    reference="Zhang et al. 2020 (SPOS)",
    guides=("point",),
    linear=True,
    optimizers=("sgd",),
    knobs=(ALPHA, BETA),
    noisy=lambda choices: True,
    stages=1,
    least=lambda knobs: 20 / knobs["method.step_size"] * min(knobs["method.beta"], knobs["method.particles"]),
    slot="noise",
    formula="+ s(x) / β + noise of variance 2 / β",
    moves_rest=True,
    law=law,
    leading=True,
    colour=("#8A4B08", "#F0B46A"),
    marker="circle_dot",
)
def noisy(problem, *, alpha, beta):
    """dx = (phi + s / beta) dt + sqrt(2 / beta) dW: SVGD's force phi, the score s and independent noise. It ends at the
    posterior as n grows. By its law it keeps
    95 % of the variance if beta is below n / 19."""

    def field(key, state):
        g = gradients(problem, key, state.particles).guide
        forces = forces_from(problem, state.particles, g, alpha)
        return Forces(forces.attract + g / beta, forces.repulse)

    def noise(key, state):
        z = problem.normal(jax.random.fold_in(key, Stream.NOISE), (len(state.particles),))
        return jnp.zeros_like(z), jnp.sqrt(2 * problem.step_size / beta) * z

    return flow(problem, field, noise)
