"""Tables 2, 6 and 7 of the SMI paper: six methods on nine UCI sets, standard and Gap10 splits."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import logsumexp
from scipy.stats import mannwhitneyu

from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import GUIDES, TARGETS
from stein_core.contract.spec import Spec, data_of
from stein_core.papers.published import published
from stein_core.papers.tables.predictions import normal_log_density, outputs_of, rmse
from stein_core.papers.tables.table import A_STEP, TABLES, Cell, Claim
from stein_core.posterior.reference import nuts
from stein_core.runs.cache import after
from stein_core.targets.data.downloads import UCI
from stein_core.targets.uci import SPLITS, inputs_of, network_of, splits_of

SETS = {name.capitalize(): name for name in UCI}
SMALL = ("Boston", "Concrete", "Energy", "Wine", "Yacht")
FEW = 2  # splits of each of the other sets in the reduced protocol
LONG = ("Boston", "Energy", "Yacht")  # with NUTS in the reduced protocol
METHODS_OF = {"SMI": "smi", "SVGD": "svgd", "ASVGD": "annealed", "OVI": "vi", "MAP": "map"}
VARIED = "Energy"  # the set on which SMI and SVGD stay apart from their published numbers
VARIANTS = {  # name -> options and knobs that the paper's code has otherwise; the first word is the method
    "SMI (twice)": ({"guide.density": "twice"}, {}),
    "SMI with two layers": ({"target.layers": 2}, {}),
    "SMI (twice) with two layers": ({"guide.density": "twice", "target.layers": 2}, {}),
    "SVGD with two layers": ({"target.layers": 2}, {}),
    "SVGD with ten particles": ({}, {"method.particles": 10, "init.spread": 5.5}),
}
PARTICLES, DRAWS, PREDICTIONS, DEPTH = 5, 10, 500, 8
LEVEL, MOST, FASTEST = 0.05, 60_000, 0.05  # of the test; steps of the paper; its largest rate
TIMES = "Published on the authors' GPU, with 100 draws; ours with 10, compilation and prediction included."
LEAST = 4  # splits from which on Mann-Whitney can tell two methods apart at this level
DIFFERS = (
    "SMI estimates its attraction from 10 draws, the paper's from 100.",
    "Runs take all their steps, 10,000 or 60,000; the paper stops at a rule on the norm of the force.",
    "Adam goes no further than rate times steps. So with 10,000 steps the rates of table 7 are six times as large, but "
    "at most 0.05, its largest. The least rate is 1e-5, where table 7 has 5e-6 once.",
    "With 60,000 steps at table 7's rates, SMI's NLL on split 0 is 2.60 on Boston, 3.31 on Concrete and 0.84 on Yacht. "
    "That of SVGD on five splits of Boston is 6.9. So these differences come from the fewer steps.",
    "SMI and SVGD on Energy stay apart from their published numbers. More steps and other rates do not change that. "
    "With 60,000 steps SMI's NLL on split 0 is 2.29, and 1.87 or 1.90 with a rate of 0.005 or 0.03.",
    "The code's SMI has the double softplus of its NumPyro, which makes the guides nearly points. Its OVI has no such "
    "fault. Rows `(twice)` have it.",
    "The code's network has two hidden layers; the paper's text and ours have one. Rows `with two layers` have two.",
    "The code's SVGD has 10 particles from the median of 15 draws of the prior; the paper says 5 from U[-0.1, 0.1]. "
    "Rows `with ten particles` have 10, from U[-0.55, 0.55], which is as wide.",
    "A mini-batch of 100 rows is drawn with replacement; NUTS has 4 chains of 500 + 1,000 steps, "
    "with trees of depth 8.",
    "`RMSE as coded` is over draws and points, and `NLL as coded` of SVGD and ASVGD is the mean over the particles: "
    "so the published values are defined. `NLL` and `RMSE` are of the mixture and of its mean.",
)


def spec_of(cell: Cell) -> Spec:
    """Return the program of a cell."""
    name, splits = cell.column.split(", ")
    options, knobs = VARIANTS.get(name, ({}, {}))
    options = {"target.dataset": SETS[cell.row], "target.splits": splits, "target.model": "smi"} | options
    count = knobs.get("method.particles", PARTICLES)
    return Spec(
        "uci", method=METHODS_OF.get(first(name), "svgd"), draws=DRAWS, capacity=count + count % 2, options=options
    )


def first(name: str) -> str:
    """Return the method that the paper names of a variant."""
    return name.split(" ")[0]


def rate_of(row: str, column: str) -> float:
    """Return the learning rate of table 7 for the method and the splits of a column."""
    name, splits = column.split(", ")
    return published("smi", f"7 {splits}").value(row, first(name)).value


def recipe_of(cell: Cell) -> Recipe | None:
    """Return the run of a cell, None for NUTS."""
    name = cell.column.split(", ")[0]
    if name == "NUTS":
        return None
    rate = cell["times"] * rate_of(cell.row, cell.column)
    knobs = {"method.particles": PARTICLES, "method.step_size": max(rate, 1e-5), "target.split": cell.seed}
    knobs |= VARIANTS.get(name, ({}, {}))[1]
    if name == "ASVGD":
        knobs |= {"method.horizon": cell["steps"], "method.cycles": 10, "method.power": 10.0}
    return Recipe(spec_of(cell), knobs, cell.seed)


def draws_of(cell: Cell, spec: Spec) -> tuple[np.ndarray, int]:
    """Return weights (s, d) that predict, and how many particles they stand for: draws of guides, or points."""
    name, recipe = cell.column.split(", ")[0], recipe_of(cell)
    if recipe is None:
        options = spec.options_of("target")
        target = TARGETS["uci"].make(spec.dim, data=data_of(spec), split=cell.seed, batch=None, **options)
        return nuts(target, cell.seed, depth=DEPTH).reshape(-1, spec.dim)[::8], 1
    state = after(recipe, cell["steps"])
    if int(state.step) < cell["steps"]:
        return np.full((1, spec.dim), np.nan), 1
    count = 1 if METHODS_OF[first(name)] in ("vi", "map") else recipe.knobs["method.particles"]
    particles = np.asarray(state.particles)[:count]
    if not spec.has_density:
        return particles, len(particles)
    guide = GUIDES[spec.guide].make(spec.dim, None, width=0.1, **spec.options_of("guide"))
    draw = np.random.default_rng(cell.seed)
    chosen = draw.integers(len(particles), size=PREDICTIONS)
    eps = draw.normal(size=(PREDICTIONS, spec.dim)).astype(particles.dtype)
    return np.asarray(guide.location(particles))[chosen] + np.asarray(guide.scale(particles))[chosen] * eps, 1


def run(cell: Cell) -> dict[str, float]:
    """Return RMSE and NLL on the test rows, as they should be and as coded."""
    spec = spec_of(cell)
    theta, alone = draws_of(cell, spec)
    options = spec.options_of("target")
    network = network_of(**options)
    x, y = splits_of(options["dataset"], options["splits"], "smi").part(cell.seed, "test")
    f = np.float64(outputs_of(network.apply, theta[:, : network.size], np.float32(x))[..., 0])
    precision = np.logaddexp(0.0, np.float64(theta[:, network.size]))  # softplus
    density = normal_log_density(y, f, precision[:, None])
    mixture = np.log(len(density)) - float(np.mean(logsumexp(density, axis=0)))
    return {
        "rmse": rmse(y, f.mean(axis=0)),
        "rmse as coded": rmse(y, f),
        "nll": mixture,
        "nll as coded": -float(density.mean()) if alone > 1 else mixture,
    }


def claims() -> list[Claim]:
    """Return NLL and RMSE of every method, set and kind of splits, and seconds a step."""
    found = []
    for splits in SPLITS:
        table = published("smi", f"2 {splits}")
        for name, dataset in SETS.items():
            count = UCI[dataset][3] if splits == "standard" else inputs_of(dataset, "smi")
            for method in (*METHODS_OF, "NUTS"):
                column = f"{method}, {splits}"
                for metric in ("NLL", "RMSE"):
                    at, key = (name, f"{method} {metric}"), metric.lower()
                    label = f"{column}: {metric}"
                    found.append(Claim(name, f"{label} as coded", table, at, column, f"{key} as coded", "", count))
                    if metric == "RMSE" or method in ("SVGD", "ASVGD"):
                        note = "The published value is as coded."
                        found.append(Claim(name, label, table, at, column, key, note, count))
                if splits == "standard" and method != "NUTS":
                    at = published("smi", "6"), (name, method)
                    found.append(Claim(name, f"{column}: {A_STEP}", *at, column, A_STEP, TIMES))
    return [*found, *varied_claims()]


def varied_claims() -> list[Claim]:
    """Return NLL and RMSE of the variants, beside what is published for their method."""
    found, table, count = [], published("smi", "2 standard"), UCI[SETS[VARIED]][3]
    for name in VARIANTS:
        for metric in ("NLL", "RMSE"):
            at, column = (VARIED, f"{first(name)} {metric}"), f"{name}, standard"
            key, label = f"{metric.lower()} as coded", f"{column}: {metric} as coded"
            found.append(Claim(VARIED, label, table, at, column, key, "", count))
    return found


def explained(rows) -> list[str]:
    """Return what the variants have beside their method and the published number, on the splits that all have."""
    sentences = []
    for method in ("SMI", "SVGD"):
        names = [method, *(name for name in VARIANTS if first(name) == method)]
        found = {
            name: {
                row["seed"]: row["numbers"]["nll as coded"]
                for row in rows
                if (row["row"], row["column"]) == (VARIED, f"{name}, standard")
            }
            for name in names
        }
        splits = set.intersection(*(set(each) for each in found.values()))
        if splits:
            said = (f"{name} {np.mean([each[split] for split in splits]):.2f}" for name, each in found.items())
            value = published("smi", "2 standard").value(VARIED, f"{method} NLL").value
            sentences.append(
                f"{VARIED}, NLL as coded on {len(splits)} splits: {', '.join(said)}; published {value:.1f}."
            )
    if sentences:
        sentences.append(
            "So SMI's published number needs both, the fault and the second layer. For SVGD's either is enough. "
            "ASVGD's is not explained."
        )
    return sentences


def tests(rows) -> list[str]:
    """Return who has the lowest mean NLL of each set, and who is not told from it by Mann-Whitney at 0.05."""
    sentences = explained(rows)
    for splits in SPLITS:
        best = {}
        for name in SETS:
            values = {
                method: [
                    row["numbers"]["nll as coded"]
                    for row in rows
                    if (row["row"], row["column"]) == (name, f"{method}, {splits}")
                    and row["numbers"]["nll as coded"] is not None
                ]
                for method in METHODS_OF
            }
            values = {method: found for method, found in values.items() if len(found) > 1}
            if len(values) > 1:
                first = min(values, key=lambda method: np.mean(values[method]))
                if (count := min(map(len, values.values()))) < LEAST:
                    best[name] = f"{name} {first} ({count} splits, too few for the test)"
                    continue
                equal = [m for m in values if mannwhitneyu(values[m], values[first]).pvalue >= LEVEL]
                best[name] = f"{name} {first} ({count} splits; not told apart: {', '.join(equal)})"
        if best:
            sentences.append(f"Lowest NLL as coded, {splits} splits, without NUTS: {'; '.join(best.values())}.")
    return sentences


@TABLES.register(
    "smi_uci",
    label="SMI on UCI regressions",
    reference="SMI paper, tables 2, 6 and 7",
    run=run,
    claims=claims,
    differs=DIFFERS,
    tests=tests,
    recipe=recipe_of,
)
def smi_uci(full: bool, seeds: int | None = None) -> list[Cell]:
    """Six methods, standard and Gap10 splits. Full: all splits, 60,000 steps. Reduced: 10,000 steps. Five small sets
    then have 5 standard and all Gap10 splits, the others 2 of each kind. NUTS then runs on three sets, and what
    the code has otherwise on Energy, with 3 splits."""
    cells, steps = [], MOST if full else 10_000
    for splits in SPLITS:
        for name, dataset in SETS.items():
            count = UCI[dataset][3] if splits == "standard" else inputs_of(dataset, "smi")
            reduced = FEW if name not in SMALL else 5 if splits == "standard" else count
            count = min(count, seeds or (count if full else reduced))
            varied = VARIANTS if (name, splits) == (VARIED, "standard") else ()
            for method in (*METHODS_OF, "NUTS", *varied):
                if method == "NUTS" and not full and (name not in LONG or splits != "standard"):
                    continue
                make, times = partial(Cell, "smi_uci", name, f"{method}, {splits}"), MOST // steps
                if method != "NUTS":
                    times = max(1, min(times, round(FASTEST / rate_of(name, f"{method}, {splits}"))))
                cost = {"SMI": 10.0, "NUTS": 60.0, "OVI": 3.0}.get(first(method), 1.0) * steps / 10_000
                few = min(count, 3) if (method == "NUTS" or method in VARIANTS) and not full else count
                cells += [make(split, (("steps", steps), ("times", times)), cost) for split in range(few)]
    return sorted(cells, key=lambda cell: cell.column.startswith("NUTS"))  # which takes longest
