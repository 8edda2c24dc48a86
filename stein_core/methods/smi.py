"""Stein mixture inference: SVGD on the parameters of guides."""

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import FORCE_SCALES, GUIDES, METHODS
from stein_core.forces.interaction import Forces, flow, interact
from stein_core.methods.svgd import ALPHA

SCALE = Knob("force_scale", "paper", label="attraction", choices=FORCE_SCALES, help="mean or sum over particles")


@METHODS.register(
    "smi",
    label="SMI",
    reference="SMI paper, eq. 9",
    guides=("normal", *(name for name in GUIDES if name != "normal")),
    linear=True,
    knobs=(ALPHA, SCALE),
    colour=("#BA4582", "#E578B4"),
    marker="circle_dot",
)
def smi(problem, *, alpha, force_scale):
    "Each particle is a whole distribution; their mixture climbs the ELBO, and repulsion keeps them apart."

    def field(key, state):
        forces = interact(problem, key, state.particles, alpha)
        times = FORCE_SCALES.pick(force_scale, problem.m)
        return Forces(times * forces.attract, forces.repulse)

    return flow(problem, field)
