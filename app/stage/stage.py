"""The stage: a canvas that draws particles, forces and read-outs at frame rate."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import param
from panel.custom import JSComponent

from app.server.loop import Unbusy
from app.server.messages import CheckedMessages, flag, number, one_of, point, whole
from app.ui.theme import script

HERE = Path(__file__).parent
SCRIPTS = ("svg.js", "draw.js", "background.js", "stage.js")

CSS = """
.stage { position: relative; width: 100%; color: #1c2733; --muted: #5a6675; --line: #dde2e8; }
.stage.dark { color: #e8ecf1; --muted: #9aa7b5; --line: #2c343d; }
.legend { display: block; width: 100%; }
.deck { display: grid; gap: 16px; }
.plot { display: block; width: 100%; cursor: crosshair; touch-action: manipulation; }
.metrics { display: grid; grid-template-columns: repeat(auto-fit, minmax(98px, 1fr));
  gap: 4px 14px; margin: 6px 8px 0 46px; }
.metric { display: grid; grid-template-columns: auto minmax(24px, 1fr); align-items: center;
  column-gap: 8px; border-top: 1px solid var(--line); padding-top: 3px; }
.label { grid-column: 1 / -1; font-size: 11.5px; color: var(--muted);
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.value { font-size: 14px; font-weight: 600; font-variant-numeric: tabular-nums; min-width: 4.4em; }
.spark { width: 100%; height: 20px; }
.waiting .deck { opacity: 0.35; }
.badge, .banner { position: absolute; left: 50%; transform: translateX(-50%); pointer-events: none; }
.badge:empty, .banner:empty { display: none; }
.badge { top: 66px; padding: 3px 12px; border-radius: 12px; font-size: 12px;
  color: #fff; background: #1c2733d0; }
.dark .badge { color: #121417; background: #e8ecf1d0; }
.banner { top: 0; max-width: 90%; padding: 4px 18px; border-radius: 6px; font-size: 13.5px;
  font-weight: 600; color: #fff; background: #b3261e; box-shadow: 0 2px 8px #0006; }
"""


class Stage(Unbusy, CheckedMessages, JSComponent):
    """Draw up to three cards side by side, each with its read-outs.

    Cards over one background share the scale of their arrows.

    Args:
        on_message: gets every message of the browser, on the event loop: {"ready": True}, {"ack": seq},
            {"add": [x, y]}, {"remove": index} or {"key": "space" | "left" | "right" | "up" | "down" | "r"}.
        scene: what does not move, {"cards": [...], "backgrounds": [...]}.

    A card is a dict of
        title: text.
        background: index of its first background.
        accent: [its colour on a light page, on a dark one].
        edit: whether a click adds a particle.
        note: text in its middle, or "".
        metrics: [{"name", "label", "log", "help"}] of its read-outs.

    A background is a dict, with lengths in data units, of
        extent: [x0, x1, y0, y1]; it widens if particles leave it.
        equal: whether both axes share a unit.
        labels: [x, y].
        contours: polylines, each flat: x, y, x, y ...
        image: {"width", "height", "data": base64 of uint8 shades, bottom row first} or None.
        curve: a flat polyline, or None.
    """

    scene = param.Dict(default={})
    show = param.Dict(default={"attract": True, "repulse": True, "trails": False, "guides": True})
    starting = param.Integer(doc="Number of the newest run, as in `pack`; earlier runs are cleared.")
    status = param.String(doc="Present activity, as a small badge.")
    alarm = param.String(doc="What went wrong, as a banner.")
    embedded = param.Boolean(
        default=False, doc="Part of a longer page: it ignores the keyboard and pauses while it is out of sight."
    )
    dark = param.Boolean(default=False)
    lit = param.Selector(default="", objects=["", "attract", "repulse"])

    schemas = (
        {"ack": number},
        {"ready": flag},
        {"add": point},
        {"remove": whole},
        {"key": one_of("space", "left", "right", "up", "down", "r")},
    )
    _esm = script(*map(HERE.joinpath, SCRIPTS))
    _stylesheets: ClassVar = [CSS]

    def __init__(self, on_message: Callable[[dict], None] | None = None, **params):
        super().__init__(**{"sizing_mode": "stretch_width", **params})
        self.on_message = on_message

    def send(self, frame: np.ndarray) -> None:
        """Show a frame that `pack` has made."""
        self._send_msg(frame)

    def fit(self) -> None:
        """Make the arrows that are on screen as long as those at the start of a run."""
        self._send_msg({"fit": True})

    def export(self, kind: str) -> None:
        """Make the browser download what is on screen, as "png" or "svg"."""
        self._send_msg({"export": kind})

    def handle_message(self, data) -> None:
        if self.on_message:
            self.on_message(data)
