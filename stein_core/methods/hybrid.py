"""h-SVGD: the attraction of SVGD on weights, and the repulsion of fw-SVGD."""

from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import Forces, flow, interact
from stein_core.methods.parts import schedules
from stein_core.methods.parts.function_space import JACOBIAN, LINK, check, outputs_of, repulsion, without_spare
from stein_core.methods.parts.noises import KNOB as NOISE, shaken
from stein_core.methods.svgd import ALPHA


@METHODS.register(
    "hybrid",
    label="h-SVGD",
    reference="D'Angelo et al. 2021, eq. 6",
    guides=("point",),
    functions=True,
    check=check,
    knobs=(ALPHA, JACOBIAN, LINK, NOISE, *schedules.knobs("none")),
    least=schedules.least,
    noisy=lambda choices: choices.get("method.added_noise", "none") != "none",
    colour=("#6A4C93", "#BDA0E8"),
    marker="circle_cross",
)
def hybrid(problem, *, alpha, jacobian, link, added_noise, **schedule):
    """A kernel of weights averages the scores, and a kernel of functions repels. Two kernels are no SVGD: the paper
    gives no guarantee, with noise or without."""

    def field(key, state):
        x = without_spare(problem, state.particles)
        attract = interact(problem, key, x, alpha).attract
        out = outputs_of(problem, key, x, link)
        return Forces(schedules.gamma(step=state.step, **schedule) * attract, alpha * repulsion(problem, out, jacobian))

    def compared(key, state):
        return problem, without_spare(problem, state.particles)

    return flow(problem, field, shaken(problem, compared, added_noise))
