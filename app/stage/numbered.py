"""View of a page that draws figures of the run beside its stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from steinlab.stage.run import Run
from steinlab.stage.scene import SideBySide

EVERY = 0.15  # seconds between two points of the figures


class Numbered(SideBySide):
    """Cards, with numbers for figures.

    A subclass has numbers(run, metrics, begun), which returns what the figures show of this moment, one for each
    method; each is a named tuple. It is called on the session's worker thread.

    Args:
        measured: names of the diagnostics.
        on_seen: on_seen(numbers) is called on the worker's thread, a few times a second.
    """

    def __init__(self, measured: Sequence[str], on_seen: Callable[[list], None] = lambda numbers: None):
        super().__init__(measured)
        self.on_seen, self.next_time, self.last = on_seen, 0.0, (0, -1)

    def pack(self, run: Run, metrics: Sequence[Mapping[str, Any]], begun: int) -> np.ndarray:
        steps = begun, max((frame.step for frame in run.frames), default=0)
        now = time.monotonic()
        if now > self.next_time or steps[0] != self.last[0] or steps[1] <= self.last[1]:
            self.on_seen(self.numbers(run, metrics, begun))
            self.next_time, self.last = time.monotonic() + max(EVERY, 10 * (time.monotonic() - now)), steps
        return super().pack(run, metrics, begun)
