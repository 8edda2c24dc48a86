"""What a run shows, recorded without a browser. The text of the frames is that of `recorder.js`, which reads it."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stein_core import compile
from steinlab.stage.contract import LiveSetup, View
from steinlab.stage.programs import Programs, capacity_of
from steinlab.stage.replay import DATA, replay_page
from steinlab.stage.run import Run

COLUMNS, FINE = 9, 32767  # of a row; the largest number of 16 bits
START = 40  # frames of a run that the length of its arrows is taken from


def run_of(setup: LiveSetup, view: View) -> Run:
    """Return a run at its start, which has been looked at."""
    programs = Programs(setup, capacity_of(setup), view.measured)
    run = Run(setup, [compile(spec, measure=view.measured, **programs.how) for spec in programs.specs])
    run.look(view.measured)
    return run


def again(run: Run, view: View) -> Run:
    """Return the same run at its start."""
    run = Run(run.setup, run.steppers)
    run.look(view.measured)
    return run


def packed(run: Run, view: View) -> np.ndarray:
    """Look at a run, and return its frame."""
    return view.pack(run, [frame.metrics for frame in run.look(view.measured)], 1)


def usual(run: Run, view: View, backgrounds: list[dict]) -> list[dict]:
    """Return the backgrounds with the length of the forces at the start of a run, as the stage measures it. The run
    moves on."""
    found: dict[int, list[float]] = {}
    for _ in range(START):
        run.advance(1)
        panels = view.panels(run, [frame.metrics for frame in run.look(view.measured)])
        for index in {panel.background for panel in panels}:
            rows = np.vstack([panel.rows for panel in panels if panel.background == index])
            lengths = np.hypot(rows[:, [4, 6]], rows[:, [5, 7]])
            if len(some := lengths[(lengths > 0) & np.isfinite(lengths)]):
                found.setdefault(index, []).append(float(np.quantile(some, 0.95)))
    sizes = {index: float(f"{np.median(each):.4g}") for index, each in found.items()}
    return [{**one, "usual": sizes[i]} if i in sizes else one for i, one in enumerate(backgrounds)]


def recorded(
    run: Run, view: View, steps: int, every: int, say: Callable[[int], None] = lambda step: None
) -> tuple[list[np.ndarray], list[str]]:
    """Let a run go on to a step, or to where it diverges.

    Args:
        run: at its start.
        view: what its frames show.
        steps: where it ends.
        every: steps from one frame to the next.
        say: say(step) is called for each frame.

    Returns:
        Its frames, as `steinlab.stage.wire.pack` makes them, that of the start first; and the methods that diverged.
    """
    frames, diverged, last = [packed(run, view)], [], 0
    while run.clock < steps and not diverged:
        goal = min(steps, last + every)
        while run.clock < goal and not diverged:  # a change of the link comes between
            diverged = run.advance(goal - run.clock)
        if run.clock > last:
            frames.append(packed(run, view))
        last = run.clock
        say(last)
    return frames, diverged


def parts_of(frame: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the head of each panel of a frame, with its read-outs and fixed points, and its rows (m, 9)."""
    at = 3
    for _ in range(int(frame[1])):
        count, flags, numbers, points = (int(frame[at + k]) for k in (0, 2, 4, 5))
        rows = at + 6 + numbers + 2 * points
        rows += int(frame[rows]) if flags & 4 else 0  # a density, see `crowd.density`
        end = rows + COLUMNS * count
        yield frame[at:rows], frame[rows:end].reshape(count, COLUMNS)
        at = end


def encoded(frames: Sequence[np.ndarray]) -> dict[str, Any]:
    """Return frames as `encoded` of `recorder.js` does: positions and forces have 16 bits of the largest value in their
    column, as changes from frame to frame."""
    split = [list(parts_of(frame)) for frame in frames]
    panels = max(map(len, split))
    scales = [
        np.max([np.abs(finite(parts[p][1])).max(axis=0) for parts in split if p < len(parts)], axis=0).astype(float)
        for p in range(panels)
    ]
    heads, moves, before = [], [], [np.empty(0, np.int16)] * panels
    for frame, parts in zip(frames, split):
        heads.append(frame[:3])
        for p, (head, rows) in enumerate(parts):
            shares = finite(rows) / np.where(scales[p] > 0, scales[p], 1.0)
            now = np.floor(shares * FINE + 0.5).astype("<i2").T.ravel()
            heads.append(head)
            moves.append(now - before[p] if len(now) == len(before[p]) else now)
            before[p] = now
    head = np.concatenate(heads).astype("<f4")
    low, high = np.concatenate(moves).astype("<i2").view(np.uint8).reshape(-1, 2).T
    data = gzip.compress(head.tobytes() + low.tobytes() + high.tobytes(), mtime=0)
    return {
        "scales": [each.tolist() for each in scales],
        "count": len(frames),
        "heads": len(head),
        "data": base64.b64encode(data).decode(),
    }


def finite(rows: np.ndarray) -> np.ndarray:
    """Return numbers of 64 bits, with 0 in the place of those that are not finite."""
    return np.where(np.isfinite(rows), rows, 0.0).astype(float)


def replay_of(
    frames: Sequence[np.ndarray], scene: dict, marks: Mapping[str, str], show: Mapping[str, bool], dark: bool
) -> str:
    """Return a page that plays frames, as `replayOf` of `recorder.js` does.

    Args:
        frames: of `recorded`.
        scene, marks, show, dark: of `steinlab.stage.stage.Stage`.
    """
    cards = [{**card, "edit": False} for card in scene["cards"]]
    kept = {**encoded(frames), "scene": {**scene, "cards": cards}, "marks": marks, "show": show, "dark": dark}
    text = json.dumps(kept, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    return replay_page().replace(DATA, text, 1)  # the script names it, too
