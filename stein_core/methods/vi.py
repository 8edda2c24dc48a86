"""Ordinary variational inference: one guide."""

from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import climb


@METHODS.register(
    "vi",
    label="VI",
    reference="SMI paper, app. A.3.2",
    guides=("normal",),
    single=True,
    colour=("#432196", "#8F7CF6"),
    marker="diamond",
)
def vi(problem):
    "One guide climbs the ELBO: SMI with a single particle, where nothing interacts."
    return climb(problem)
