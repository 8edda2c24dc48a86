"""Kernel semi-implicit inference beside its relatives: the toys of figure 2, and table 5 on the waveform data."""

from __future__ import annotations

import math
from functools import partial

import jax
import numpy as np

from stein_core.experiments.published import published
from stein_core.recipe import Recipe
from stein_core.sampler_posteriors import waveform_reference
from stein_core.samples import sliced_wasserstein
from stein_core.spec import Spec, target_of
from stein_core.steppers import compile
from stein_core.tables.table import TABLES, Cell, Claim

COLUMNS = {  # of a table -> method, knobs
    "KSIVI (vanilla)": ("ksivi", {"method.statistic": "vanilla"}),
    "KSIVI (u-stat)": ("ksivi", {}),
    "SIVI": ("sivi", {}),
    "SIVI-SM": ("sivi_sm", {}),
    "UIVI": ("uivi", {}),
}
DRAWS = 5000
TOYS = {"banana": "ksivi_banana", "multimodal": "multimodal", "x-shaped": "x_shaped"}
TOYS_DIFFER = (
    "Figures 2 and 3 have no numbers. SW2 is the sliced Wasserstein distance of order 2 to 5,000 exact draws.",
    "The floor is the distance between two sets of exact draws. A method that has it cannot be told from the truth.",
    "The reduced protocol has 128 draws a step, 20,000 steps, one seed and no UIVI. The paper has 50,000 steps, and "
    "its code 500 draws.",
    "All but the banana are annealed over the first half of the steps. The paper names the multimodal one.",
)
SIZES = {False: ("0.0001", "0.001", "0.005"), True: ("0.00001", "0.0001", "0.001", "0.005", "0.008")}
WAVEFORM = ("KSIVI (vanilla)", "KSIVI (u-stat)", "SIVI-SM")
AT = {"10k": 10_000, "20k": 20_000}
WAVEFORM_DIFFERS = (
    "The paper does not say whether its distance is of order 1 or 2, so both of ours stand there.",
    "The truth is 1,000 draws of NUTS. The paper's is 1,000 draws of SGLD.",
    "The step size is multiplied by 0.9 every 1,000 steps, as in the published code of the toys. Adam's second beta is "
    "0.99.",
    "SIVI-SM starts with sd 1, has a critic with 256 units a layer, and takes one step of it for each of its own.",
    "So started, SIVI-SM is far from the truth at 0.001 too, and the paper's is not. We have not found why. "
    "Started with sd 0.08 and 128 units it ends at 0.18.",
    "The reduced protocol has three of five step sizes and one seed. The paper prints no errors.",
    "The U-statistic has no row in table 5; it stands beside the same published number.",
)


def toy_recipe(cell: Cell) -> Recipe:
    """Return the run of a cell of the toys."""
    method, knobs = COLUMNS[cell.column]
    annealing = 0 if cell.row == "banana" else cell["steps"] // 2
    knobs = {"method.particles": cell["draws"], "method.step_size": 1e-3, "method.annealing": annealing, **knobs}
    return Recipe(Spec(TOYS[cell.row], method=method, capacity=cell["draws"]), knobs, cell.seed)


def waveform_recipe(cell: Cell) -> Recipe:
    """Return the run of a cell of table 5: 100 draws a step, z in 10 dimensions, two layers of 100."""
    method, knobs = COLUMNS[cell.column]
    options = {"method.latent": 10, "method.width": 100}
    knobs = {"method.particles": 100, "method.step_size": float(cell.row), **knobs}
    if method == "sivi_sm":
        options["method.critic_width"] = 256
    else:
        knobs["method.start_sd"] = math.exp(-2.5)
    return Recipe(Spec("waveform", method=method, capacity=100, options=options), knobs, cell.seed)


def distances(recipe: Recipe, stops: dict[str, int], exact: np.ndarray) -> dict[str, float]:
    """Return the sliced Wasserstein distances of orders 1 and 2 between fresh draws and exact ones.

    Args:
        recipe: of the run.
        stops: name -> step.
        exact: (k, d) draws.
    """
    stepper = compile(recipe.spec, look=False, measure=False)
    state, found, taken = stepper.reset(recipe.seed, recipe.knobs), {}, 0
    for name, step in stops.items():
        state, taken = stepper.advance(state, recipe.knobs, step - taken), step
        if int(state.step) < step:
            return {**found, "diverged at": float(state.step)}
        draws = stepper.draw(state, recipe.knobs, DRAWS, seed=recipe.seed + 100)
        for power in (1, 2):
            found[f"SW{power} {name}".rstrip()] = float(sliced_wasserstein(draws, exact, power=power))
    return found


def run_toy(cell: Cell) -> dict[str, float]:
    """Return the distance of one method on one toy, and that of two sets of exact draws."""
    recipe = toy_recipe(cell)
    exact = [np.asarray(target_of(recipe.spec).sample(jax.random.key(seed), DRAWS)) for seed in (98, 99)]
    return distances(recipe, {"": cell["steps"]}, exact[1]) | {"floor": float(sliced_wasserstein(*exact))}


def run_waveform(cell: Cell) -> dict[str, float]:
    """Return the distances of one method after 10,000 and 20,000 steps."""
    return distances(waveform_recipe(cell), AT, waveform_reference())


def toy_claims() -> list[Claim]:
    """Return the distance of each method and the floor; nothing is published."""
    make = partial(Claim, table=None, at=("", ""))
    return [
        make(row, f"{column}: {metric}", cells=column, metric=metric)
        for row in TOYS
        for column in COLUMNS
        for metric in ("SW2", "floor")
    ]


def waveform_claims() -> list[Claim]:
    """Return both distances after both numbers of steps, beside table 5."""
    table, found = published("ksivi", "5"), []
    for size in SIZES[True]:
        for column in WAVEFORM:
            for after in AT:
                at = f"{column.split(' ')[0]} (iteration = {after})", size
                for power in (1, 2):
                    found.append(Claim(size, f"{column}, {after}: SW{power}", table, at, column, f"SW{power} {after}"))
    return found


@TABLES.register(
    "ksivi_toys",
    label="Semi-implicit methods on toys",
    reference="Cheng et al. 2024, fig. 2 and 3",
    run=run_toy,
    claims=toy_claims,
    differs=TOYS_DIFFER,
    recipe=toy_recipe,
)
def ksivi_toys(full: bool, seeds: int | None = None) -> list[Cell]:
    """Five methods on three densities. Reduced: 128 draws, 20,000 steps, one seed; full: 500, 50,000 and three."""
    draws, steps = (500, 50_000) if full else (128, 20_000)
    columns = list(COLUMNS) if full else list(COLUMNS)[:-1]
    return [
        Cell("ksivi_toys", row, column, seed, (("draws", draws), ("steps", steps)))
        for seed in range(seeds or (3 if full else 1))
        for row in TOYS
        for column in columns
    ]


@TABLES.register(
    "ksivi_waveform",
    label="Semi-implicit methods on the waveform data",
    reference="Cheng et al. 2024, table 5",
    run=run_waveform,
    claims=waveform_claims,
    differs=WAVEFORM_DIFFERS,
    recipe=waveform_recipe,
)
def ksivi_waveform(full: bool, seeds: int | None = None) -> list[Cell]:
    """Three methods after 10,000 and 20,000 steps. Reduced: three step sizes, one seed; full: five, three seeds."""
    return [
        Cell("ksivi_waveform", size, column, seed)
        for seed in range(seeds or (3 if full else 1))
        for size in SIZES[full]
        for column in WAVEFORM
    ]
