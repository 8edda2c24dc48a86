"""Stein variational gradient descent."""

import math

from stein_core import theory
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import flow, interact

ALPHA = Knob("alpha", 1.0, 0.0, 1000.0, "log0", "alpha", "weight of the repulsion; 1 is SVGD as published")


def law(d, n, knobs):
    "The variance at the regular simplex, see `theory.simplex_variance`."
    kernel, rule, factor = (knobs[name] for name in ("kernel.name", "bandwidth.rule", "bandwidth.factor"))
    return theory.simplex_variance(d, n, kernel, rule, knobs["method.alpha"], factor=factor)


def limit(d, n, knobs):
    "Ba et al. 2022, Cor. 6, for the IMQ kernel and rule `fixed`."
    if (knobs["kernel.name"], knobs["bandwidth.rule"]) != ("imq", "fixed"):
        return math.nan
    return theory.corollary_6(d, n, knobs["method.alpha"], knobs["bandwidth.factor"])


@METHODS.register(
    "svgd",
    label="SVGD",
    reference="Liu & Wang 2016, eq. 8",
    guides=("point",),
    linear=True,
    knobs=(ALPHA,),
    stack="svgd",
    law=law,
    limit=limit,
    simplex=True,
    colour=("#066650", "#3ED8A5"),
    marker="circle",
)
def svgd(problem, *, alpha):
    "Point particles attracted by their kernel-averaged scores and repelled by the kernel's gradient."
    return flow(problem, lambda key, state: interact(problem, key, state.particles, alpha))
