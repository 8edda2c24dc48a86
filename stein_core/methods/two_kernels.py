"""SVGD with two kernels: one averages the scores, the other repels."""

from stein_core import theory
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import BANDWIDTHS, KERNELS, METHODS
from stein_core.forces.interaction import Forces, flow, forces_from, gradients
from stein_core.methods.svgd import ALPHA

KNOBS = (
    ALPHA,
    Knob(
        "repulsion_kernel", "rbf", label="kernel of the repulsion", choices=KERNELS, help="that of the scores is kernel"
    ),
    Knob(
        "repulsion_rule",
        "median",
        label="reach of the repulsion",
        choices=BANDWIDTHS,
        help="how the repulsion's sigma is chosen; equal kernels and rules are SVGD",
    ),
    Knob("repulsion_factor", 1.0, 0.01, 100.0, "log", "factor of the repulsion", "multiplies the repulsion's sigma"),
)


def law(d, n, knobs):
    "The variance at the regular simplex, see `theory.two_kernel_variance`."
    of_scores = tuple(knobs[name] for name in ("kernel.name", "bandwidth.rule", "bandwidth.factor"))
    repulsion = tuple(knobs[f"method.repulsion_{name}"] for name in ("kernel", "rule", "factor"))
    return theory.two_kernel_variance(d, n, of_scores, repulsion, knobs["method.alpha"])


@METHODS.register(
    "two_kernels",
    label="Two-kernel SVGD",
    reference="MacDonald et al. 2025 (h-SVGD)",
    guides=("point",),
    linear=True,
    knobs=KNOBS,
    slot="forces",
    formula="k s + α ∇k₂, with a kernel k₂ of its own",
    moves_rest=True,
    law=law,
    simplex=True,
    colour=("#7A1F5C", "#E79BCB"),
    marker="diamond_dot",
)
def two_kernels(problem, *, alpha, repulsion_kernel, repulsion_rule, repulsion_factor):
    """One kernel averages the scores, and another repels. With the default rules the particles are wider. No number of
    them ends at the posterior."""
    other = problem._replace(kernel=repulsion_kernel, rule=repulsion_rule, factor=repulsion_factor)

    def field(key, state):
        g = gradients(problem, key, state.particles).guide
        attract, repulse = (forces_from(each, state.particles, g, alpha) for each in (problem, other))
        return Forces(attract.attract, repulse.repulse)

    return flow(problem, field)
