"""Pictures that come with the app: what a stage shows before any program is compiled, and where its run goes on.

`python -m steinlab.keep` makes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from stein_core import State, Stepper
from steinlab.server.folders import ASSETS
from steinlab.stage.setup import Setup

FILE = ASSETS / "stages.npz"


class Kept(NamedTuple):
    """A run at one moment.

    Args:
        scene: what stands still, as `scene` of the view.
        frame: what moves, as `pack` of the view.
        step: of the moment.
        states: method -> the leaves of its state.
        more: what the page shows beside the stage.
    """

    scene: dict
    frame: np.ndarray
    step: int
    states: Mapping[str, list[np.ndarray]]
    more: Any

    def state_of(self, stepper: Stepper) -> State | None:
        """Return the state of a method's program, or None if it has other shapes than this server's."""
        parts, structure = jax.tree.flatten(stepper.reset(0, {}))
        kept = self.states.get(stepper.spec.method, [])
        if [(np.shape(a), np.asarray(a).dtype) for a in parts] != [(b.shape, b.dtype) for b in kept]:
            return None
        return jax.tree.unflatten(structure, kept)

    def begun(self, number: int) -> np.ndarray:
        """Return the frame as the start of the run of this number, see `steinlab.stage.wire.pack`."""
        frame = self.frame.copy()
        frame[2] = number
        return frame


def key_of(page: str, setup: Setup, more: str = "") -> str:
    """Return the key of a run. more: what else makes its picture another one."""
    return f"{page} {setup.to_query()} {more}".strip()


def kept(key: str) -> Kept | None:
    """Return what is kept of a run, or None."""
    about = _about().get(key)
    return _kept(about["name"]) if about else None


def recipes() -> dict[str, tuple[int, list[dict[str, Any]]]]:
    """Return the step and the recipes of every run, by its key."""
    return {key: (about["step"], about["recipes"]) for key, about in _about().items() if "recipes" in about}


@lru_cache(maxsize=1)
def _about() -> dict[str, Any]:
    return json.loads(str(_array("about"))) if FILE.exists() else {}


@lru_cache(maxsize=16)
def _kept(name: str) -> Kept:
    about = json.loads(str(_array(f"{name} about")))
    states = {
        method: [_array(f"{name} {method} {i}") for i in range(count)] for method, count in about["states"].items()
    }
    return Kept(about["scene"], _array(f"{name} frame"), about["step"], states, about["more"])


def _array(name: str) -> np.ndarray:
    with np.load(FILE, allow_pickle=False) as file:  # reads this one alone
        return file[name]
