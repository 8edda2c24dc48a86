"""What was seen of a loop: a row for each frame."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

MOST_FRAMES = 2000
MOST_BYTES = 64 * 2**20


class Seen(NamedTuple):
    """Hold one frame of a loop.

    Args:
        step: how many times the loop had shown its particles.
        seconds: since the loop began.
        particles: (n, d).
        scales: (n, d) sds of guides, or None.
        trace: their Stein trace, NaN if it was not computed.
    """

    step: int
    seconds: float
    particles: np.ndarray
    scales: np.ndarray | None = None
    trace: float = np.nan


class Recording:
    """Keep the frames of a loop, in as much memory as is allowed.

    If there are too many, every other one goes: the whole loop stays in reach, at a coarser grain.

    Args:
        coordinates: d names.
    """

    def __init__(self, coordinates: tuple[str, ...]):
        self.coordinates, self.frames = coordinates, ()

    def add(self, frame: Seen) -> None:
        """Add the newest frame. It takes the place of one of the same step."""
        again = self.frames and self.frames[-1].step == frame.step
        frames = (*(self.frames[:-1] if again else self.frames), frame)
        size = frame.particles.nbytes * (1 if frame.scales is None else 2)
        if len(frames) > max(8, min(MOST_FRAMES, MOST_BYTES // size)):
            frames = (*frames[:-1:2], frame)
        self.frames = frames  # a tuple of its own: another thread may be reading the one before

    def arrays(self) -> dict[str, np.ndarray]:
        """Return step (k,), seconds (k,), stein_trace (k,), particles (k, n, d), the names of the d coordinates, and
        scales (k, n, d) if there are any."""
        kept = self.frames
        named = {
            "step": np.array([frame.step for frame in kept]),
            "seconds": np.array([frame.seconds for frame in kept]),
            "stein_trace": np.array([frame.trace for frame in kept]),
            "particles": np.stack([frame.particles for frame in kept]) if kept else np.empty((0, 0, 0), np.float32),
            "coordinates": np.array(self.coordinates),
        }
        if kept and kept[0].scales is not None:
            named["scales"] = np.stack([frame.scales for frame in kept])
        return named

    def save(self, file) -> None:
        """Write the arrays as an .npz: a path, or an open binary file."""
        np.savez_compressed(Path(file) if isinstance(file, str) else file, **self.arrays())
