"""The stage: a canvas component that draws particles, forces and read-outs at frame rate."""
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import param
from panel.custom import JSComponent

from stein_core import Frame

HERE = Path(__file__).parent
SCRIPTS = ("reconnect.js", "svg.js", "draw.js", "stage.js")

CSS = """
.stage { position: relative; width: 100%; color: #1c2733; --muted: #5a6675; --line: #dde2e8; }
.stage.dark { color: #e8ecf1; --muted: #9aa7b5; --line: #2c343d; }
.legend { display: block; width: 100%; height: 26px; }
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
.badge, .banner { position: absolute; left: 50%; transform: translateX(-50%); pointer-events: none; }
.badge:empty, .banner:empty { display: none; }
.badge { top: 66px; padding: 3px 12px; border-radius: 12px; font-size: 12px;
  color: #fff; background: #1c2733d0; }
.dark .badge { color: #121417; background: #e8ecf1d0; }
.banner { top: 0; max-width: 90%; padding: 4px 18px; border-radius: 6px; font-size: 13.5px;
  font-weight: 600; color: #fff; background: #b3261e; box-shadow: 0 2px 8px #0006; }
"""


def pack(panels) -> np.ndarray:
    """One frame as a float32 vector; element 0 is left for the `Streamer`.

    panels: list of (step, metrics, rows, has_scale): int, K floats (NaN = not defined), an
    (m, 8) array of x, y, sd_x, sd_y, attract_x, attract_y, repulse_x, repulse_y, and whether
    the sd columns mean something. Positions and sds in the units of the scene's extent; forces
    in any unit, as long as it is the same for all.
    """
    parts = [[0, len(panels)]]
    for step, metrics, rows, has_scale in panels:
        parts += [[len(rows), step, has_scale, len(metrics)], metrics, np.ravel(rows)]
    return np.concatenate(parts).astype(np.float32)


def rows(frame: Frame) -> np.ndarray:
    """What the stage draws of a frame, (m, 8): position, sd, attraction, repulsion in the first two coordinates."""
    d = frame.locations.shape[1]
    flat = np.zeros((len(frame.locations), 4, 2), np.float32)
    for k, values in enumerate((frame.locations, frame.scales, frame.attract[:, :d], frame.repulse[:, :d])):
        flat[:, k, : min(d, 2)] = values[:, :2]
    return flat.reshape(-1, 8)


class Stage(JSComponent):
    """Up to three panels side by side, each with its metric read-outs.

    scene: what stands still. "titles" (one per panel), "extent" [x0, x1, y0, y1], "equal"
        (both axes share a unit), "labels" [x, y], "contours" (flat x, y, x, y ... polylines), "image" ({"width", "height", "data":
        base64 of uint8 shades, bottom row first} or None), "curve" (flat polyline or None) and
        "metrics" ([{"name", "label", "log", "help"}]); lengths in data units.
    on_message: gets every message dict of the browser, on the event loop: {"ready": True},
        {"ack": seq} (and "idle": True in a repetition), {"add": [x, y]}, {"remove": index} or
        {"key": "space" | "left" | "right" | "up" | "down" | "r"}.
    """

    scene = param.Dict(default={})
    show = param.Dict(default={"attract": True, "repulse": True, "trails": False, "guides": True})
    status = param.String(doc="What is going on, as a small badge.")
    alarm = param.String(doc="What went wrong, as a banner.")
    dark = param.Boolean(default=False)

    _esm = "\n".join((HERE / name).read_text() for name in SCRIPTS)
    _stylesheets: ClassVar = [CSS]

    def __init__(self, on_message: Callable[[dict], None] | None = None, **params):
        super().__init__(**{"sizing_mode": "stretch_width", **params})
        self.on_message = on_message

    def send(self, frame: np.ndarray) -> None:
        """Show a frame of `pack`."""
        self._send_msg(frame)

    def export(self, kind: str) -> None:
        """Have the browser download what is on screen, as "png" or "svg"."""
        self._send_msg({"export": kind})

    def copy(self, text: str) -> None:
        """Put text on the user's clipboard."""
        self._send_msg({"copy": text})

    def copy_link(self, query: str) -> None:
        """Put the page's address with this query on the user's clipboard."""
        self._send_msg({"copy_link": query})

    def set_url(self, query: str) -> None:
        """Show "?a=1&b=2" in the address bar, without a reload or a history entry."""
        self._send_msg({"url": query})

    def _handle_msg(self, data) -> None:
        if self.on_message:
            self.on_message(data)
