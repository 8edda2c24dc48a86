"""The default run of page "1-D wave", shipped trained. `python -m app.pages.wave.trained` makes the file."""

from __future__ import annotations

from app.pages.wave.setup import STEPS, TRAINED, WaveSetup
from app.server.folders import ASSETS
from app.stage.trained import Trained

SHIPPED = Trained(
    lambda method: ASSETS / "wave_trained.npz",
    WaveSetup(methods=TRAINED),
    STEPS,
    ("width", "draws", "seed", "knobs", "data"),
)

if __name__ == "__main__":
    SHIPPED.make()
