"""Limits of one server. An environment variable, set before the start, changes each of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from stein_core.base.errors import short

# variable -> (default, least, most, what it limits)
KNOWN = {
    "STEINLAB_PARTICLES": (256, 32, 4096, "particles of a method on a stage, and in a sweep"),
    "STEINLAB_CROWD": (1_000_000, 32, 2**20, "particles of a method on page Particles, if their step is short"),
    "STEINLAB_DIM": (1000, 2, 1000, "dimensions of a target, except the wave"),
    "STEINLAB_STEPS_PER_SECOND": (20_000, 1, 10**9, "steps a second of a method on one stage"),
    "STEINLAB_SESSIONS": (
        100,
        1,
        10_000,
        "open pages at a time (not served notebooks); the next visitor is asked to come back later",
    ),
    "STEINLAB_JOBS": (1, 1, 64, "sweeps and NUTS runs at a time; more wait in a queue"),
    "STEINLAB_RUNS": (600, 1, 100_000, "runs of one sweep of page Variance collapse"),
    "STEINLAB_UPLOAD_MB": (1, 1, 100, "megabytes of an uploaded file"),
}


class Limits(NamedTuple):
    """Hold the limits. The fields are the variables of KNOWN without their prefix, in lower case."""

    particles: int
    crowd: int
    dim: int
    steps_per_second: int
    sessions: int
    jobs: int
    runs: int
    upload_mb: int

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Limits:
        """Read the limits from environment variables.

        Raises:
            ValueError: naming the variable, its value and what is allowed.
        """
        values = []
        for name, (default, least, most, _) in KNOWN.items():
            text = environment.get(name, str(default))
            if not text.strip().isdecimal() or len(text) > 20 or not least <= int(text) <= most:
                raise ValueError(f"{name} = {short(text)!r}; allowed: a whole number from {least} to {most}.")
            values.append(int(text))
        return cls(*values)

    def refusal(self, dim: int, particles: int) -> str:
        """Say why this server computes no run of this size, or return ""."""
        limits = ("Dimension", dim, self.dim, "DIM"), ("Particles", particles, self.particles, "PARTICLES")
        for label, value, most, name in limits:
            if value > most:
                variable = f"STEINLAB_{name}"
                return f"{label} = {short(value)} is out of range; allowed on this server: 1 to {most} ({variable})."
        return ""


LIMITS = Limits.read(os.environ)
