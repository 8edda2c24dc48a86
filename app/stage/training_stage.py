"""Base of the stages on which networks train: panels of every method on a canvas, with points that can be dragged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import param
from panel.custom import JSComponent

from stein_core import METHODS
from steinlab.server.channel import Heard
from steinlab.server.loop import Unbusy
from steinlab.server.messages import CheckedMessages, flag, number, one_of, pairs
from steinlab.stage.stage import OFFER
from steinlab.ui.colours import looks_of
from steinlab.ui.theme import script

HERE = Path(__file__).parent
SCRIPTS = ("svg.js", "draw.js", "background.js", "film.js", "swatches.js", "training_recorder.js", "panels.js")
SCHEMAS = ({"ready": flag}, {"points": pairs}, {"key": one_of("space", "right", "r")})
ACK = {"ack": number}


def training_script(*own: Path) -> str:
    """Return the script of a stage: what all share, and its own files."""
    return script(*map(HERE.joinpath, SCRIPTS), *own)


class TrainingStage(Unbusy, Heard, CheckedMessages, JSComponent):
    """Draw panels, and take what the user does with their points.

    A subclass says `scene`, `points`, `nuts`, `schemas` and `_esm`.

    Args:
        on_message: gets every message of the browser, on the event loop: {"ready": True}, {"ack": seq, ...},
            {"points": [[x, y], ...]} (the user added, moved or deleted one) or {"key": name of a key}.
    """

    erasing = param.Boolean(default=False, doc="A click or tap on a point deletes it.")
    dark = param.Boolean(default=False)
    lecture = param.Boolean(default=False, doc="Text, lines and dots of twice the size, and no axes.")
    _stylesheets: ClassVar = [OFFER]
    __abstract = True

    def __init__(self, on_message: Callable[[dict], None], **params):
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (0, 4), **params})
        self.on_message = on_message
        self._there: dict[str, list[list[float]]] = {}  # the points that the browser has

    def set_scene(self, scene: dict, **points) -> None:
        """Show a scene, and points if they are not those of the browser: sending its own back would end a drag."""
        if scene != self.scene:
            self.scene = scene
        there = {name: [[float(x), float(y)] for x, y in rows] for name, rows in points.items()}
        if there != self._there:
            self._there = there
            # The count makes the property change after a refused edit too, when the points here have not changed.
            self.points = {**there, "count": self.points.get("count", 0) + 1}

    def send(self, frame: np.ndarray) -> None:
        """Show a frame."""
        self.tell(frame)
        self._send_msg(frame)

    def export(self, kind: str, page: str = "", legend: str = "") -> None:
        """Make the browser download what is on screen, or the run, as `steinlab.stage.stage.Stage.export` does.

        Args:
            kind: "png", "svg", "html" or "webm".
            page: for "html": what `steinlab.stage.replay.training_page` returns.
            legend: for "html" and "webm": of `steinlab.ui.legend.legend`.
        """
        self._send_msg({"export": kind, "page": page, "legend": legend})

    def handle_message(self, data: dict) -> None:
        """Note where the browser has its points, and pass a message on."""
        for message, name in (("points", "xy"), ("handles", "handles")):
            if message in data:
                self._there = {**self._there, name: [[float(x), float(y)] for x, y in data[message]]}
                data = {message: tuple(map(tuple, self._there[name]))}
        self.on_message(data)


def panels_of(methods: tuple[str, ...], shown: tuple[str, ...]) -> list[dict]:
    """Return what a browser must know of the panel of each method.

    Args:
        methods: that are on screen.
        shown: all of the page; frames name a method by its place there.
    """
    looks = dict(zip(shown, looks_of(shown)))
    return [
        {
            "name": name,
            "index": shown.index(name),
            "label": METHODS[name].label,
            "colours": [looks[name].colour, looks[name].dark],
        }
        for name in methods
    ]
