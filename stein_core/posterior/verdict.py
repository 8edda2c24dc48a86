"""The verdict: whether to trust the draws, what is worst, and what to do, in short sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping

from stein_core.contract.registry import METHODS
from stein_core.posterior.companions import K_HAT
from stein_core.posterior.evidence import CHECKS, Evidence, Finding
from stein_core.posterior.fitted import Fit
from stein_core.posterior.regression import LARGEST

FIRST = ("finite", "spread", "reference", "width", "location", "shape", "curvature", "modes", "stein_trace")
CLEARLY = 1.5  # factor, by which the sd along a direction is further off than each coordinate's: then it is said first
MEASURED = ("Too narrow", "Too wide", "Off centre")  # how the short sentence of a measured fault begins


def ok_of(seen: Evidence, findings: Mapping[str, Finding]) -> bool | None:
    """Return whether no check says that the draws are wrong; None if that cannot be told."""
    if seen.scores is None and seen.reference is None:
        return None
    judged = [found.wrong for found in findings.values()]
    return False if True in judged else None if None in judged else True


def said(seen: Evidence, findings: Mapping[str, Finding], made: Fit | None = None) -> str:
    """Return the verdict on draws, or on the fit that made them."""
    wrong = {name: found for name, found in findings.items() if found.wrong}
    if seen.scores is None and seen.reference is None:
        sentences = [found.sentence for found in wrong.values()]
        return " ".join(["Without scores these draws cannot be checked.", *sentences])
    if wrong:
        if "proper" in wrong:
            return f"These draws cannot be right. {wrong['proper'].sentence}"
        first = _places(wrong)
        order = sorted(wrong, key=lambda name: first.index(name) if name in first else len(first))
        shorts = [wrong[name].short or f"Not right. {wrong[name].sentence}" for name in order]
        kinds = MEASURED[:2] if "spread" in wrong else MEASURED  # without a width, a distance in widths says nothing
        judged = next((short for short in shorts if short.startswith(kinds)), "")
        words = [shorts[0], *[judged] * (judged != shorts[0]), *([] if "spread" in wrong else _rest(judged, findings))]
        return " ".join([*words, _advice(judged, findings, made)]).strip()
    parts = []
    if missing := [CHECKS[name].label.lower() for name, found in findings.items() if found.wrong is None]:
        parts.append(
            f"{' and '.join([', '.join(missing[:-1])] * (len(missing) > 1) + missing[-1:])} could not be checked"
        )
    if "k_hat" in findings and findings["k_hat"].value > K_HAT:
        parts.append(f"the weights disagree: k-hat is {findings['k_hat'].value:.2f}, above {K_HAT}")
    if seen.diverging:
        parts.append(f"the reference has {seen.diverging} divergences")
    if "modes" in findings and findings["modes"].value > 0:
        parts.append(f"modes with about {findings['modes'].value:.1%} of the mass have no draws")
    if missing:
        return f"No fault was found, but {', and '.join(parts)}."
    return f"No sign of a wrong location or width{''.join(f', but {part}' for part in parts)}."


def _places(wrong: Mapping[str, Finding]) -> tuple[str, ...]:
    """Return `FIRST`, with the shape before what says each coordinate's width if a direction is clearly further off.

    That is the width; of many coordinates it is the Stein trace, whose ratios are of variances.
    """
    many = "stein_trace" in wrong and len(wrong["stein_trace"].each) > LARGEST
    each = "width" if "width" in wrong else "stein_trace"
    if "shape" not in wrong or not ("width" in wrong or many):
        return FIRST
    sizes = [wrong["shape"].value, *([wrong[each].value] if each == "width" else wrong[each].each.values())]
    along, *alone = (abs(math.log(max(size, 1e-9))) for size in sizes)
    further = along > max(alone) / (1 if each == "width" else 2) + math.log(CLEARLY)
    others = [name for name in FIRST if name != each and not (further and name == "shape")]
    at = others.index("location")
    return (*others[:at], *["shape"] * further, each, *others[at:])


def _rest(headline: str, findings: Mapping[str, Finding]) -> list[str]:
    """Return what is true of the centre if the width is wrong, and the other way round."""
    if headline.startswith(MEASURED[:2]):
        centre = findings.get("location")
        if centre is None or centre.wrong is None:
            return []
        away = any(found.off_centre for found in findings.values() if found.wrong)
        return [f"The centre is {'off too' if away else 'right'}."]
    if headline.startswith(MEASURED[2]):
        judged = [findings[name].wrong for name in ("width", "shape", "tails") if name in findings]
        return ["The width is right."] if judged and not any(one or one is None for one in judged) else []
    return []


def _advice(headline: str, findings: Mapping[str, Finding], made: Fit | None) -> str:
    """Return what to do about draws that are wrong."""
    if not headline:
        return ""
    if made is None:
        return f"Do not report {'means' if headline.startswith(MEASURED[2]) else 'intervals'} from these draws."
    if "rest" in findings and "Take more steps" in findings["rest"].sentence:
        return "The run still moves: take more steps."
    if METHODS[made.recipe.spec.method].facts.single:
        return "Try SMI."
    return "Try NUTS, or more particles." if made.recipe.spec.has_density else "Try SMI, or more particles."
