"""Stein variational gradient descent."""

from stein_core.forces import flow, interact
from stein_core.knobs import Knob
from stein_core.registry import METHODS

ALPHA = Knob("alpha", 1.0, 0.0, 1000.0, "log0", "alpha", "weight of the repulsion; 1 is the method as published")


@METHODS.register(
    "svgd", label="SVGD", reference="Liu & Wang 2016, eq. 8", guides=("point",), knobs=(ALPHA,), stack="svgd"
)
def svgd(problem, *, alpha):
    "Point particles attracted by their kernel-averaged scores and repelled by the kernel's gradient."
    return flow(problem, lambda key, state: interact(problem, key, state.particles, alpha))
