"""Knobs: the numbers and choices of a run that are traced, so that turning one never compiles. Options: those that are
static."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np

from stein_core.base.errors import short, unknown

ROWS = (48, 128, 512)  # sizes to which data are padded: only crossing one recompiles


def precision() -> np.dtype:
    """Return the type of the floats in which JAX computes now: float64 if `jax_enable_x64` is on, else float32."""
    return np.dtype(jnp.result_type(float))


class Choices(Protocol):
    """What a knob needs of a registry."""

    def __getitem__(self, name: Any) -> Any: ...

    def index(self, name: str) -> int: ...


@dataclass(frozen=True)
class Knob:
    """A traced number or choice: turning it never compiles.

    Args:
        name: its key, without the group.
        default: value without a choice, in the knob's own unit.
        low, high: least and largest value.
        scale: "linear", "log" (positive), "log0" (log, with an exact zero at the left end) or "integer".
        label, help: texts of pages.
        choices: a registry. The knob is then a choice of a name, and its traced value is the index of the name.
    """

    name: str
    default: Any
    low: float = -math.inf
    high: float = math.inf
    scale: str = "linear"
    label: str = ""
    help: str = ""
    choices: Choices | None = None

    def check(self, value: Any) -> Any:
        """Return `value` as a float, an int or a registered name.

        Raises:
            ValueError: names the knob, the value and the range.
        """
        if self.choices is not None:
            return self.choices[value].name
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"{self.name} = {short(repr(value))} is not a number; allowed: {self.low:g} to {self.high:.10g}."
            ) from None
        if not self.low <= number <= self.high:
            raise ValueError(
                f"{self.name} = {short(value)} is out of range; allowed: {self.low:g} to {self.high:.10g}."
            )
        if self.scale == "integer":
            if number != int(number):
                raise ValueError(
                    f"{self.name} = {short(value)} is not a whole number; allowed: {self.low:g} to {self.high:.10g}."
                )
            return int(number)
        return number

    def traced(self, value: Any) -> float:
        """Return the number that travels to the device."""
        value = self.check(value)
        return float(self.choices.index(value)) if self.choices is not None else float(value)


@dataclass(frozen=True)
class PointsKnob(Knob):
    """A knob whose value is a tuple of points (x, y): data that a user can edit.

    Its traced value is a table of rows (x, y, 1), padded with zeros to the next of `rows`.
    """

    rows: tuple[int, ...] = ROWS

    def check(self, value: Any) -> tuple[tuple[float, float], ...]:
        """Return `value` as a tuple of pairs.

        Raises:
            ValueError: says what is wrong, and with which point.
        """
        try:
            points = tuple((float(x), float(y)) for x, y in value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{self.name}: not a list of points; allowed: pairs of numbers (x, y).") from None
        if not 1 <= len(points) <= self.rows[-1]:
            raise ValueError(f"{self.name} has {len(points)} points; allowed: 1 to {self.rows[-1]}.")
        for i, point in enumerate(points):
            if not all(abs(c) <= 1e3 for c in point):
                raise ValueError(f"{self.name}: point {i + 1} is {point}; allowed: coordinates from -1000 to 1000.")
        return points

    def traced(self, value: Any) -> np.ndarray:
        """Return points as a (rows, 3) table: x, y, and 1 (0 for an unused row)."""
        points = self.check(value)
        rows = np.zeros((next(size for size in self.rows if size >= len(points)), 3), precision())
        rows[: len(points), :2], rows[: len(points), 2] = points, 1.0
        return rows


@dataclass(frozen=True)
class Option:
    """A static choice of an entry: a size, a data set. Another value is another program.

    Args:
        name: its key, without the group.
        default: value without a choice.
        low, high: least and largest whole number, unless there are choices.
        choices: the names that are allowed.
        label, help: texts of pages.
    """

    name: str
    default: Any
    low: int = 1
    high: int = 1
    choices: tuple[str, ...] = ()
    label: str = ""
    help: str = ""

    def check(self, value: Any) -> Any:
        """Return `value` as a name or an int.

        Raises:
            ValueError: names the option, the value and what is allowed.
        """
        if not self.choices:
            return Knob(self.name, self.default, self.low, self.high, "integer").check(value)
        if value not in self.choices:
            raise unknown(f"{self.name}:", value, self.choices)
        return value
