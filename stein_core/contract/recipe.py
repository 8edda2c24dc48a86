"""Knobs and Recipe: what fixes a run. A link, a preset, a sweep's row and a command line are all a Recipe."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from stein_core.base.errors import short, unknown
from stein_core.contract.facts import MAX_CAPACITY
from stein_core.contract.knobs import precision
from stein_core.contract.registry import METHODS
from stein_core.contract.spec import Spec, whole_number

EDITS = ("add", "remove", "move")  # changes of a run that are not knobs


@dataclass(frozen=True)
class Recipe:
    """One reproducible experiment: spec, knobs, seed, and the changes on the way.

    The same recipe gives the same digits on the same machine and versions. Another capacity, or the batched program of
    a sweep, rounds differently.

    Args:
        spec: the static choices.
        knobs: name -> value, for knobs that differ from their default; a choice is a name.
        seed: 0 to 2^32 - 1.
        changes: (step, name, value) in order of steps. The name is a knob, "add" (value (x, y): a particle at these
            first two coordinates), "remove" (value: index) or "move" (value (index, x, y): that particle goes there).

    Raises:
        ValueError: an unknown knob (with the nearest match), a value out of range, or steps out of order.
    """

    spec: Spec = field(default_factory=Spec)
    knobs: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    changes: tuple[tuple[int, str, Any], ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "knobs", knobs_of(self.spec, self.knobs))
        object.__setattr__(self, "seed", whole_number("seed", self.seed, 0, 2**32 - 1))
        last, checked, now = 0, [], self.knobs
        for step, name, value in self.changes:
            if step < last:
                raise ValueError(
                    f"changes: step {short(step)} comes after step {short(last)}; allowed: steps in order."
                )
            last = int(step)
            if name == "add":
                value = _numbers(value)
                if not all(map(math.isfinite, value)):
                    raise ValueError(f"add = {short(value)} is not a point; allowed: finite coordinates.")
            elif name == "remove":
                value = whole_number("remove", value, 0, MAX_CAPACITY - 1)
            elif name == "move":
                moved = _numbers(value)
                if len(moved) != 3 or not all(map(math.isfinite, moved)):
                    raise ValueError(f"move = {short(value)} is no move; allowed: (index, x, y), finite numbers.")
                value = (whole_number("move", moved[0], 0, MAX_CAPACITY - 1), *moved[1:])
            else:
                now = check_knobs(self.spec, {**now, name: value})
                value = now[name]
            checked.append((last, name, value))
        object.__setattr__(self, "changes", tuple(checked))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types. `Recipe.from_dict` is the inverse.

        Raises:
            ValueError: the target has no name.
        """
        self._check_named()
        return {
            **self._fields(),
            "seed": self.seed,
            "knobs": dict(self.knobs),
            "changes": [list(c) for c in self.changes],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Recipe":
        """Return the Recipe of `to_dict`.

        Raises:
            ValueError: a field that does not exist, or a value that does not fit.
        """
        allowed = (*Spec.__dataclass_fields__, "seed", "knobs", "changes")
        for name in plain:
            if name not in allowed:
                raise unknown("field", name, allowed)
        spec = Spec(**{k: plain[k] for k in Spec.__dataclass_fields__ if k in plain})
        knobs, changes = plain.get("knobs", {}), plain.get("changes", ())
        if not isinstance(knobs, Mapping):
            raise ValueError(f"knobs = {short(repr(knobs))}; allowed: names with values.")
        try:
            changes = tuple((int(s), n, tuple(v) if isinstance(v, list) else v) for s, n, v in changes)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"changes = {short(repr(changes))}; allowed: a list of (step, what, value).") from None
        return cls(spec, knobs, plain.get("seed", 0), changes)

    def to_python(self, steps: int, near: float | None = None) -> str:
        """Return a script that runs this recipe for `steps` steps and prints the metrics of the last frame.

        Args:
            steps: number of steps.
            near: what sums may leave out, see `runner.Stepper`. The script then measures nothing over all pairs.

        Raises:
            ValueError: the target has no name.
        """
        self._check_named()
        spec = ", ".join(f"{name}={value!r}" for name, value in self._fields().items())
        lines = [f"    {name!r}: {value!r}," for name, value in self.knobs.items()]
        changes = [f"    {change!r}," for change in self.changes]
        how = "" if near is None else f", measure=without_pairs(), near={near!r}"
        return "\n".join(
            ["from stein_core import Recipe, Spec, collect"]
            + ["from stein_core.runs.nearness import without_pairs"] * (near is not None)
            + ["", f"spec = Spec({spec})"]
            + (["knobs = {", *lines, "}"] if lines else ["knobs = {}"])
            + (["changes = (  # (step, what, value)", *changes, ")"] if changes else ["changes = ()"])
            + [f"frame = collect(Recipe(spec, knobs, seed={self.seed}, changes=changes), steps={steps}{how})[-1]"]
            + ["print(frame.step, frame.metrics)", ""]
        )

    def _fields(self) -> dict[str, Any]:
        """Return the fields of the Spec in plain types; its options only if other fields do not say them."""
        fields = {name: getattr(self.spec, name) for name in Spec.__dataclass_fields__ if name != "options"}
        try:
            plain = Spec(**fields).options == self.spec.options
        except ValueError:  # the dimension follows from the options
            plain = False
        return fields if plain else {**fields, "options": dict(self.spec.options)}

    def _check_named(self):
        if not isinstance(self.spec.target, str):
            raise ValueError(
                f"target = {self.spec.target} has no name that a file could keep; "
                "allowed: a registered name, see TARGETS.register."
            )


def _numbers(value: Any) -> tuple[float, ...]:
    """Return the numbers of a list, or (NaN,) for what is no list of numbers."""
    try:
        return tuple(float(x) for x in value)
    except (TypeError, ValueError, OverflowError):
        return (math.nan,)


def check_knobs(spec: Spec, knobs: Mapping[str, Any]) -> dict[str, Any]:
    """Return `knobs` with every value checked and in its own type.

    Raises:
        ValueError: an unknown name, a bad value, or more particles than the capacity.
    """
    known = spec.knobs()
    checked = {}
    for name, value in knobs.items():
        if name not in known:
            raise unknown(f"knob for method {spec.method!r}:", name, known)
        checked[name] = known[name].check(value)
    particles = checked.get("method.particles", 1)
    if particles > spec.capacity > 1:
        raise ValueError(f"method.particles = {particles} is more than the capacity; allowed: 1 to {spec.capacity}.")
    check = METHODS[spec.method].facts.check
    if check:
        check(spec, checked)
    return checked


class Knobs(Mapping[str, Any]):
    """Knob values of one Spec, checked once. It reads like the dict that it was made of and cannot be changed.

    Args:
        spec: the Spec whose knobs these are.
        values: name -> value; a choice is a name. A missing knob has its default.

    Raises:
        ValueError: an unknown name, a value out of range, or more particles than the capacity.
    """

    def __init__(self, spec: Spec, values: Mapping[str, Any]):
        self.spec, self.entries = spec, spec.entries
        self._values = check_knobs(spec, values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self):
        return Knobs, (self.spec, self._values)  # checked again: the process that reads it may have other entries

    @cached_property
    def traced(self) -> dict[str, np.ndarray]:
        """Every knob of the spec as it travels to the device: a scalar, or an array of points, in JAX's precision."""
        known = self.spec.knobs()
        given = {name: self.get(name, knob.default) for name, knob in known.items()}
        given["method.particles"] = min(given["method.particles"], self.spec.capacity)
        return {name: np.asarray(known[name].traced(value), precision())[()] for name, value in given.items()}


def knobs_of(spec: Spec, values: Mapping[str, Any]) -> Knobs:
    """Return `values` as the Knobs of `spec`. Knobs of this spec are returned as they are.

    Raises:
        ValueError: as Knobs does.
    """
    if isinstance(values, Knobs) and values.spec == spec and values.entries == spec.entries:
        return values
    return Knobs(spec, values)
