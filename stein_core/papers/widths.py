"""The collapse on the 1-D wave: how wide the band between the clusters is, against the width of the network."""

from stein_core.contract.recipe import Recipe
from stein_core.contract.spec import Spec, capacity_for
from stein_core.papers.recovery import STEPS
from stein_core.sweep.grids import SWEEPS
from stein_core.sweep.stop import Stop
from stein_core.targets.wave import dim_of


@SWEEPS.register(
    "widths",
    label="Band against width",
    reference="SMI paper, sec. 6.2 and fig. 4",
    stop=Stop(stages=1, least=STEPS, noisy=STEPS, most=STEPS),  # a fixed number of steps, as published
)
def widths(
    methods=("svgd", "annealed", "smi"), widths=(5, 10, 20, 50, 100), particles=(5,), seeds=10, draws=10
) -> list[Recipe]:
    """Every method for each number of hidden units and of particles, Adam 1e-3, 15,000 steps, seeds 0, 1 ...; the
    schedule of annealed SVGD ends with the run."""
    recipes = []
    for width in widths:
        for method in methods:
            for n in particles:
                spec = Spec("wave", dim_of(width), method, draws=draws, capacity=capacity_for(n))
                knobs = {"method.particles": n, "method.step_size": 1e-3, "method.horizon": STEPS}
                known = {name: value for name, value in knobs.items() if name in spec.knobs()}
                recipes += [Recipe(spec, known, seed) for seed in range(seeds)]
    return recipes
