"""A million particles in two dimensions: a link of page Particles, for servers on which a step of them is short."""

from __future__ import annotations

import os
from collections.abc import Mapping

import jax

from stein_core.base.distances import DENSE
from steinlab.stage.setup import SIZES, CrowdSetup

NEEDED = "STEINLAB_CROWD"  # who sets it says that a CPU may do it too
MOST = 1_000_000


def million(environment: Mapping[str, str] = os.environ) -> CrowdSetup | None:
    """Return a run of a million particles, or of as many as this server allows; None if it is not offered here.

    It is offered on a GPU, and on a CPU if whoever started the server has set STEINLAB_CROWD.
    """
    sizes = [size for size in SIZES if DENSE < size <= MOST]
    if not sizes or (jax.default_backend() == "cpu" and NEEDED not in environment):
        return None
    return CrowdSetup("banana", ("svgd",), near=1e-3, knobs={"method.particles": sizes[-1], "bandwidth.factor": 0.05})


def title(setup: CrowdSetup) -> str:
    """Name what `million` returns."""
    return "A million particles" if setup.particles == MOST else f"{setup.particles:,} particles"
