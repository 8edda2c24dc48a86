"""Stochastic gradient Langevin dynamics."""

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS
from stein_core.methods.langevin import chains

DECAY = Knob("decay", 0.55, 0.0, 1.0, label="decay", help="the step size is epsilon / (1 + t)^decay at step t")


@METHODS.register(
    "sgld",
    label="SGLD",
    reference="Welling & Teh 2011",
    guides=("point",),
    linear=True,
    optimizers=("sgd",),
    kernel=False,
    knobs=(DECAY,),
    noisy=lambda choices: True,
    stages=1,
    colour=("#5B4A9A", "#C9B8FF"),
    marker="x",
)
def sgld(problem, *, decay):
    "Langevin chains on the gradients of mini-batches, with step sizes that fall, so that the noise of both dies out."
    return chains(problem, lambda step: problem.step_size / (1.0 + step) ** decay)
