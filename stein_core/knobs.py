"""Knobs: the numbers and choices of a run that are traced, so that turning one never compiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stein_core.errors import short

if TYPE_CHECKING:
    from stein_core.registry import Registry

ROWS = (48, 128, 512)  # data are padded to one of these, so that a point more compiles nothing (but the 49th, say)


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
    choices: Registry | None = None

    def check(self, value: Any) -> Any:
        """`value` as a float, an int or a registered name; ValueError names the knob, the value and the range."""
        if self.choices is not None:
            return self.choices[value].name
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"{self.name} = {short(repr(value))} is not a number; allowed: {self.low:g} to {self.high:g}."
            ) from None
        if not self.low <= number <= self.high:
            raise ValueError(f"{self.name} = {short(value)} is out of range; allowed: {self.low:g} to {self.high:g}.")
        if self.scale == "integer":
            if number != int(number):
                raise ValueError(
                    f"{self.name} = {short(value)} is not a whole number; allowed: {self.low:g} to {self.high:g}."
                )
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
