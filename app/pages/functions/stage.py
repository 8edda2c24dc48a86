"""Stage of page "Function space": curves or maps of every method, and the points, which can be dragged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import param

from stein_core.targets.small_networks import BLOBS, CLASSES, FAR, ring_data
from steinlab.pages.functions.nuts import Sampled
from steinlab.pages.functions.seen import BINS, GRID, REACH, SIDE, Line, Ring
from steinlab.pages.functions.setup import FunctionSetup, shown
from steinlab.server.messages import pairs
from steinlab.stage.parts import Part
from steinlab.stage.training_stage import ACK, SCHEMAS, TrainingStage, panels_of, training_script

HERE = Path(__file__).parent


def parts(step: int, methods: dict[str, Line | Ring], outline: tuple[np.ndarray, np.ndarray] | None) -> list[Part]:
    """Return the parts of one frame; element 0 is left for the `Streamer`.

    Args:
        step: number of the step.
        methods: name -> what it shows.
        outline: mean and sd of the exact band on the regression; None on the ring.
    """
    found = [Part([0, outline is None, step, len(methods)]), *(Part(line, 5, 0.04) for line in outline or ())]
    for name, seen in methods.items():
        found += [Part([shown().index(name), seen.step, seen.diverged])]
        if isinstance(seen, Line):
            found += [Part([len(seen.curves), len(seen.weights)])]
            found += [Part(line, 5, 0.04) for line in (seen.mean, seen.sd, *seen.curves)]
            found += [Part(seen.weights, 1, 0.25), Part(seen.functions, 1, 0.1)]
        else:
            found += [Part(seen.entropy, 2, 0.1), Part(seen.disagreement, 2, 0.04)]
            found += [Part(borders, 1, 0.1) for borders in (seen.right, seen.up)]
            found += [Part(shares, 1, 0.01) for shares in seen.histograms]
    return found


class FunctionStage(TrainingStage):
    """Draw a panel for each method, and the points that can be dragged in every one of them. A further message is
    {"handles": [[x, y], ...]} (added, moved or deleted)."""

    scene = param.Dict(default={})
    points = param.Dict(default={"xy": [], "handles": []})
    nuts = param.Dict(default={}, doc="NUTS's mean and sd on the grid, or nothing.")

    schemas = (ACK, {"handles": pairs}, *SCHEMAS)
    _esm = training_script(HERE / "functions_draw.js", HERE / "functions.js")

    def show(self, setup: FunctionSetup) -> None:
        """Show panels for this setup, and its points."""
        scene = {
            "ring": setup.ring,
            "panels": panels_of(setup.methods, shown()),
            "grid": GRID.round(6).tolist(),
            "blobs": [list(b) for b in BLOBS],
            "side": SIDE,
            "reach": REACH,
            "bins": BINS,
            "far": FAR[0],
            "most": float(np.log(CLASSES)),
        }
        self.set_scene(scene, xy=ring_data()[0].round(3) if setup.ring else setup.data, handles=setup.points)

    def sample(self, found: Sampled | None) -> None:
        """Show NUTS's band, or none."""
        self.nuts = {} if found is None else {"mean": found.mean.tolist(), "sd": found.sd.tolist()}
