"""Stage of page "1-D wave": the bands of every method and network, and the data points, which can be edited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import param
from panel.custom import JSComponent

from app.pages.wave.measures import Evaluation
from app.pages.wave.nuts import Compared
from app.pages.wave.setup import WaveSetup, label_of, shown
from app.server.loop import Unbusy
from app.server.messages import CheckedMessages, flag, number, one_of, pairs, whole
from app.ui.colours import looks_of
from app.ui.theme import script
from stein_core.targets.data.datasets import WAVE_CLUSTERS
from stein_core.targets.wave import GRID, dim_of

HERE = Path(__file__).parent
STAGE = HERE.parents[1] / "stage"
SCRIPTS = ("svg.js", "draw.js", "background.js")  # of the stage


def pack(row: int, step: int, methods: dict[str, Evaluation]) -> np.ndarray:
    """Pack one frame of a row as a float32 vector; element 0 is left for the `Streamer`.

    Args:
        row: index of the network.
        step: number of the step.
        methods: name -> what it shows.
    """
    parts = [[0, row, step, len(methods)]]
    for name, seen in methods.items():
        parts += [[shown().index(name), seen.step, seen.diverged, len(seen.curves)]]
        parts += [*seen.wide, seen.half.low, seen.half.high, np.ravel(seen.curves)]
    return np.concatenate(parts).astype(np.float32)


def title_of(setup: WaveSetup) -> str:
    """Return the title of a network."""
    return f"h = {setup.width}, {dim_of(setup.width):,} weights"


class WaveStage(Unbusy, CheckedMessages, JSComponent):
    """Draw a panel for each method and a row for each network. All share axes and data points.

    Args:
        on_message: gets every message of the browser, on the event loop: {"ready": True}, {"ack": seq, "row": row},
            {"points": [[x, y], ...]} (the user added, moved or deleted one) or {"key": name of a key}.
    """

    scene = param.Dict(default={})
    points = param.Dict(default={"xy": []})
    nuts = param.List(default=[], doc="Outline of NUTS's band for each row, or None.")
    erasing = param.Boolean(default=False, doc="A click or tap on a point deletes it.")
    dark = param.Boolean(default=False)
    lecture = param.Boolean(default=False, doc="Text, lines and dots of twice the size, and no axes.")

    schemas = (
        {"ack": number, "row": whole},
        {"ready": flag},
        {"points": pairs},
        {"key": one_of("space", "right", "left", "r", "p")},
    )
    _esm = script(*map(STAGE.joinpath, SCRIPTS), HERE / "wave_draw.js", HERE / "wave.js")

    def __init__(self, on_message: Callable[[dict], None], **params):
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (0, 4), **params})
        self.on_message = on_message
        self._there: list[tuple[float, float]] = []  # the points that the browser has

    def show(self, networks: Sequence[WaveSetup]) -> None:
        """Show panels for these networks and their data."""
        looks = dict(zip(shown(), looks_of(shown())))

        def panel(name):
            colours = [looks[name].colour, looks[name].dark]
            return {"name": name, "index": shown().index(name), "label": label_of(name), "colours": colours}

        rows = [{"title": title_of(n), "panels": [panel(name) for name in n.methods]} for n in networks]
        labels = ["x", "y" if networks[0].noisy else "f(x)"]
        scene = {
            "grid": GRID.round(6).tolist(),
            "clusters": [list(c) for c in WAVE_CLUSTERS],
            "labels": labels,
            "rows": rows,
        }
        if len(self.nuts) != len(rows):
            self.nuts = [None] * len(rows)
        if scene != self.scene:
            self.scene = scene
        if list(networks[0].data) != self._there:  # sending the browser's own points back would end a drag
            self._there = list(networks[0].data)
            # The count makes the property change after a refused edit too, when the points here have not changed.
            self.points = {"xy": [list(p) for p in self._there], "count": self.points.get("count", 0) + 1}

    def compare(self, found: Sequence[Compared | None]) -> None:
        """Outline NUTS's band in every row, and the means of its chains where they disagree."""
        self.nuts = [one and outline(one) for one in found]

    def send(self, frame: np.ndarray) -> None:
        """Show a frame that `pack` has made."""
        self._send_msg(frame)

    def export(self, kind: str) -> None:
        """Make the browser download what is on screen, as "png" or "svg"."""
        self._send_msg({"export": kind})

    def handle_message(self, data: dict) -> None:
        if "points" in data:
            self._there = [(float(x), float(y)) for x, y in data["points"]]
            data = {"points": self._there}
        self.on_message(data)


def outline(nuts: Compared) -> dict[str, list]:
    """Return what is drawn of a NUTS reference."""
    where = nuts.disagree
    chains = [np.where(where, chain, np.nan) for chain in nuts.chains] if where.any() else []
    return {
        "low": nuts.wide.low.tolist(),
        "high": nuts.wide.high.tolist(),
        "chains": [chain.tolist() for chain in chains],
    }
