"""The sweep behind page "Which remedy": SVGD beside every method that changes it in one place."""

from __future__ import annotations

from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import METHODS
from stein_core.contract.spec import Spec, capacity_for
from stein_core.sweep.grids import SWEEPS

LONGEST = 100  # coordinates, for a method that takes Hessians
METHODS_HERE = tuple(e.name for e in METHODS.entries() if e.facts.slot and e.name != "projected")  # see `remedies`


def step_size_of(method: str, n: int) -> float:
    """Return the size of plain steps. A variance errs by about step size / n for noise and for random subspaces."""
    return {"random_subspace": 0.01 * n, "noisy": 0.005 * n, "transport": 0.01}.get(method, 0.1)


@SWEEPS.register("remedies", label="Remedies of the collapse", reference="closed form")
def remedies(
    methods=("svgd", *METHODS_HERE),
    dims=(2, 5, 10, 20, 50, 100),
    particles=(10, 20, 50),
    seeds=1,
    target="gaussian",
    knobs=None,
) -> list[Recipe]:
    """Every method in every dimension and for each particle count, with plain steps and seeds 0, 1 ...

    A method that takes Hessians stops at 100 dimensions. Projected SVGD is left out by default: it needs a prior, and
    of these targets data inform no direction more than another. knobs: any other knob, for the methods that have it.
    """
    recipes = []
    for method in methods:
        for d in dims:
            if METHODS[method].facts.hessians and d > LONGEST:
                continue
            for n in particles:
                spec = Spec.fitting(target=target, dim=d, method=method, optimizer="sgd", capacity=capacity_for(n))
                wanted = {"method.particles": n, "method.step_size": step_size_of(method, n), **(knobs or {})}
                known = {name: value for name, value in wanted.items() if name in spec.knobs()}
                recipes += [Recipe(spec, known, seed) for seed in range(seeds)]
    return recipes
