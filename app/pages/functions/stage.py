"""Stage of page "Function space": curves or maps of every method, and the points, which can be dragged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import param
from panel.custom import JSComponent

from app.pages.functions.nuts import Sampled
from app.pages.functions.seen import BINS, GRID, REACH, SIDE, Line, Ring
from app.pages.functions.setup import FunctionSetup, shown
from app.server.loop import Unbusy
from app.server.messages import CheckedMessages, flag, number, one_of, pairs
from app.ui.colours import looks_of
from app.ui.theme import script
from stein_core import METHODS
from stein_core.targets.small_networks import BLOBS, CLASSES, FAR, ring_data

HERE = Path(__file__).parent
STAGE = HERE.parents[1] / "stage"
SCRIPTS = ("svg.js", "draw.js", "background.js")  # of the stage


def pack(step: int, methods: dict[str, Line | Ring], outline: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
    """Pack one frame as a float32 vector; element 0 is left for the `Streamer`.

    Args:
        step: number of the step.
        methods: name -> what it shows.
        outline: mean and sd of the exact band on the regression; None on the ring.
    """
    parts = [[0, outline is None, step, len(methods)], *(outline or ())]
    for name, seen in methods.items():
        head = [shown().index(name), seen.step, seen.diverged]
        if isinstance(seen, Line):
            parts += [head, [len(seen.curves), len(seen.weights)], seen.mean, seen.sd, seen.curves.ravel()]
            parts += [seen.weights, seen.functions]
        else:
            parts += [head, seen.entropy, seen.disagreement, seen.right, seen.up, seen.histograms.ravel()]
    return np.concatenate(parts).astype(np.float32)


class FunctionStage(Unbusy, CheckedMessages, JSComponent):
    """Draw a panel for each method, and the points that can be dragged in every one of them.

    Args:
        on_message: gets every message of the browser, on the event loop: {"ready": True}, {"ack": seq},
            {"handles": [[x, y], ...]}, {"points": [[x, y], ...]} (moved or deleted) or {"key": name of a
            key}.
    """

    scene = param.Dict(default={})
    points = param.Dict(default={"xy": [], "handles": []})
    nuts = param.Dict(default={}, doc="NUTS's mean and sd on the grid, or nothing.")
    erasing = param.Boolean(default=False, doc="A click or tap on a point deletes it.")
    dark = param.Boolean(default=False)
    lecture = param.Boolean(default=False, doc="Text, lines and dots of twice the size, and no axes.")

    schemas = (
        {"ack": number},
        {"ready": flag},
        {"handles": pairs},
        {"points": pairs},
        {"key": one_of("space", "right", "left", "r", "p")},
    )
    _esm = script(*map(STAGE.joinpath, SCRIPTS), HERE / "functions_draw.js", HERE / "functions.js")

    def __init__(self, on_message: Callable[[dict], None], **params):
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (0, 4), **params})
        self.on_message = on_message
        self._there: tuple = ()  # the points that the browser has

    def show(self, setup: FunctionSetup) -> None:
        """Show panels for this setup, and its points."""
        looks = dict(zip(shown(), looks_of(shown())))
        panels = [
            {
                "name": name,
                "index": shown().index(name),
                "label": METHODS[name].label,
                "colours": [looks[name].colour, looks[name].dark],
            }
            for name in setup.methods
        ]
        scene = {
            "ring": setup.ring,
            "panels": panels,
            "grid": GRID.round(6).tolist(),
            "blobs": [list(b) for b in BLOBS],
        }
        scene |= {"side": SIDE, "reach": REACH, "bins": BINS, "far": FAR[0], "most": float(np.log(CLASSES))}
        if scene != self.scene:
            self.scene = scene
        data = ring_data()[0].round(3).tolist() if setup.ring else [list(p) for p in setup.data]
        now = data, [list(p) for p in setup.points]
        if now != self._there:  # sending the browser's own points back would end a drag
            self._there = now
            self.points = {"xy": data, "handles": now[1], "count": self.points.get("count", 0) + 1}

    def sample(self, found: Sampled | None) -> None:
        """Show NUTS's band, or none."""
        self.nuts = {} if found is None else {"mean": found.mean.tolist(), "sd": found.sd.tolist()}

    def send(self, frame: np.ndarray) -> None:
        """Show a frame that `pack` has made."""
        self._send_msg(frame)

    def export(self, kind: str) -> None:
        """Make the browser download what is on screen, as "png" or "svg"."""
        self._send_msg({"export": kind})

    def handle_message(self, data: dict) -> None:
        for name, place in (("points", 0), ("handles", 1)):
            if name in data:
                there = [[float(x), float(y)] for x, y in data[name]]
                self._there = (there, self._there[1]) if place == 0 else (self._there[0], there)
                data = {name: tuple(map(tuple, there))}
        self.on_message(data)
