"""The parts of a frame of a training page, and how finely a replay keeps each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Part(NamedTuple):
    """Numbers of a frame.

    Args:
        numbers: (n,).
        every: a replay keeps one of so many, and draws a smooth curve through them.
        unit: and of each the nearest multiple of this.
    """

    numbers: Any
    every: int = 1
    unit: float = 1.0


def joined(parts: Sequence[Part]) -> np.ndarray:
    """Return a frame as a float32 vector."""
    return np.concatenate([part.numbers for part in parts]).astype(np.float32)
