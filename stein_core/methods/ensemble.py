"""Deep ensemble: many independent MAP runs."""

from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import climb


@METHODS.register(
    "ensemble",
    label="Deep ensemble",
    reference="D'Angelo et al. 2021, eq. 3",
    guides=("point",),
    linear=True,
    kernel=False,
    colour=("#444D2C", "#848A70"),
    marker="hex",
)
def ensemble(problem):
    "Every point climbs alone (kernel = identity, alpha = 0): all variance comes from where they started."
    return climb(problem, joint=True)
