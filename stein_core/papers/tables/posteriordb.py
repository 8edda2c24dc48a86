"""Accuracy against cost on twelve posteriors of posteriordb, whose reference draws are the truth."""

from __future__ import annotations

import warnings

import jax
import numpy as np

from stein_core.papers.tables.pathfinder import pathfinder
from stein_core.papers.tables.table import TABLES, Cell, Claim
from stein_core.posterior.fit import fit
from stein_core.posterior.reference import nuts
from stein_core.targets.own.numpyro_models import from_numpyro
from stein_core.targets.posteriordb import POSTERIORS, posterior

FITS = {"SMI": "smi", "SVGD": "svgd", "VI": "vi"}
COLUMNS = (*FITS, "Laplace", "Pathfinder", "NUTS")
EASY = ("arK-arK", "eight_schools-eight_schools_noncentered", "garch-garch11", "kidiq-kidscore_momhsiq", "sblri-blr")
DIFFERS = (
    "No paper has this table. The truth is posteriordb's reference draws, so a perfect row has mean error 0 and sd "
    "ratios of 1.",
    "`mean error` is the largest over the parameters, in reference sds; `least sd` and `most sd` are ratios.",
    "Gradients are of one theta each: SMI has 20 guides with 2 draws a step, SVGD 100 points, NUTS 4 chains.",
    "Those that look for the start of a fit, or of Laplace's mode, and those that judge a fit are counted too.",
    "Pathfinder has 20 paths of BlackJAX from uniform starts in (-2, 2), and smoothed weights. "
    "The densities for its ELBO are no gradients, and are not counted. L-BFGS stops at a relative fall of 1e-10; with "
    "BlackJAX's 1e-5 it ends before the mode on kidscore_momhsiq.",
    "On eight schools 4 of SVGD's 100 points end with a tau above 100. They spoil its mean and sd; the means of all "
    "other parameters are within 0.3 sd.",
)


def run(cell: Cell) -> dict[str, float]:
    """Return errors against the reference draws, and the gradients that it took."""
    model, arguments, reference = posterior(cell.row)
    with warnings.catch_warnings(), jax.enable_x64():
        warnings.simplefilter("ignore")
        target = from_numpyro(model, *arguments)
    gradients: list[int] = []
    if cell.column in FITS:
        made = fit(target, method=FITS[cell.column], seed=cell.seed, progress=False)
        draws, gradients = made.draws, [made.gradients]
    elif cell.column == "NUTS":
        draws = nuts(target, cell.seed, gradients=gradients).reshape(-1, target.dim)
        gradients[0] += target.start.gradients
    elif cell.column == "Pathfinder":
        with jax.enable_x64():
            draws, spent = pathfinder(target, cell.seed)
        gradients = [spent]
    else:
        z = np.random.default_rng(cell.seed).normal(size=(4000, target.dim))
        root = np.diag(target.start.scale) if target.start.root is None else np.asarray(target.start.root)
        draws, gradients = np.asarray(target.start.center) + z @ root.T, [target.start.gradients]
    with jax.enable_x64():
        found = reference.columns(target.constrain(np.asarray(draws)))
    errors = np.abs(found.mean(axis=0) - reference.mean) / reference.sd
    ratios = found.std(axis=0, ddof=1) / reference.sd
    numbers = {"mean error": errors.max(), "least sd": ratios.min(), "most sd": ratios.max()}
    return numbers | ({"gradients": float(gradients[0])} if gradients else {})


def claims() -> list[Claim]:
    """Return errors and cost of every posterior and method."""
    return [
        Claim(name, f"{column}: {metric}", None, ("", ""), column, metric)
        for name in POSTERIORS
        for column in COLUMNS
        for metric in ("mean error", "least sd", "most sd", "gradients")
    ]


@TABLES.register(
    "posteriordb",
    label="Accuracy against cost on posteriordb",
    reference="posteriordb (Magnusson et al. 2025)",
    run=run,
    claims=claims,
    differs=DIFFERS,
)
def posteriordb(full: bool, seeds: int | None = None) -> list[Cell]:
    """Six ways to draws of a posterior. Reduced: five posteriors, one seed; full: all twelve, three seeds."""
    return [
        Cell("posteriordb", name, column, seed, cost={"SMI": 4.0, "NUTS": 4.0}.get(column, 1.0))
        for name in (POSTERIORS if full else EASY)
        for seed in range(seeds or (3 if full else 1))
        for column in COLUMNS
    ]
