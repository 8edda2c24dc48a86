"""The checks of scores: one decorated function each, Evidence -> Finding, or None if it has nothing to say."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from stein_core.posterior.evidence import CHECKS, Evidence, Finding
from stein_core.posterior.functionals import MOST, control_functionals
from stein_core.posterior.regression import FLAT, LARGEST
from stein_core.targets.own import rays

SHIFT = 0.2  # sds of the posterior, from which a mean counts as wrong
NARROW, WIDE = 0.85, 1.0 / 0.85  # ratios of sds from which a width counts as wrong
CERTAIN = 2.5  # standard errors beside that, for one number
FALSE = 0.01  # chance that the largest of many numbers is called wrong by chance
ROWS = 5  # draws for each test function: fewer leave the regression to chance
MANY = 500  # independent draws, from which on it is no fault that they are fewer than the directions
FAR = 4.0  # ratio of variances along a direction, from which on `tails` has no meaning


def certain(d: int) -> float:
    """Return how many standard errors the largest of 2 d numbers may be off by chance (Bonferroni)."""
    return -float(ndtri(FALSE / (4 * d)))


def off(values, low, high, expected, error):
    """Return which values are outside of (low, high) and more than an error from what is expected, or NaN."""
    values = np.asarray(values)  # of a bool of Python's, ~ would be a number
    return ~((values >= low) & (values <= high)) & ~(np.abs(values - expected) <= error)


def worst(names, values, by) -> tuple[str, float]:
    """Return the name and the value for which `by` is largest."""
    at = int(np.argmax(by))
    return names[at], float(values[at])


def too(value: float, where: str, right: str = "the right width") -> str:
    """Return what is wrong with a width: `value` times the right one."""
    return f"Too {'narrow' if value < 1 else 'wide'}{where}: {percent(value)} of {right}."


def percent(share: float) -> str:
    """Return a share in per cent. A small one has a digit that is not 0."""
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1g} %"


def the_worst(seen: Evidence) -> str:
    """Return how many coordinates a sentence about the worst one speaks of."""
    return f", the worst of {seen.d}" if seen.d > 1 else ""


def unanswered(why: str, expected: float = 1.0) -> Finding:
    """Return the finding of a check that these draws do not allow."""
    return Finding(math.nan, expected, 0.0, None, f"Not checked: {why}.")


@CHECKS.register("finite", label="Finite density", reference="-", needs=("scores",))
def finite(seen: Evidence) -> Finding:
    """Count the draws whose score is not finite: they lie where the posterior has no density."""
    bad = int((~np.isfinite(seen.scores).all(axis=1)).sum())
    text = f"{bad} of {seen.n} draws have no finite score." if bad else "Every draw has a finite score."
    if bad > seen.n / 2:
        text += " Try other coordinates (scaled or raw), NUTS, or priors with lighter tails."
    return Finding(bad, 0, 0.0, bad > 0, text)


@CHECKS.register("proper", label="Finite mass", reference="-", needs=("flat",))
def proper(seen: Evidence) -> Finding | None:
    """Does the density fall along every ray that was tried? If not, there may be nothing to draw from."""
    return Finding(1, 0, 0.0, True, rays.said(seen.flat)) if seen.flat else None


@CHECKS.register("spread", label="Spread", reference="-", question=2)
def spread(seen: Evidence) -> Finding | None:
    """Find coordinates and directions in which the draws do not vary."""
    unit = seen.draws.std(axis=0)
    constant = [name for name, sd in zip(seen.names, unit) if not sd > 1e-12]
    if constant:
        text = f"All draws have the same {', '.join(constant[:5])}."
        return Finding(len(constant), 0, 0.0, True, text, short=f"No width. {text}")
    if seen.n <= seen.d:
        lost = seen.d - seen.n + 1
        text = f"{seen.n} draws span at most {seen.n - 1} of {seen.d} directions; {lost} have no variance at all."
        if seen.chains > 0 and seen.ess >= MANY:  # independent draws of a right law, too, are fewer than the directions
            return unanswered(text[:-1])
        return Finding(lost, 0, 0.0, True, text, short=f"Too few draws. {text}")
    if seen.d <= LARGEST:
        values = np.linalg.eigvalsh(np.atleast_2d(np.corrcoef(seen.draws.T)))
        if lost := int((values < FLAT * values[-1]).sum()):
            text = f"In {lost} of {seen.d} directions the draws have no variance: some coordinates determine others."
            return Finding(lost, 0, 0.0, True, text, short=f"No width. {text}")
    return None


@CHECKS.register("location", label="Location", reference="Stein's identity E[s] = 0", needs=("usable",), question=1)
def location(seen: Evidence) -> Finding | None:
    """Are the draws where the density says? Compare their means with those that the scores imply, in sds.

    If there is no regression, the mean score is judged, in sds of the score: for a normal posterior with independent
    coordinates this is the same number.
    """
    if seen.n < 2:
        return None
    if seen.implied is not None:
        shift, error = seen.implied[1], seen.errors[1]
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            shift = -np.where(seen.scores.any(axis=0), seen.scores.mean(axis=0) / seen.scores.std(axis=0), 0.0)
        error = np.full(seen.d, (seen.chains > 0) / math.sqrt(seen.ess))
    if np.isinf(error).all():
        return unanswered("too few draws to tell where the scores imply the means", 0.0)
    wrong = off(shift, -SHIFT, SHIFT, 0.0, certain(seen.d) * error)
    name, value = worst(seen.names, shift, np.nan_to_num(np.abs(shift), nan=np.inf) + 1e9 * wrong)
    if seen.implied is not None:
        side = "above" if value > 0 else "below"
        short = f"Off centre, worst in {name}: its mean is {abs(value):.2g} sd too {'high' if value > 0 else 'low'}."
        text = f"The mean of {name} is {abs(value):.2g} sd {side} the one that the scores imply{the_worst(seen)}."
    else:
        text = f"The mean score of {name} is {-value:.2g} of its sds{the_worst(seen)}; exact draws have 0."
        short = f"Off centre, worst in {name}: its mean score is {-value:.2g} of its sds, not 0."
    each = dict(zip(seen.names, shift.tolist()))
    bad = bool(wrong.any())
    return Finding(value, 0.0, float(error.max()), bad, text, each, short, off_centre=bad)


@CHECKS.register(
    "width", label="Width", reference="Stein's identity E[s (x - mean)^T] = -I", needs=("usable",), question=2
)
def width(seen: Evidence) -> Finding | None:
    """Are the draws as wide as the density says? Compare their sds with those that the scores imply."""
    if seen.implied is None:
        return None  # `stein_trace` judges each r_j then
    ratio, error = seen.implied[0], seen.errors[0]
    if np.isinf(error).all():
        return unanswered("too few draws to tell which sds the scores imply")
    wrong = off(ratio, NARROW, WIDE, 1.0, certain(seen.d) * error)
    far = np.nan_to_num(np.abs(np.log(np.maximum(ratio, 1e-9))), nan=np.inf)
    name, value = worst(seen.names, ratio, far + 1e9 * wrong)
    text = f"{name} has {value:.2f} times the sd that the scores imply{the_worst(seen)}."
    each, short = dict(zip(seen.names, ratio.tolist())), too(value, f", worst in {name}")
    return Finding(value, 1.0, float(error.max()), bool(wrong.any()), text, each, short)


@CHECKS.register(
    "shape", label="Shape", reference="Stein's identity E[s (x - mean)^T] = -I", needs=("usable",), question=2
)
def shape(seen: Evidence) -> Finding | None:
    """Are the draws as wide as the density says in every direction? Judge the narrowest and the widest one."""
    flat = spread(seen)
    if seen.d == 1 or (flat is not None and flat.wrong):
        return None  # `width` is the same; there are no directions to judge
    if seen.d > LARGEST and seen.chains == 0:
        return unanswered(f"{seen.d} coordinates, and directions of particles are sought in at most {LARGEST}")
    if seen.directions is None:
        return unanswered(f"{seen.n} draws are too few for directions of {seen.d} coordinates")
    sure = certain(seen.d)  # not for two numbers only: products of draws and scores have heavy tails
    wrong = [bool(off(each.ratio, NARROW**2, WIDE**2, 1.0, sure * each.error)) for each in seen.directions]
    if not any(wrong) and any(sure * each.error >= 1 for each in seen.directions):  # no width at all would pass
        return unanswered("too few draws to tell how wide they are in each direction")
    ratios = [math.sqrt(max(each.ratio, 0.0)) for each in seen.directions]
    order = sorted((0, 1), key=lambda k: (not wrong[k], -abs(math.log(max(ratios[k], 1e-9)))))
    first, second = (seen.directions[k].words(seen.names) for k in order)
    value, other, error = ratios[order[0]], ratios[order[1]], seen.directions[order[0]].error
    text = (
        f"Along {first} the draws are {value:.2f} times as wide as their scores imply, with {percent(value**2)} of the "
        f"variance. Along {second} they are {other:.2f} times as wide."
    )
    text += " No other direction is as far from 1." * (seen.d <= LARGEST)
    return Finding(value, 1.0, error / 2, any(wrong), text, short=too(value, f" along {first}"))


@CHECKS.register(
    "tails", label="Tails", reference="Oates et al. 2017; South et al. 2022", needs=("usable",), question=2
)
def tails(seen: Evidence) -> Finding | None:
    """Do mean and sd still agree with the scores when test functions see tails and funnels?

    If the draws are far from the scores in some direction, the regression is dominated by its ridge, and says nothing.
    """
    if spread(seen) is not None:
        return None
    most = min(MOST, seen.distinct // ROWS if seen.chains else seen.n)  # particles at rest have no noise
    if 5 * seen.d > MOST:
        return unanswered(f"{seen.d} coordinates, and tails are sought in at most {MOST // 5}")
    ratios = [seen.trace[0].mean(), *(each.ratio for each in seen.directions or () if CERTAIN * each.error < 1)]
    if not all(1 / FAR <= ratio <= FAR for ratio in ratios):
        return unanswered("the draws are far from what the scores say, and test functions of tails do not help")
    found = control_functionals(seen.draws, seen.scores, seen.ess, most)
    if found is None or not np.isfinite(found.ratios).any():
        return unanswered(f"{seen.n} draws are too few to see tails of {seen.d} coordinates")
    (ratio, shift), error = found[:2], certain(seen.d) * (seen.chains > 0) * found.errors
    known = np.isfinite(ratio)
    away = known & off(shift, -SHIFT, SHIFT, 0.0, error[1])
    wrong = away | known & off(ratio, NARROW, WIDE, 1.0, error[0])
    far = np.maximum(np.abs(np.log(ratio)) / np.log(WIDE), np.abs(shift) / SHIFT)
    name, value = worst(seen.names, ratio, np.where(known, far + 1e3 * wrong, -1.0))
    apart = shift[seen.names.index(name)]
    text = (
        f"With test functions that see tails, {name} has {value:.2f} times the sd that the scores imply, and its mean "
        f"is {apart:+.2f} sd off{the_worst(seen)}."
    )
    each = {key: float(one) for key, one in zip(seen.names, ratio)}
    short = too(value, f", worst in {name}")
    if not off(value, NARROW, WIDE, 1.0, 0.0):
        short = f"Off centre, worst in {name}: its mean is {abs(apart):.2g} sd too {'high' if apart > 0 else 'low'}."
    largest = float(np.nanmax(found.errors[0]))
    return Finding(value, 1.0, largest, bool(wrong.any()), text, each, short, off_centre=bool(away.any()))


@CHECKS.register("stein_trace", label="Stein trace", reference="mean of r_j", needs=("usable",), question=2)
def stein_trace(seen: Evidence) -> Finding:
    """r = -sum_l s_l . (x_l - mean) / ((n - 1) d): 1 for exact draws of any density, below 1 if they are too narrow.

    If there is no regression, each r_j is judged too. With correlations an r_j is far from 1 already for a small fault,
    by as much as sd(s_j) sd(x_j), so its distance is measured in these.
    """
    each, errors = seen.trace
    r, error = float(each.mean()), 0.0 if seen.chains == 0 else math.sqrt(2 / (seen.ess * seen.d))
    if seen.chains and seen.n > 1:
        rows = -np.sum(seen.scores * (seen.draws - seen.draws.mean(axis=0)), axis=1) / seen.d
        error = max(error, float(rows.std() / math.sqrt(seen.ess)))
    narrow, wide = NARROW**2, WIDE**2
    wrong = bool(off(r, narrow, wide, 1.0, CERTAIN * error))
    short = f"Too {'narrow' if r < 1 else 'wide'} on average: r is {r:.2f}, and exact draws have 1."
    text = f"r = {r:.3f}; exact draws have 1."
    if wrong and r < 1 and math.isfinite(seen.law) and abs(r / seen.law - 1) < 0.1:
        text += f" SVGD has {seen.law:.3f} at rest with these settings: it is the collapse that its law says."
    if seen.implied is None:
        unit = np.maximum(seen.scores.std(axis=0) * seen.draws.std(axis=0), 1.0)
        apart = (each - 1) / unit
        bad = off(apart, narrow - 1, wide - 1, 0.0, certain(seen.d) * errors / unit)
        name, value = worst(seen.names, each, np.nan_to_num(np.abs(apart), nan=np.inf) + 1e9 * bad)
        text += f" {name} has r = {value:.2f}{the_worst(seen)}."
        if bad.any() and not wrong:
            wrong, side = True, "narrow" if value < 1 else "wide"
            short = f"Too {side}, worst in {name}: its r is {value:.2f}, and exact draws have 1."
    return Finding(r, 1.0, error, wrong, text, dict(zip(seen.names, each.tolist())), short)


@CHECKS.register("curvature", label="Curvature", reference="regression of the scores", needs=("usable",), question=2)
def curvature(seen: Evidence) -> Finding | None:
    """Say when the scores do not fall along some direction: several modes, or draws far from the posterior's mass."""
    if seen.implied is not None or seen.n < 2 * seen.d or seen.d > LARGEST or spread(seen) is not None:
        return None
    least = seen.directions[0] if seen.directions else None
    if least is None or least.ratio > -certain(seen.d) * least.error:
        return unanswered("too few draws to tell whether the scores push the draws back in every direction", 0.0)
    along = least.words(seen.names)
    text = f"Along {along} the scores do not push the draws back: there may be several modes, or a ridge."
    return Finding(least.ratio, 1.0, least.error, True, text)
