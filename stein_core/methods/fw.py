"""fw-SVGD: SVGD on weights, with a kernel of functions."""

from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import Forces, flow, forces_from, gradients
from stein_core.methods.parts import schedules
from stein_core.methods.parts.function_space import (
    JACOBIAN,
    LINK,
    check,
    of_features,
    outputs_of,
    repulsion,
    without_spare,
)
from stein_core.methods.parts.noises import KNOB as NOISE, shaken
from stein_core.methods.svgd import ALPHA


@METHODS.register(
    "fw",
    label="fw-SVGD",
    reference="D'Angelo et al. 2021, eq. 4",
    guides=("point",),
    functions=True,
    check=check,
    knobs=(ALPHA, JACOBIAN, LINK, NOISE, *schedules.knobs("none")),
    least=schedules.least,
    noisy=lambda choices: choices.get("method.added_noise", "none") != "none",
    colour=("#9C3D10", "#FF9A66"),
    marker="diamond",
)
def fw(problem, *, alpha, jacobian, link, added_noise, **schedule):
    "The scores of the weights, averaged by a kernel of functions, and the gradient of that kernel."

    def parts(key, state):
        x = without_spare(problem, state.particles)
        out = outputs_of(problem, key, x, link)
        return x, out, of_features(problem, out)

    def field(key, state):
        x, out, among = parts(key, state)
        g = gradients(problem, key, x).guide
        attract = schedules.gamma(step=state.step, **schedule) * forces_from(among, out.features, g, alpha).attract
        return Forces(attract, alpha * repulsion(problem, out, jacobian))

    def compared(key, state):
        _, out, among = parts(key, state)
        return among, out.features

    return flow(problem, field, shaken(problem, compared, added_noise))
