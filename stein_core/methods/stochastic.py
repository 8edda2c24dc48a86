"""Stochastic SVGD."""

from functools import partial

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS, Registry
from stein_core.forces.gram import elementwise_root, gram_root, stochastic
from stein_core.forces.interaction import interact

NOISES = Registry("noise")


@NOISES.register("cholesky", label="Cholesky factor", reference="Gallego & Insua 2018")
def cholesky(problem, particles):
    "The Cholesky factor of K: all particles together are then a sampler of the posterior."
    return gram_root(problem, particles)


@NOISES.register("elementwise", label="elementwise, as printed", reference="D'Angelo et al. 2021, eq. 2")
def elementwise(problem, particles):
    "The square root of each entry of K. It is no root of K: on N(0, 1) 20 particles get a variance of 1.6."
    return elementwise_root(problem, particles)


NOISE = Knob(
    "noise", "cholesky", label="root of K", choices=NOISES, help="which root of the Gram matrix shapes the noise"
)


@METHODS.register(
    "stochastic",
    label="Stochastic SVGD",
    reference="Gallego & Insua 2018",
    guides=("point",),
    optimizers=("sgd",),
    knobs=(NOISE,),
    noisy=lambda choices: True,
    stages=1,
    colour=("#1F5A8A", "#8FC7F2"),
    marker="diamond_cross",
    least=lambda knobs: 10 / knobs["method.step_size"],
)
def stochastic_svgd(problem, *, noise):
    "SVGD with noise that the kernel correlates between particles: it does not collapse, but samples the posterior."

    def root(particles):
        return NOISES.pick(noise, particles, branch=lambda entry: partial(entry.make, problem))

    return stochastic(problem, lambda key, state: interact(problem, key, state.particles, 1.0), root)
