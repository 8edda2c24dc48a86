"""SVGD with an annealed attraction."""

from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import Forces, flow, interact
from stein_core.methods.parts.schedules import CYCLES, HORIZON, POWER, cyclical
from stein_core.methods.svgd import ALPHA, law, limit


@METHODS.register(
    "annealed",
    label="Annealed SVGD",
    reference="D'Angelo & Fortuin 2021, eq. 4",
    guides=("point",),
    linear=True,
    knobs=(ALPHA, HORIZON, CYCLES, POWER),
    least=lambda knobs: knobs["method.horizon"],
    stack="svgd",
    law=law,  # it ends as plain SVGD
    limit=limit,
    simplex=True,
    colour=("#766430", "#FBD365"),
    marker="triangle",
)
def annealed(problem, *, alpha, horizon, cycles, power):
    "The attraction is switched off and on in cycles, so that repulsion can carry particles to other modes."

    def field(key, state):
        forces = interact(problem, key, state.particles, alpha)
        return Forces(cyclical(state.step, horizon, cycles, power) * forces.attract, forces.repulse)

    return flow(problem, field)
