"""What has come from a loop, and the pages that show it."""

from __future__ import annotations

import math
from bisect import bisect
from typing import Any, BinaryIO

import numpy as np

from steinlab.watching.pipe import get
from steinlab.watching.recording import Recording, Seen


class Feed:
    """Read what a loop sends.

    Attributes:
        about: what stands still, as the loop said it; ghosts: (k, d) exact draws.
        recording: the frames.
        ended: whether the loop has ended; said: why, if it failed.
        pages: what shows it. Each has take(frame), which any thread may call.
    """

    def __init__(self, pipe: BinaryIO):
        self._pipe = pipe
        self.about, ghosts = get(pipe) or ({}, np.empty(0))
        d = self.about.get("dim", 1)
        self.ghosts = ghosts.reshape(-1, d)
        self.recording = Recording(tuple(self.about.get("coordinates", ())))
        self.ended, self.said = False, ""
        self._traces: list[tuple[int, float]] = []  # of the steps for which they were computed
        self.pages: tuple = ()

    def read(self) -> None:
        """Take what comes until the loop ends."""
        while message := get(self._pipe):
            head, values = message
            if "ended" in head:
                self.said = head["ended"]
                break
            self._take(head, values)
        else:
            self.said = "The program of the loop has ended."
        self.ended = True

    def trace_at(self, frame: Seen) -> float | None:
        """Return the last Stein trace that was computed up to a frame, NaN before the first; None if none ever is."""
        if "dim" not in self.about or frame.scales is not None:
            return None
        place = bisect(self._traces, (frame.step, math.inf))
        return self._traces[place - 1][1] if place else math.nan

    def _take(self, head: dict[str, Any], values: np.ndarray) -> None:
        n, d = head["shape"]
        tables = values.reshape(-1, n, d)
        trace = math.nan if head["trace"] is None else head["trace"]
        frame = Seen(head["step"], head["seconds"], tables[0], tables[1] if len(tables) > 1 else None, trace)
        if not self.recording.coordinates:
            self.recording.coordinates = tuple(f"x{i + 1}" for i in range(d))
        if head["trace"] is not None:
            self._traces.append((frame.step, trace))
        self.recording.add(frame)
        for page in self.pages:
            page.take(frame)
