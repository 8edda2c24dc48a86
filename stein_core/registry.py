"""Registries: the only lists of what exists.

Everything a user can choose (target, method, guide, kernel, bandwidth rule, optimiser, diagnostic) is a factory
function decorated with its registry. Selects, sliders, command line choices, contract tests and the reference page
are all read from here, so that a new entry is one decorated function and nothing else.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping

import numpy as np

ROWS = (48, 128, 512)  # data are padded to one of these, so that a point more compiles nothing (but the 49th, say)


def short(value: object) -> str:
    """A value as messages repeat it: its beginning, where it is long."""
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def whole(name: str, text: str) -> int:
    """The whole number that a text says; ValueError says what it was for."""
    try:
        return int(text)
    except ValueError:  # also where it has more digits than Python reads
        raise ValueError(f"{name} = {short(text)!r} is not a whole number.") from None


class UnknownName(ValueError):
    """A name that is not registered. The message names the nearest match and all that is allowed."""


def unknown(kind: str, name: object, allowed) -> UnknownName:
    """The error for `name`, which is not among `allowed`, with the nearest match first."""
    near = difflib.get_close_matches(str(name), list(allowed), n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return UnknownName(f"unknown {kind} {short(name)!r}{hint or '.'} Allowed: {', '.join(allowed)}.")


@dataclass(frozen=True)
class Knob:
    """A number (or a choice) that is traced: turning it never compiles.

    `default`, `low`, `high` are in the knob's own unit; `scale` is "linear", "log" (positive), "log0" (log with an
    exact zero at the left end) or "integer". With `choices` the knob is a choice among a registry's names and travels
    to the device as the index of the name.
    """

    name: str
    default: Any
    low: float = -math.inf
    high: float = math.inf
    scale: str = "linear"
    label: str = ""
    help: str = ""
    choices: "Registry | None" = None

    def check(self, value: Any) -> Any:
        """`value` as a float, an int or a registered name; ValueError names the knob, the value and the range."""
        if self.choices is not None:
            return self.choices[value].name
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{self.name} = {short(repr(value))} is not a number; allowed: {self.low:g} to {self.high:g}.") from None
        if not self.low <= number <= self.high:
            raise ValueError(f"{self.name} = {short(value)} is out of range; allowed: {self.low:g} to {self.high:g}.")
        if self.scale == "integer":
            if number != int(number):
                raise ValueError(f"{self.name} = {short(value)} is not a whole number; allowed: {self.low:g} to {self.high:g}.")
            return int(number)
        return number

    def traced(self, value: Any) -> float:
        """The number that travels to the device."""
        value = self.check(value)
        return float(self.choices.index(value)) if self.choices is not None else float(value)


@dataclass(frozen=True)
class PointsKnob(Knob):
    """A knob that is a list of points (x, y): data that can be touched. Its value is a tuple of pairs; it travels to
    the device as rows (x, y, 1), padded with zeros to 48, 128 or 512."""

    def check(self, value: Any) -> tuple[tuple[float, float], ...]:
        """`value` as a tuple of pairs; ValueError says what is wrong and with which point."""
        try:
            points = tuple((float(x), float(y)) for x, y in value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{self.name}: not a list of points; allowed: pairs of numbers (x, y).") from None
        if not 1 <= len(points) <= ROWS[-1]:
            raise ValueError(f"{self.name} has {len(points)} points; allowed: 1 to {ROWS[-1]}.")
        for i, point in enumerate(points):
            if not all(abs(c) <= 1e3 for c in point):
                raise ValueError(f"{self.name}: point {i + 1} is {point}; allowed: coordinates from -1000 to 1000.")
        return points

    def traced(self, value: Any) -> np.ndarray:
        """Points as a program takes them: (rows, 3) with x, y and 1, or 0 where a row is not used."""
        points = self.check(value)
        rows = np.zeros((next(size for size in ROWS if size >= len(points)), 3), np.float32)
        rows[: len(points), :2], rows[: len(points), 2] = points, 1.0
        return rows


@dataclass(frozen=True, eq=False)
class Entry:
    """One registered factory: `make(**settings, **knobs)`; `knobs` may be traced when the runner calls it."""

    name: str
    label: str
    make: Callable
    reference: str
    summary: str
    knobs: tuple[Knob, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


class Registry:
    """An ordered name -> Entry map that is filled by decorating factories.

    >>> KERNELS = Registry("kernel")
    >>> @KERNELS.register("rbf", label="RBF", reference="Liu & Wang 2016")
    ... def rbf(u):
    ...     "exp(-u)."
    """

    def __init__(self, kind: str):
        self.kind = kind
        self._entries: dict[str, Entry] = {}

    def register(self, name: str, *, label: str, reference: str, knobs: tuple[Knob, ...] = (), **facts):
        """Decorate a factory. Its docstring's first line is the summary that pages and `list` show; registering a
        name again replaces it (a notebook cell is run more than once)."""

        def decorate(make):
            if not make.__doc__:
                raise ValueError(f"{self.kind} {name!r} has no docstring; its first line is what users read.")
            summary = " ".join(make.__doc__.strip().split("\n\n")[0].split())
            self._entries[name] = Entry(name, label, make, reference, summary, tuple(knobs), facts)
            return make

        return decorate

    def __getitem__(self, name: Any) -> Entry:
        """The entry of a name. What has an entry of its own, as a Target has, stands for itself."""
        if isinstance(own := getattr(name, "entry", None), Entry):
            return own
        if name not in self:
            raise unknown(self.kind, name, [entry.name for entry in self.listed()])
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name) -> bool:
        return isinstance(name, str) and name in self._entries

    def index(self, name: str) -> int:
        """The position of `name`: what a traced choice knob carries."""
        return list(self._entries).index(self[name].name)

    def entries(self) -> list[Entry]:
        """All of them, in the order in which they came."""
        return list(self._entries.values())

    def listed(self) -> list[Entry]:
        """The entries that pages offer to everybody: all but those with the fact `listed=False`."""
        return [entry for entry in self._entries.values() if entry.facts.get("listed", True)]


TARGETS = Registry("target")
METHODS = Registry("method")
GUIDES = Registry("guide")
KERNELS = Registry("kernel")
BANDWIDTHS = Registry("bandwidth rule")
OPTIMIZERS = Registry("optimizer")
FORCE_SCALES = Registry("force scale")
DIAGNOSTICS = Registry("diagnostic")
