"""Checks beside those of the scores: modes, a reference, weights, chains, and what is known of a run."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial import KDTree
from scipy.special import chdtri

from stein_core.base.arviz_api import pareto_k
from stein_core.posterior.checks import NARROW, SHIFT, WIDE, certain, off, the_worst, too, unanswered, worst
from stein_core.posterior.discrepancy import discrepancy
from stein_core.posterior.evidence import CHECKS, Evidence, Finding, disagreement
from stein_core.posterior.mixing import distances, weights_of
from stein_core.posterior.reference import compared

SMALL = 0.05  # share of the mass of a mode that is left out; and of the draws that a mode should have
K_HAT = 0.7  # Vehtari et al. 2024
R_HAT = 1.05
RESTLESS = 0.01  # of the attraction: a force that is larger still moves the particles
STIRRED = 0.35  # the same of guides: after 2,000 steps `fit` has left 0 to 0.3 of it, after 20 mostly 0.8 to 1
TWINS = 0.01  # of the distance between n particles in a grid: closer ones are at the same place
MOST_PAIRED = 1000  # draws for the kernel Stein discrepancy, whose cost grows with their square
BLIND = (
    "A small value proves nothing: it hardly reacts to wrong weights of modes, or to the collapse of few draws in many "
    "dimensions."
)


@CHECKS.register("modes", label="Modes", reference="Gelfand & Dey 1994", needs=("modes", "log_p"), question=2)
def modes(seen: Evidence) -> Finding | None:
    """Are there draws at every mode that the search for the start has found, and as many as the density says?

    A mode that has less than 5 % of the mass by Laplace's approximation is told, and not judged.
    """
    near = (distances(seen.modes, seen.draws) < chdtri(seen.d, 0.01)).mean(axis=1)
    lost = [mode for mode, share in zip(seen.modes, near) if share < SMALL * mode.share]
    there = [mode for mode, share in zip(seen.modes, near) if share >= SMALL * mode.share]
    text, large = "", [mode for mode in lost if mode.share >= SMALL]
    if large:
        far = large[0].place - seen.draws.mean(axis=0)
        name, value = worst(seen.names, large[0].place, np.abs(far / seen.draws.std(axis=0)))
        mass = float(sum(mode.share for mode in large))
        which = "One of them has" if len(large) == 1 else f"{len(large)} of them have"
        text = (
            f"{len(seen.modes)} modes were found from several starts. {which} no draws, about {mass:.0%} of the mass: "
            f"at {name} = {value:.3g}."
        )
        return Finding(mass, 0.0, 0.0, True, text)
    wrong, error = False, 0.0
    if len(there) > 1:
        found = weights_of(there, seen.draws, seen.log_p, seen.effective_of)
        sds = np.sqrt(np.maximum(found.density * (1 - found.density), 1e-12))  # of being in a mode or not
        apart = (found.draws - found.density) / sds
        bad = off(apart, -SHIFT, SHIFT, 0.0, certain(len(there)) * found.errors / sds)
        k = int(np.argmax(np.abs(apart) + 1e9 * bad))
        far = there[k].place - there[k - 1].place
        name, value = worst(seen.names, there[k].place, np.abs(far / seen.draws.std(axis=0)))
        wrong, error = bool(bad.any()), float(found.errors[k])
        text = (
            f"{len(there)} modes have draws. The mode at {name} = {value:.3g} has {found.draws[k]:.0%} of them; its "
            f"mass is {found.density[k]:.0%} +- {error:.1%}."
            if math.isfinite(error)
            else f"{len(there)} modes have draws, too few to tell their mass."
        )
    small = _small(seen, lost)
    if not text and not small:
        return None
    return Finding(
        float(sum(mode.share for mode in lost)) if small else 0.0, 0.0, error, wrong, f"{text} {small}".strip()
    )


def _small(seen: Evidence, lost) -> str:
    """Return what small modes without draws would change, or "" if no sd would be 5 % larger."""
    mean, unit = seen.draws.mean(axis=0), seen.draws.std(axis=0)
    grown = np.zeros(seen.d)
    for mode in lost:
        grown += mode.share * ((mode.place - mean) / unit) ** 2
    name, value = worst(seen.names, np.sqrt(1 + grown), grown)
    if not value > 1.05:
        return ""
    mass = sum(mode.share for mode in lost)
    which, them = ("A small mode has", "it") if len(lost) == 1 else (f"{len(lost)} small modes have", "them")
    return (
        f"{which} no draws, about {mass:.1%} of the mass. With {them} the sd of {name} would be {value:.2f} times as "
        "large."
    )


@CHECKS.register("reference", label="Reference", reference="-", needs=("reference",))
def reference(seen: Evidence) -> Finding:
    """Compare means and standard deviations with those of draws that are right, beside the Monte Carlo errors of both.

    The error of an sd follows from the kurtosis of the reference, that of the draws' mean from their own sd. A
    reference with divergences blames nobody: it has missed what its trajectories could not reach.
    """
    ess, r_hat = seen.reference_quality
    if r_hat is not None and r_hat.max() > R_HAT:
        name, value = worst(seen.names, r_hat, r_hat)
        return unanswered(f"the chains of the reference disagree: R-hat is {value:.2f}, of {name}")
    right, rows = seen.reference.reshape(-1, seen.d), compared(seen.draws, seen.reference, seen.names)
    shift, ratio = (np.array([row[key] for row in rows]) for key in ("mean error", "sd ratio"))
    own = (seen.chains > 0) / seen.ess  # particles have no noise
    kurtosis = np.maximum(np.mean(((right - right.mean(axis=0)) / right.std(axis=0)) ** 4, axis=0), 3.0)
    errors = np.sqrt([np.maximum(ratio, 1.0) ** 2 * own + 1 / ess, (kurtosis - 1) / 4 * (own + 1 / ess)])
    sure = certain(seen.d) * errors
    away = off(shift, -SHIFT, SHIFT, 0.0, sure[0])
    wrong = away | off(ratio, NARROW, WIDE, 1.0, sure[1])
    far = np.maximum(np.abs(shift) / SHIFT, np.abs(np.log(np.maximum(ratio, 1e-9))) / np.log(WIDE))
    name, value = worst(seen.names, ratio, far + 1e9 * wrong)
    apart = shift[seen.names.index(name)]
    text = (
        f"{name} has {value:.2f} times the sd of the reference, and its mean is {apart:+.2f} sd off{the_worst(seen)}. "
        f"The reference has {ess.min():.0f} effective draws"
    )
    text += "." if r_hat is None else f", and R-hat {r_hat.max():.3f} at most."
    blamed: bool | None = bool(wrong.any())
    if seen.diverging:
        text += f" {seen.diverging} of its draws ended a diverging trajectory, so it may be wrong itself."
        blamed = None if blamed else False
    short = too(value, f", worst in {name}", "the reference's width")
    if not off(value, NARROW, WIDE, 1.0, 0.0):
        short = f"Off centre, worst in {name}: its mean is {apart:+.2f} sd from that of the reference."
    each, largest = dict(zip(seen.names, ratio.tolist())), float(errors[1].max())
    return Finding(value, 1.0, largest, blamed, text, each, short, off_centre=bool(away.any()))


@CHECKS.register(
    "k_hat",
    label="Weights",
    reference="Vehtari et al. 2024",
    needs=("usable", "log_p", "log_q"),
    judges=False,
    question=3,
)
def k_hat(seen: Evidence) -> Finding:
    """Do the weights agree? Pareto's k of log p - log q: below 0.7 they could correct the fit."""
    weights = seen.log_p - seen.log_q
    if np.ptp(weights) < 1e-8:  # the fit is the posterior: there is no tail to fit
        return Finding(-math.inf, 0.0, 0.0, False, "All weights are equal: the fit is the posterior.")
    k = pareto_k(weights)
    side = "below" if k < K_HAT else "above"
    return Finding(k, 0.0, 0.0, False, f"k = {k:.2f}, {side} {K_HAT}. It grows with the dimension, also for good fits.")


@CHECKS.register("chains", label="Chains", reference="Vehtari et al. 2021", needs=("draws",), question=3)
def chains(seen: Evidence) -> Finding | None:
    """Do the chains agree? Rank-normalised R-hat, and the effective number of draws."""
    if seen.chains < 2:
        return None
    each = disagreement(seen.rows)
    name, value = worst(seen.names, each, each)
    text = f"R-hat is {value:.3f} at most, of {name}; {seen.ess:.0f} effective draws."
    return Finding(value, 1.0, 0.0, bool(value > R_HAT), text, dict(zip(seen.names, each.tolist())))


@CHECKS.register("rest", label="At rest", reference="a force of zero", needs=("rest",), judges=False, question=4)
def rest(seen: Evidence) -> Finding:
    """Say whether the particles have stopped: a run that still moves may become better, or worse."""
    if seen.noisy:
        left, limit, still = (
            f"mean force that is left is {seen.rest:.2g} of one step's",
            STIRRED,
            "no more than noisy steps leave",
        )
    else:
        left, limit, still = f"force that is left is {seen.rest:.2g} of the", RESTLESS, "the run is at rest"
    said = still if seen.rest <= limit else "the run still moves. Take more steps"
    return Finding(seen.rest, 0.0, 0.0, False, f"The {left} attraction: {said}.")


@CHECKS.register("coincident", label="Same place", reference="-", question=2, only_wrong=True)
def coincident(seen: Evidence) -> Finding | None:
    """Count particles that have another at their place. They feel the same force, and so never part."""
    unit = seen.draws.std(axis=0)
    if seen.chains or seen.n < 2 or not (unit > 0).all():
        return None
    near = KDTree(seen.draws / unit).query(seen.draws / unit, 2)[0][:, 1]
    twins = int((near < TWINS * math.sqrt(seen.d) * seen.n ** (-1 / seen.d)).sum())
    text = f"{twins} of {seen.n} particles coincide with another particle, so the sample is effectively smaller."
    return Finding(twins, 0.0, 0.0, twins > SMALL * seen.n, text if twins else "No two particles are at one place.")


@CHECKS.register(
    "count", label="Count", reference="theory.simplex_variance", needs=("usable",), judges=False, question=4
)
def count(seen: Evidence) -> Finding | None:
    """Say which Stein trace the method's law gives, with these particles and with twice as many."""
    if not math.isfinite(seen.law):
        return None
    more = f" With {2 * seen.n} it is {seen.law_of_twice:.3f}." * math.isfinite(seen.law_of_twice)
    text = f"By its law the Stein trace of {seen.n} particles in {seen.d} dimensions is {seen.law:.3f} at rest.{more}"
    return Finding(seen.law, 1.0, 0.0, False, text + " Exact draws have 1.")


@CHECKS.register(
    "weighing",
    label="Stein weights",
    reference="Liu & Lee 2017; Riabiz et al. 2022",
    needs=("weighing",),
    judges=False,
    question=4,
)
def weighing(seen: Evidence) -> Finding:
    """Say what weights change. All other checks read the draws without them."""
    apart = seen.draws - seen.weighing.weights @ seen.draws
    ratios = np.sqrt(seen.weighing.weights @ apart**2) / seen.draws.std(axis=0)
    text = f"{seen.weighing.sentence} The other checks read the draws without weights."
    return Finding(seen.weighing.after, 0.0, 0.0, False, text, dict(zip(seen.names, ratios.tolist())))


@CHECKS.register(
    "ksd", label="KSD", reference="Gorham & Mackey 2017, eq. 5", needs=("usable",), judges=False, question=4
)
def ksd(seen: Evidence) -> Finding | None:
    """Measure the kernel Stein discrepancy in units of the draws' sds. It never decides: see its warning."""
    unit = seen.draws.std(axis=0)
    if seen.n < 2 or not (unit > 0).all():
        return None
    count = min(seen.n if seen.chains == 0 else int(seen.ess), MOST_PAIRED)
    rows = np.linspace(0, seen.n - 1, max(count, 2)).astype(int)
    value, p = discrepancy(seen.draws[rows] / unit, seen.scores[rows] * unit)
    chance = f" Of exact draws {p:.1%} have a larger one (wild bootstrap)." if seen.chains else ""
    text = f"The kernel Stein discrepancy of {len(rows)} draws is {value:.3g}.{chance} {BLIND}"
    return Finding(value, 0.0, 0.0, False, text)
