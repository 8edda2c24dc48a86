"""Stage of page "1-D wave": the bands of every method and network, and the data points, which can be edited."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import param

from stein_core.targets.data.datasets import WAVE_CLUSTERS
from stein_core.targets.wave import GRID, dim_of
from steinlab.pages.wave.measures import Evaluation
from steinlab.pages.wave.nuts import Compared
from steinlab.pages.wave.setup import WaveSetup, shown
from steinlab.server.messages import whole
from steinlab.stage.parts import Part
from steinlab.stage.training_stage import ACK, SCHEMAS, TrainingStage, panels_of, training_script

HERE = Path(__file__).parent


def parts(row: int, step: int, methods: dict[str, Evaluation]) -> list[Part]:
    """Return the parts of one frame of a row; element 0 is left for the `Streamer`.

    Args:
        row: index of the network.
        step: number of the step.
        methods: name -> what it shows.
    """
    found = [Part([0, row, step, len(methods)])]
    for name, seen in methods.items():
        found += [Part([shown().index(name), seen.step, seen.diverged, len(seen.curves)])]
        found += [Part(line, 4, 0.02) for line in (*seen.wide, seen.half.low, seen.half.high, *seen.curves)]
    return found


def title_of(setup: WaveSetup) -> str:
    """Return the title of a network."""
    return f"h = {setup.width}, {dim_of(setup.width):,} weights"


class WaveStage(TrainingStage):
    """Draw a panel for each method and a row for each network. All share axes and data points. An {"ack": seq} also has
    its row."""

    scene = param.Dict(default={})
    points = param.Dict(default={"xy": []})
    nuts = param.List(default=[], doc="Outline of NUTS's band for each row, or None.")

    schemas = (ACK | {"row": whole}, *SCHEMAS)
    _esm = training_script(HERE / "wave_draw.js", HERE / "wave.js")

    def show(self, networks: Sequence[WaveSetup]) -> None:
        """Show panels for these networks and their data."""
        rows = [{"title": title_of(n), "panels": panels_of(n.methods, shown())} for n in networks]
        if len(self.nuts) != len(rows):
            self.nuts = [None] * len(rows)
        scene = {
            "grid": GRID.round(6).tolist(),
            "clusters": [list(c) for c in WAVE_CLUSTERS],
            "labels": ["x", "y" if networks[0].noisy else "f(x)"],
            "rows": rows,
        }
        self.set_scene(scene, xy=networks[0].data)

    def compare(self, found: Sequence[Compared | None]) -> None:
        """Outline NUTS's band in every row, and the means of its chains where they disagree."""
        self.nuts = [one and outline(one) for one in found]


def outline(nuts: Compared) -> dict[str, list]:
    """Return what is drawn of a NUTS reference."""
    where = nuts.disagree
    chains = [np.where(where, chain, np.nan) for chain in nuts.chains] if where.any() else []
    return {
        "low": nuts.wide.low.tolist(),
        "high": nuts.wide.high.tolist(),
        "chains": [chain.tolist() for chain in chains],
    }
