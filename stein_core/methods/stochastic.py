"""Stochastic SVGD."""

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS, Registry
from stein_core.forces.interaction import flow, interact
from stein_core.methods.parts.noises import FORCE_NOISES, shaken

NOISES = Registry("noise")
for name in ("cholesky", "elementwise"):
    known = FORCE_NOISES[name]
    NOISES.register(name, label=known.label, reference=known.reference)(known.make)

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

    def field(key, state):
        return interact(problem, key, state.particles, 1.0)

    return flow(problem, field, shaken(problem, lambda key, state: (problem, state.particles), noise, NOISES))
