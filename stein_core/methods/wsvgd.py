"""w-SVGD: SVGD with an annealed attraction and noise."""

import math

from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import Forces, flow, interact
from stein_core.methods import svgd
from stein_core.methods.parts import schedules
from stein_core.methods.parts.noises import KNOB as NOISE, shaken
from stein_core.methods.svgd import ALPHA


def law(d, n, knobs):
    "SVGD's law: every schedule ends as plain SVGD. NaN with noise."
    return svgd.law(d, n, knobs) if knobs["method.added_noise"] == "none" else math.nan


@METHODS.register(
    "wsvgd",
    label="w-SVGD",
    reference="D'Angelo et al. 2021, eq. 2; Gallego & Insua 2018",
    guides=("point",),
    knobs=(ALPHA, NOISE, *schedules.knobs("none")),
    noisy=lambda choices: choices.get("method.added_noise", "none") != "none",
    least=schedules.least,
    law=law,
    simplex=True,
    colour=("#006D77", "#6FD3E3"),
    marker="circle_x",
)
def wsvgd(problem, *, alpha, added_noise, **schedule):
    "SVGD of networks: a kernel of weights. Without annealing and noise it is SVGD as published."

    def field(key, state):
        forces = interact(problem, key, state.particles, alpha)
        return Forces(schedules.gamma(step=state.step, **schedule) * forces.attract, forces.repulse)

    return flow(problem, field, shaken(problem, lambda key, state: (problem, state.particles), added_noise))
