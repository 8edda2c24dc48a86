"""Runs of the training pages that come with the app, trained: what a page opens with."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stein_core import State, Stepper, compile, keep_compiled
from stein_core.cli.commands import versions
from stein_core.sweep.keys import canonical
from steinlab.stage.training_setup import TrainingSetup


class Trained:
    """The default run of a page after its last step.

    Args:
        file: method -> the file of its state.
        plain: the setup, with every method that is shipped.
        steps: of the run.
        fields: of the setup that another run must share.
        short: keep the optimiser's memory in bfloat16: as wide in range, with three digits.
    """

    def __init__(
        self,
        file: Callable[[str], Path],
        plain: TrainingSetup,
        steps: int,
        fields: tuple[str, ...],
        short: bool = False,
    ):
        self.file, self.plain, self.steps, self.fields, self.short = file, plain, steps, fields, short

    def is_shipped(self, setup: TrainingSetup) -> bool:
        """Return whether a setup is the one of the run, whatever its methods."""
        return all(getattr(setup, name) == getattr(self.plain, name) for name in self.fields)

    def first_step(self, setup: TrainingSetup) -> int:
        """Return the step at which a setup begins: the last one if it is shipped, unless a link asks for another."""
        return self.steps if self.is_shipped(setup) and not 0 < setup.steps < self.steps else 0

    def state(self, stepper: Stepper, method: str) -> State:
        """Return the state of a method after the last step."""
        parts, structure = jax.tree.flatten(stepper.reset(0, {}))
        kept = _read(self.file(method))
        return jax.tree.unflatten(structure, [_long(kept[f"{method} {i}"], part) for i, part in enumerate(parts)])

    def extra(self, method: str, name: str) -> np.ndarray:
        """Return a further array that `make` has written for a method."""
        return _read(self.file(method))[f"{method} {name}"]

    def recipes(self) -> dict[str, dict[str, Any]]:
        """Return the recipe of each state in the files."""
        found: dict[str, dict[str, Any]] = {}
        for method in self.plain.methods:
            found |= json.loads(str(_read(self.file(method))["about"]))["recipes"]
        return found

    def recipe_of(self, method: str) -> dict[str, Any]:
        """Return the recipe of a method in the run, as JSON keeps it."""
        return json.loads(json.dumps(canonical(self.plain.recipe(method))))

    def make(self, extra: Callable[[Stepper, State], dict[str, np.ndarray]] = lambda stepper, state: {}) -> None:
        """Train every method and write the files.

        Args:
            extra: what else is written of a method, by name.
        """
        keep_compiled()
        files: dict[Path, dict[str, np.ndarray]] = {}
        for method in self.plain.methods:
            stepper, knobs = compile(self.plain.spec(method), measure=False), self.plain.knobs_of(method)
            state = stepper.advance(stepper.reset(self.plain.seed, knobs), knobs, self.steps)
            if int(state.step) != self.steps:
                raise RuntimeError(f"{method} diverged at step {int(state.step) + 1}")
            of_file = files.setdefault(self.file(method), {})
            memory = len(jax.tree.leaves(state)) - len(jax.tree.leaves(state.memory))
            for i, part in enumerate(map(np.asarray, jax.tree.leaves(state))):
                of_file[f"{method} {i}"] = _short(part) if self.short and i >= memory else part
            of_file |= {f"{method} {name}": values for name, values in extra(stepper, state).items()}
            print(method, flush=True)
        for path, parts in files.items():
            recipes = {method: self.recipe_of(method) for method in self.plain.methods if self.file(method) == path}
            about = {"made": date.today().isoformat(), **versions(), "recipes": recipes}
            np.savez_compressed(path, about=json.dumps(about), **parts)
        _read.cache_clear()


@lru_cache(maxsize=4)
def _read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def _short(part: np.ndarray) -> np.ndarray:
    """Return floats as the bits of bfloat16, other arrays unchanged."""
    return part.astype(jnp.bfloat16).view(np.uint16) if part.dtype.kind == "f" else part


def _long(kept: np.ndarray, like: Any) -> np.ndarray:
    """Return what `_short` was given."""
    floats = np.asarray(like).dtype.kind == "f" and kept.dtype == np.uint16
    return kept.view(jnp.bfloat16).astype(np.float32) if floats else kept
