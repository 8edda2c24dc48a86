"""What a training shows, recorded without a browser. The text of the frames is that of `training_recorder.js`, which
reads it."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from steinlab.stage.parts import Part
from steinlab.stage.replay import DATA, training_page
from steinlab.stage.training import Training
from steinlab.stage.training_stage import TrainingStage

MOST = 2**22  # of a number in its unit: three bytes hold each change


def recorded(
    sessions: Sequence[Training], steps: int, every: int, say: Callable[[int], None] = lambda step: None
) -> tuple[list[list[Part]], dict[str, int]]:
    """Train from the start.

    Args:
        sessions: one for each row of the page, of which none has been woken.
        steps: where training ends.
        every: steps from one frame to the next.
        say: say(step) is called for each moment.

    Returns:
        The frames, those of the start first, and the methods that diverged with their last step.
    """
    for session in sessions:
        session.begin_here()
    frames, lost = [], {}
    for step in (0, *range(every, steps, every), steps):
        for session in sessions:
            frames.append(session.look_at(step))
            lost |= session.diverged
        say(step)
    return frames, lost


def encoded(frames: Sequence[Sequence[Part]]) -> dict[str, Any]:
    """Return frames as `encoded` of `training_recorder.js` does: whole numbers of units, as changes between frames."""
    layouts, order, before, moves = [], [], {}, []
    for frame in frames:
        layout = [int(frame[0].numbers[1]), [[len(part.numbers), part.every, part.unit] for part in frame]]
        if layout not in layouts:
            layouts.append(layout)
        order.append(layouts.index(layout))
        now = np.concatenate([units(part) for part in frame])
        change = now - before.get(order[-1], 0)
        moves.append(np.where(change < 0, -2 * change - 1, 2 * change))
        before[order[-1]] = now
    planes = np.concatenate(moves).astype("<u4").view(np.uint8).reshape(-1, 4).T[:3]
    data = gzip.compress(planes.tobytes(), mtime=0)
    return {"layouts": layouts, "order": order, "data": base64.b64encode(data).decode()}


def units(part: Part) -> np.ndarray:
    """Return what a replay keeps of a part; 0 in the place of what is not finite."""
    kept = np.asarray(part.numbers, float)[:: part.every] / part.unit
    return np.clip(np.floor(np.where(np.isfinite(kept), kept, 0.0) + 0.5), -MOST, MOST).astype(np.int64)


def replay_of(frames: Sequence[Sequence[Part]], stage: TrainingStage, legend: str, dark: bool) -> str:
    """Return a page that plays frames, as `replayOf` of `training_recorder.js` does.

    Args:
        frames: of `recorded`.
        stage: has the scene, the points and NUTS's bands.
        legend: of `steinlab.ui.legend.legend`.
        dark: the theme.
    """
    still = {"scene": stage.scene, "points": stage.points, "nuts": stage.nuts}
    kept = {**encoded(frames), **_finite(still), "legend": legend, "dark": dark}
    text = json.dumps(kept, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    return training_page(type(stage)).replace(DATA, text, 1)


def _finite(value: Any) -> Any:
    """Return what JSON can hold, with None in the place of numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
