"""What a Session asks of a page: a setup that it runs, and a view that it fills."""

from __future__ import annotations

from typing import Any, Mapping, Protocol, Sequence

import numpy as np

from stein_core import Spec
from steinlab.stage.run import Run


class LiveSetup(Protocol):
    """What a page shows, as a frozen dataclass, for example `steinlab.stage.setup.Setup`.

    A run begins with `knobs` and `seed`, makes `changes` (step, name, value) on the way, and pauses at `steps`, when
    that is not 0. particles: the most that it ever asks for. near: kernel values that sums of many particles may leave
    out, or None.
    """

    methods: tuple[str, ...]
    seed: int
    knobs: Mapping[str, Any]
    changes: tuple[tuple[int, str, Any], ...]
    steps: int
    particles: int
    near: float | None

    def near_of(self, capacity: int) -> float | None: ...

    def spec(self, method: str, capacity: int) -> Spec: ...


class View(Protocol):
    """What a session shows, for example `steinlab.stage.scene.SideBySide`.

    measured: names of the diagnostics that it reads.
    """

    measured: tuple[str, ...]

    def scene(self, specs: Sequence[Spec], knobs: Mapping[str, Any] = {}) -> dict:
        """Return what stands still with these knobs, all by their full names. A scene thread calls it."""

    def pack(self, run: Run, metrics: Sequence[Mapping[str, float]], begun: int) -> np.ndarray:
        """Return what moves, of `run.frames`, as a float32 vector whose element 0 is the Streamer's. begun: a number
        that changes with each run. Of a run that still compiles there are only frames, steppers and knobs."""
