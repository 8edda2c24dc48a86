"""What page "Your posterior" fits and how, as its link says it; and what an upload is."""

from __future__ import annotations

from dataclasses import dataclass

from stein_core import TARGETS
from stein_core.base.errors import unknown
from stein_core.cli.posterior import EXAMPLE
from stein_core.targets.posteriordb import POSTERIORS, folder
from stein_core.targets.posteriors import MODELS
from steinlab.ui import link

WAYS = {  # key -> (label, method, words of the command)
    "smi": ("SMI, 20 guides, alpha 0.05", "smi", ()),
    "svgd": ("SVGD, 100 points, wider kernel", "svgd", ()),
    "few": (
        "SVGD, 20 points, as published",
        "svgd",
        ("--particles", "20", "--set", "bandwidth.rule=median_log"),
    ),
    "vi": ("One guide (VI)", "vi", ()),
}


def command(posterior: str, way: str, verb: str = "fit") -> tuple[str, ...]:
    """Return the words of the fit, or the calibration, of a posterior with a key of WAYS."""
    _, method, words = WAYS[way]
    return (verb, posterior, "--method", method, *words)


def why_not(posterior: str) -> str:
    """Return why a posterior cannot be calibrated, or "". Of posteriordb's only the command knows."""
    if posterior in MODELS or posterior.startswith(EXAMPLE):
        return ""
    return f"{TARGETS[posterior].label} is a density without data, so no data sets can be simulated to calibrate it."


def posteriors() -> dict[str, str]:
    """Return what can be fitted: label -> name."""
    own = {entry.label: entry.name for entry in TARGETS.listed()}
    there = [name for name in POSTERIORS if (folder() / f"{name}.npz").is_file()]
    return own | {f"posteriordb: {name}": EXAMPLE + name for name in there}


def posterior_of(text: str) -> str:
    """Read the name of a posterior."""
    if text not in posteriors().values():
        raise unknown("posterior", text, posteriors().values())
    return text


@dataclass(frozen=True)
class Choice:
    """What is fitted, and how: a key of WAYS."""

    posterior: str
    way: str = "smi"


LINK = (
    link.Field("posterior", posterior_of, always=True),
    link.Field("way", link.one_of("way", WAYS), always=True),
)


def has_scores(content: bytes) -> bool:
    """Say whether an .npz has an array `scores`: the names of its members are at the end."""
    return b"scores.npy" in content[-65_536:]
