"""Maximum a posteriori: gradient ascent of one point."""

from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import climb


@METHODS.register(
    "map",
    label="MAP",
    reference="Liu & Wang 2016, sec. 3.2",
    guides=("point",),
    single=True,
    colour=("#984656", "#DA624C"),
    marker="star",
)
def map(problem):
    "One point climbs to the mode of the model's own density, without the log-Jacobian of constrained parameters."
    return climb(problem, joint=True)
