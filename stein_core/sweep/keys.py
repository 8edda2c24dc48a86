"""What names a row of a sweep: the hash of its recipe, its stop rule and the files of users' entries."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterable
from uuid import uuid4

from stein_core.base.errors import short
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import DIAGNOSTICS, GUIDES, METHODS, OPTIMIZERS, TARGETS, Entry
from stein_core.sweep.stop import Stop

RESULTS = 3  # part of every key: to be raised when the core's numbers change, so that old rows are not taken for new


def idle_knobs(method: str) -> set[str]:
    """The common knobs that change nothing for a method: nothing interacts, or it has but one particle."""
    facts = METHODS[method].facts
    idle = set() if facts.interacts else {"kernel.name", "bandwidth.rule", "bandwidth.factor"}
    return idle | ({"method.particles"} if facts.single else set())


def canonical(recipe: Recipe) -> dict[str, Any]:
    """Recipe.to_dict with every knob that counts at its own value, default or not, and without the capacity, which
    changes nothing: equal experiments have equal dicts. (An entry that is registered anew keeps its name.)"""
    without = idle_knobs(recipe.spec.method)
    knobs = {k: recipe.knobs.get(k, knob.default) for k, knob in recipe.spec.knobs().items() if k not in without}
    knobs = {k: float(v) if isinstance(v, int) else v for k, v in sorted(knobs.items())}
    plain = {**recipe.to_dict(), "knobs": knobs}  # options that follow from the dimension are not written
    del plain["capacity"]
    return plain


def key_of(recipe: Recipe, stop: Stop) -> str:
    """Return the hash that names a row. If a user's file registered an entry, another text of it gives another hash."""
    sources = [source for entry in entries_in(recipe) if (source := source_of(entry))]
    text = json.dumps([RESULTS, canonical(recipe), asdict(stop), *sources], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def entries_in(recipe: Recipe) -> list[Entry]:
    """The entries that a recipe names: its method, target, guide and optimizer, and its choices."""
    spec, knobs = recipe.spec, recipe.spec.knobs()
    entries = [METHODS[spec.method], TARGETS[spec.target], GUIDES[spec.guide], OPTIMIZERS[spec.optimizer]]
    return entries + [
        knob.choices[recipe.knobs.get(name, knob.default)] for name, knob in knobs.items() if knob.choices
    ]


def files_of(recipes: Iterable[Recipe]) -> list[str]:
    """The files that another process has to import (`--import FILE.py`) before it can run these recipes.

    Raises:
        ValueError: an entry was registered by no file, but in a lesson or at a prompt.
    """
    entries = dict.fromkeys(entry for recipe in recipes for entry in entries_in(recipe))
    files = {}
    for entry in [*entries, *DIAGNOSTICS.entries()]:
        if entry.is_ours:
            continue
        try:
            file = os.path.abspath(inspect.getsourcefile(entry.make) or "")
        except TypeError:  # no function, no class
            file = ""
        if os.path.isfile(file):
            files[file] = None
        elif entry in entries:  # a diagnostic is only left out of the rows
            raise ValueError(
                f"{short(entry.name)!r} was registered by no file, so no other process can run it; allowed: entries "
                "of a file, as `panel serve app --setup FILE.py` has them."
            )
    return list(files)


def is_complete(row: dict[str, Any]) -> bool:
    """Whether a row has every diagnostic of ours: an earlier version may have stored it without the newest."""
    return all(entry.name in row for entry in DIAGNOSTICS.entries() if entry.is_ours)


@lru_cache(maxsize=1024)
def source_of(entry: Entry) -> str:
    """Return the hash of the file that registered an entry, "" for our own. Without a file it is always new."""
    if entry.is_ours:
        return ""
    try:
        return hashlib.sha256(Path(inspect.getsourcefile(entry.make)).read_bytes()).hexdigest()
    except (TypeError, OSError):
        return uuid4().hex
