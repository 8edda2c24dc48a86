"""Spec, Knobs and Recipe: what fixes a run. A link, a preset, a sweep's row and a command line are all a Recipe."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from stein_core.common_knobs import COMMON, MAX_CAPACITY
from stein_core.errors import short, unknown
from stein_core.knobs import Knob
from stein_core.registry import GUIDES, METHODS, OPTIMIZERS, TARGETS, Entry
from stein_core.types import Target

MAX_DRAWS = 1000
EDITS = ("add", "remove")  # changes of a run that are not knobs


def capacity_for(particles: int) -> int:
    """Return the smallest capacity (8, 16, 32 ... 4096) that holds `particles`."""
    capacity = 8
    while capacity < particles:
        capacity *= 2
    return capacity


@dataclass(frozen=True)
class Spec:
    """Every choice that forces a compile: frozen, hashable, checked.

    Args:
        target: a registered name, or a Target, which needs no name.
        dim: dimension of the target; None for the target's default.
        method: a registered name.
        guide: a registered name that the method allows; None for the method's default.
        optimizer: a registered name. A method with its own optimiser keeps that.
        draws: Monte Carlo draws per particle and step. Point masses need none and have 1.
        capacity: most particles that the program holds, 1 or even. A single-particle method has 1.

    Raises:
        ValueError: names the field, the value and what is allowed.
    """

    target: str | Target = "oring"
    dim: int | None = None
    method: str = "smi"
    guide: str | None = None
    optimizer: str = "adam"
    draws: int = 10
    capacity: int = 256

    def __post_init__(self):
        target, method = TARGETS[self.target], METHODS[self.method]
        settle = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731  (frozen: the only way in)
        settle("dim", _whole("dim", target.facts.default_dim if self.dim is None else self.dim, *target.facts.dims))
        if target.facts.check_dim:
            target.facts.check_dim(self.dim)
        if self.dim % target.facts.dim_step:
            raise ValueError(f"dim = {self.dim} is odd; allowed for target {self.target!r}: an even number.")
        settle("optimizer", (method.facts.optimizers or (OPTIMIZERS[self.optimizer].name,))[0])
        settle("guide", method.facts.guides[0] if self.guide is None else self.guide)
        if self.guide not in method.facts.guides:
            raise unknown(f"guide for method {self.method!r}:", self.guide, method.facts.guides)
        settle("draws", _whole("draws", self.draws, 1, MAX_DRAWS) if self.has_density else 1)
        capacity = _whole("capacity", self.capacity, 1, MAX_CAPACITY)
        if capacity > 1 and capacity % 2:
            raise ValueError(f"capacity = {capacity} is odd; allowed: 1, 2, 4, 6, ... {MAX_CAPACITY}.")
        settle("capacity", 1 if method.facts.single else capacity)
        # A target that is registered as not sampled need not be built to find out. Building may take seconds.
        if method.facts.exact and (not target.facts.sampled or target_of(self).sample is None):
            raise ValueError(
                f"method {self.method!r} needs exact samples, which target {self.target!r} has not; allowed: a target "
                "with a closed form, 'gaussian' say."
            )

    @property
    def has_density(self) -> bool:
        """Whether each particle is a distribution with a density; False for point masses."""
        return GUIDES[self.guide].facts.has_density

    @property
    def entries(self) -> tuple[Entry, Entry, Entry]:
        """The registered method, guide and target that this spec names now."""
        return METHODS[self.method], GUIDES[self.guide], TARGETS[self.target]

    def knobs(self) -> Mapping[str, Knob]:
        """Return every knob of this spec by its full name, `method.alpha` say, in the order that pages show."""
        return _knobs(*self.entries)


@lru_cache(maxsize=256)
def _knobs(method: Entry, guide: Entry, target: Entry) -> Mapping[str, Knob]:
    groups = (("method", method), ("guide", guide), ("target", target))
    own = [replace(knob, name=f"{group}.{knob.name}") for group, entry in groups for knob in entry.knobs]
    return MappingProxyType({knob.name: knob for knob in (*COMMON, *own)})


@lru_cache(maxsize=64)
def _target(entry, dim: int) -> Target:
    return entry.make(dim, **{knob.name: np.float32(knob.traced(knob.default)) for knob in entry.knobs})


def target_of(spec: Spec) -> Target:
    """Return the spec's target with default knobs. It is built once: a NumPyro model is traced and its mode found."""
    return _target(TARGETS[spec.target], spec.dim)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    return Knob(name, low, low, high, "integer").check(value)


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
            first two coordinates) or "remove" (value: index).

    Raises:
        ValueError: an unknown knob (with the nearest match), a value out of range, or steps out of order.
    """

    spec: Spec = field(default_factory=Spec)
    knobs: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    changes: tuple[tuple[int, str, Any], ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "knobs", knobs_of(self.spec, self.knobs))
        object.__setattr__(self, "seed", _whole("seed", self.seed, 0, 2**32 - 1))
        last, checked, now = 0, [], self.knobs
        for step, name, value in self.changes:
            if step < last:
                raise ValueError(
                    f"changes: step {short(step)} comes after step {short(last)}; allowed: steps in order."
                )
            last = int(step)
            if name == "add":
                try:
                    point = tuple(float(x) for x in value)
                except (TypeError, ValueError, OverflowError):
                    point = (math.nan,)
                if not all(map(math.isfinite, point)):
                    raise ValueError(f"add = {short(value)} is not a point; allowed: finite coordinates.")
                value = point
            elif name == "remove":
                value = _whole("remove", value, 0, MAX_CAPACITY - 1)
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
        spec = {name: getattr(self.spec, name) for name in Spec.__dataclass_fields__}
        return {**spec, "seed": self.seed, "knobs": dict(self.knobs), "changes": [list(c) for c in self.changes]}

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

    def to_python(self, steps: int) -> str:
        """Return a script that runs this recipe for `steps` steps and prints the metrics of the last frame.

        Raises:
            ValueError: the target has no name.
        """
        self._check_named()
        spec = ", ".join(f"{name}={getattr(self.spec, name)!r}" for name in Spec.__dataclass_fields__)
        lines = [f"    {name!r}: {value!r}," for name, value in self.knobs.items()]
        changes = [f"    {change!r}," for change in self.changes]
        return "\n".join(
            ["from stein_core import Recipe, Spec, collect", "", f"spec = Spec({spec})"]
            + (["knobs = {", *lines, "}"] if lines else ["knobs = {}"])
            + (["changes = (  # (step, what, value)", *changes, ")"] if changes else ["changes = ()"])
            + [f"frame = collect(Recipe(spec, knobs, seed={self.seed}, changes=changes), steps={steps})[-1]"]
            + ["print(frame.step, frame.metrics)", ""]
        )

    def _check_named(self):
        if not isinstance(self.spec.target, str):
            raise ValueError(
                f"target = {self.spec.target} has no name that a file could keep; "
                "allowed: a registered name, see TARGETS.register."
            )


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
        """Every knob of the spec as it travels to the device: a float32 scalar, or an array of points."""
        known = self.spec.knobs()
        given = {name: self.get(name, knob.default) for name, knob in known.items()}
        given["method.particles"] = min(given["method.particles"], self.spec.capacity)
        return {name: np.float32(known[name].traced(value)) for name, value in given.items()}


def knobs_of(spec: Spec, values: Mapping[str, Any]) -> Knobs:
    """Return `values` as the Knobs of `spec`. Knobs of this spec are returned as they are.

    Raises:
        ValueError: as Knobs does.
    """
    if isinstance(values, Knobs) and values.spec == spec and values.entries == spec.entries:
        return values
    return Knobs(spec, values)
