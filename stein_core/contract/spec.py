"""Spec: every choice of a run that forces a compile, and the Target that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from stein_core.base.errors import unknown
from stein_core.contract.common_knobs import COMMON
from stein_core.contract.facts import MAX_CAPACITY
from stein_core.contract.knobs import Knob, Option, precision
from stein_core.contract.registry import GUIDES, METHODS, OPTIMIZERS, TARGETS, Entry
from stein_core.contract.target import Target

MAX_DRAWS = 1000
GROUPS = ("method", "guide", "target")  # of options and knobs, in the order of `Spec.entries`


def capacity_for(particles: int) -> int:
    """Return the smallest capacity (8, 16, 32 ...) that holds `particles`."""
    capacity = 8
    while capacity < particles:
        capacity *= 2
    return capacity


class Options(Mapping[str, Any]):
    """Values of options by name. It reads like a dict, cannot be changed, and can be a key."""

    def __init__(self, values: Mapping[str, Any] = MappingProxyType({})):
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return repr(self._values)


@dataclass(frozen=True)
class Spec:
    """Every choice that forces a compile: frozen, hashable, checked.

    Args:
        target: a registered name, or a Target, which needs no name.
        dim: dimension of the target; None for the target's default.
        method: a registered name.
        guide: a registered name that the method allows; None for the method's default.
        optimizer: a registered name; None for the method's own, or Adam.
        draws: Monte Carlo draws per particle and step. Point masses need none and have 1.
        capacity: most particles that the program holds, 1 or even. A single-particle method has 1.
        options: full name -> value, for example "target.width", of the options of the entries. A missing one has its
            default. If the dimension follows from them, they may be left out and follow from the dimension.

    Raises:
        ValueError: names the field, the value and what is allowed. `Spec.fitting` drops what does not fit instead.
    """

    target: str | Target = "oring"
    dim: int | None = None
    method: str = "smi"
    guide: str | None = None
    optimizer: str | None = None
    draws: int = 10
    capacity: int = 256
    options: Mapping[str, Any] = Options()

    def __post_init__(self):
        settle = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731  (frozen: the only way in)
        chosen = dict(self.options)
        for group, registry in (("target", TARGETS), ("method", METHODS), ("guide", GUIDES)):
            name, of_name = registry.present(getattr(self, group))
            settle(group, name)
            chosen |= {f"{group}.{option}": value for option, value in of_name.items()}
        target, method = TARGETS[self.target], METHODS[self.method]
        allowed = method.facts.optimizers or ("adam", *OPTIMIZERS)
        settle("optimizer", allowed[0] if self.optimizer is None else OPTIMIZERS[self.optimizer].name)
        if self.optimizer not in allowed:
            raise unknown(f"optimizer for method {self.method!r}:", self.optimizer, allowed)
        settle("guide", method.facts.guides[0] if self.guide is None else self.guide)
        if self.guide not in method.facts.guides:
            raise unknown(f"guide for method {self.method!r}:", self.guide, method.facts.guides)
        settle("options", self._checked(chosen))
        default = target.facts.dim_of(**self.options_of("target")) if target.facts.dim_of else target.facts.default_dim
        settle("dim", whole_number("dim", default if self.dim is None else self.dim, *target.facts.dims))
        if target.facts.dim_of and self.dim != default:
            raise ValueError(f"dim = {self.dim} does not go with {dict(self.options)}; allowed: {default}, or no dim.")
        if self.dim % target.facts.dim_step:
            step = target.facts.dim_step
            near = {max(self.dim // step, 1) * step, min(self.dim // step + 1, target.facts.dims[1] // step) * step}
            raise ValueError(
                f"dim = {self.dim} is no multiple of {step}; nearest for target {self.target!r}: "
                f"{' or '.join(map(str, sorted(near)))}."
            )
        settle("draws", whole_number("draws", self.draws, 1, MAX_DRAWS) if self.has_density else 1)
        capacity = whole_number("capacity", self.capacity, 1, MAX_CAPACITY)
        if capacity > 1 and capacity % 2:
            raise ValueError(f"capacity = {capacity} is odd; allowed: 1, 2, 4, 6, ... {MAX_CAPACITY}.")
        if not method.facts.single and capacity > method.facts.largest:
            raise ValueError(
                f"capacity = {capacity} is too many for method {self.method!r}, which forms arrays of all pairs of "
                f"particles; allowed: 1, 2, 4, 6, ... {method.facts.largest}."
            )
        settle("capacity", 1 if method.facts.single else capacity)
        # A target that is registered as not sampled need not be built to find out. Building may take seconds.
        if method.facts.exact and (not target.facts.sampled or target_of(self).truth.sample is None):
            raise ValueError(
                f"method {self.method!r} needs exact samples, which target {self.target!r} has not; allowed: a target "
                "with a closed form, for example 'gaussian'."
            )

    def _checked(self, chosen: dict[str, Any]) -> Options:
        """Return every option of the entries."""
        known = _options(*self.entries)
        for name in chosen:
            if name not in known:
                raise unknown("option", name, known)
        chosen = {**options_of_dim(TARGETS[self.target], self.dim, chosen), **chosen}
        return Options({name: option.check(chosen.get(name, option.default)) for name, option in known.items()})

    @classmethod
    def fitting(cls, **fields: Any) -> Spec:
        """Return a Spec without what does not fit: options that its entries lack, or that the dimension says otherwise,
        and a guide or an optimiser that its method does not allow.

        Args:
            fields: of a Spec.

        Raises:
            ValueError: as a Spec does, but for what is dropped.
        """
        method, target = METHODS[fields.get("method", cls.method)], TARGETS[fields.get("target", cls.target)]
        allowed = {"guide": (GUIDES, method.facts.guides), "optimizer": (OPTIMIZERS, method.facts.optimizers)}
        for name, (registry, names) in allowed.items():
            given = fields.get(name) or None
            fields[name] = given if given and registry[given].name in (names or registry) else None
        known = _options(method, GUIDES[fields["guide"] or method.facts.guides[0]], target)
        chosen = {name: value for name, value in fields.get("options", {}).items() if name in known}
        return cls(**fields | {"options": chosen | options_of_dim(target, fields.get("dim"), chosen)})

    def carried_to(self, **changes: Any) -> Spec:
        """Return this Spec with other fields. What does not fit them is dropped, see `fitting`."""
        return Spec.fitting(**{name: getattr(self, name) for name in Spec.__dataclass_fields__} | changes)

    def options_of(self, group: str) -> dict[str, Any]:
        """Return the options of "method", "guide" or "target" by their short names."""
        return {name.split(".")[1]: value for name, value in self.options.items() if name.startswith(f"{group}.")}

    @property
    def has_density(self) -> bool:
        """Whether each particle is a distribution with a density; False for point masses."""
        return GUIDES[self.guide].facts.has_density

    @property
    def entries(self) -> tuple[Entry, Entry, Entry]:
        """The registered method, guide and target that this spec names now."""
        return METHODS[self.method], GUIDES[self.guide], TARGETS[self.target]

    def knobs(self) -> Mapping[str, Knob]:
        """Return every knob of this spec by its full name, for example `method.alpha`, in the order that pages show."""
        return _knobs(*self.entries)


def _options(*entries: Entry) -> dict[str, Option]:
    """Return every option of a method, a guide and a target by its full name."""
    return {f"{group}.{option.name}": option for group, entry in zip(GROUPS, entries) for option in entry.options}


@lru_cache(maxsize=256)
def _knobs(method: Entry, guide: Entry, target: Entry) -> Mapping[str, Knob]:
    groups = zip(GROUPS, (method, guide, target))
    own = [replace(knob, name=f"{group}.{knob.name}") for group, entry in groups for knob in entry.knobs]
    return MappingProxyType({knob.name: knob for knob in (*COMMON, *own)})


@lru_cache(maxsize=64)
def _target(entry, dim: int, options: Options, real: np.dtype) -> Target:
    own = {knob.name: np.asarray(knob.traced(knob.default), real)[()] for knob in entry.knobs}
    if entry.facts.data:
        own["data"] = _data(entry, options, real)
    return entry.make(dim, **options, **own)


@lru_cache(maxsize=64)
def _data(entry: Entry, options: Options, real: np.dtype) -> Any:
    return jax.device_put(entry.facts.data(**options))


def data_of(spec: Spec) -> Any:
    """Return the data of the spec's target on the device, once for all its programs; None if it takes none."""
    entry = TARGETS[spec.target]
    return _data(entry, Options(spec.options_of("target")), precision()) if entry.facts.data else None


def target_of(spec: Spec) -> Target:
    """Return the spec's target with default knobs. It is built once: a NumPyro model is traced and its mode found."""
    return _target(TARGETS[spec.target], spec.dim, Options(spec.options_of("target")), precision())


def target_at(spec: Spec, knobs: Mapping[str, Any], data: Any = None) -> Target:
    """Return the spec's target with these knobs, and its defaults for the others.

    Args:
        spec: names the target.
        knobs: full name -> value, checked or traced; what is not the target's is ignored.
        data: of the target, if they are an argument of a program; None: those on the device.
    """
    if not knobs and data is None:
        return target_of(spec)
    entry = TARGETS[spec.target]
    own = {knob.name: knobs.get(f"target.{knob.name}", knob.default) for knob in entry.knobs}
    if entry.facts.data:
        own["data"] = data_of(spec) if data is None else data
    return entry.make(spec.dim, **spec.options_of("target"), **own) if own else target_of(spec)


def options_of_dim(target: Entry, dim: int | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the dimension says of a target, by full name: none for most targets, or if it is None.

    Args:
        target: the entry.
        dim: dimension that was asked for.
        options: full name -> value, on which the others may depend.
    """
    if target.facts.options_of is None or dim is None:
        return {}
    given = {name.split(".")[1]: value for name, value in options.items() if name.startswith("target.")}
    return {f"target.{name}": value for name, value in target.facts.options_of(dim, **given).items()}


def all_options(target: str | None = None) -> dict[str, Option]:
    """Return every option of any target, guide or method by its full name. If several have one name, it is that of
    `target`."""
    own = () if target is None else (TARGETS[target],)
    return {
        f"{registry.kind}.{option.name}": option
        for registry in (TARGETS, GUIDES, METHODS)
        for entry in (*registry.entries(), *(own if registry is TARGETS else ()))
        for option in entry.options
    }


def whole_number(name: str, value: Any, low: int, high: int) -> int:
    """Return `value` as an int.

    Raises:
        ValueError: it is no whole number from `low` to `high`; the message calls it `name`.
    """
    return Knob(name, low, low, high, "integer").check(value)
