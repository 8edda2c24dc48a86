"""The verdict: whether to trust the draws, in a sentence or two."""

from __future__ import annotations

from collections.abc import Mapping

from stein_core.posterior.checks import NARROW, WIDE
from stein_core.posterior.companions import K_HAT
from stein_core.posterior.evidence import CHECKS, Evidence, Finding

FIRST = ("finite", "spread", "reference", "width", "location", "shape", "curvature", "modes", "stein_trace")
WIDTHS = ("reference", "width", "stein_trace", "tails")  # whose value says "too narrow" or "too wide"
SENTENCES = 2  # reasons that are said


def ok_of(seen: Evidence, findings: Mapping[str, Finding]) -> bool | None:
    """Return whether no check says that the draws are wrong; None if that cannot be told."""
    if seen.scores is None and seen.reference is None:
        return None
    judged = [found.wrong for found in findings.values()]
    return False if True in judged else None if None in judged else True


def said(seen: Evidence, findings: Mapping[str, Finding]) -> str:
    """Return the verdict on draws."""
    wrong = {name: found for name, found in findings.items() if found.wrong}
    if seen.scores is None and seen.reference is None:
        sentences = [found.sentence for found in wrong.values()]
        return " ".join(["Without scores these draws cannot be checked.", *sentences])
    if wrong:
        if "proper" in wrong:
            return f"These draws cannot be right. {wrong['proper'].sentence}"
        order = sorted(wrong, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
        return f"These draws are {_fault(wrong)}. {' '.join(wrong[name].sentence for name in order[:SENTENCES])}"
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


def _fault(wrong: Mapping[str, Finding]) -> str:
    """Return what is wrong with the draws in two words."""
    value = next((wrong[name].value for name in WIDTHS if name in wrong), 1.0)
    if value < NARROW or value > WIDE:
        return "too narrow" if value < NARROW else "too wide"
    return "not right"
