"""The default run of page "1-D wave", shipped trained. `python -m app.pages.wave.trained` makes the file."""

from __future__ import annotations

import json
import sys
from datetime import date
from functools import lru_cache
from pathlib import Path

import jax
import numpy as np

from app.pages.wave.setup import STEPS, WaveSetup, shown
from app.server.folders import ASSETS
from stein_core import State, Stepper, compile, keep_compiled
from stein_core.cli.commands import versions
from stein_core.sweep.keys import canonical

SHIPPED = ASSETS / "wave_trained.npz"


def is_shipped(setup: WaveSetup) -> bool:
    """Return whether the file has the state of every method after STEPS steps of this setup."""
    plain = WaveSetup()
    return all(getattr(setup, name) == getattr(plain, name) for name in ("width", "draws", "seed", "knobs", "data"))


def shipped_state(stepper: Stepper, method: str) -> State:
    """Return the state of a method after STEPS steps of the default run."""
    parts, structure = jax.tree.flatten(stepper.reset(0, {}))
    return jax.tree.unflatten(structure, [_file()[f"{method} {i}"] for i in range(len(parts))])


def recipes() -> dict[str, dict]:
    """Return the recipe of each state in the file."""
    return json.loads(str(_file()["about"]))["recipes"]


def recipe_of(method: str) -> dict:
    """Return the recipe of a method in the default run, as JSON keeps it."""
    return json.loads(json.dumps(canonical(WaveSetup(methods=(method,)).recipe(method))))


@lru_cache(maxsize=1)
def _file() -> dict[str, np.ndarray]:
    with np.load(SHIPPED, allow_pickle=False) as file:
        return dict(file)


def make(path: Path) -> None:
    """Train every method of the default run and write the states."""
    keep_compiled()
    setup, parts = WaveSetup(methods=shown()), {}
    for method in shown():
        stepper, knobs = compile(setup.spec(method), look=False), setup.knobs_of(method)
        state = stepper.advance(stepper.reset(setup.seed, knobs), knobs, STEPS)
        if int(state.step) != STEPS:
            raise RuntimeError(f"{method} diverged at step {int(state.step) + 1}")
        parts |= {f"{method} {i}": np.asarray(part) for i, part in enumerate(jax.tree.leaves(state))}
        print(method, flush=True)
    recipes = {method: recipe_of(method) for method in shown()}
    about = {"made": date.today().isoformat(), **versions(), "recipes": recipes}
    np.savez_compressed(path, about=json.dumps(about), **parts)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else SHIPPED)
