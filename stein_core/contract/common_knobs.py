"""The knobs that every spec has."""

from stein_core.contract.facts import MAX_CAPACITY
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import BANDWIDTHS, KERNELS

COMMON = (
    Knob("method.particles", 20, 1, MAX_CAPACITY, "integer", "particles", "number of active particles"),
    Knob("method.step_size", 0.05, 1e-5, 1000.0, "log", "step size", "step size of the optimiser"),
    Knob("kernel.name", "rbf", label="kernel", choices=KERNELS, help="how the influence falls with distance"),
    Knob(
        "bandwidth.rule",
        "median_log",
        label="reach of the kernel",
        choices=BANDWIDTHS,
        help="bandwidth.rule: how sigma is chosen",
    ),
    Knob("bandwidth.factor", 1.0, 0.01, 100.0, "log", "bandwidth factor", "multiplies sigma"),
    Knob(
        "init.spread",
        1.0,
        0.0,
        100.0,
        "log0",
        "initial spread",
        "at the next reset: sd of the start, in the target's scale",
    ),
    Knob(
        "init.shift",
        0.0,
        -100.0,
        100.0,
        "linear",
        "initial shift",
        "at the next reset: moves the start along the first coordinate",
    ),
)
