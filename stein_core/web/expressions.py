"""Arrays of a program as JavaScript sees them: an expression of the indices, or a typed array."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

ARRAYS = {"float32": "Float32Array", "int32": "Int32Array", "uint32": "Uint32Array", "bool": "Uint8Array"}
Index = Sequence[Any]  # an int, or the expression of one, for each axis


@dataclass
class Value:
    """Hold an array of a program.

    Args:
        shape, dtype: of the array.
        at: index -> the expression of that entry.
        cheap: whether it costs nothing to read an entry often.
        buffer: the typed array that holds it in row-major order, or None.
        known: its entries if they do not depend on the arguments, else None.
    """

    shape: tuple[int, ...]
    dtype: str
    at: Callable[[Index], str]
    cheap: bool = True
    buffer: str | None = None
    known: np.ndarray | None = None


def held(name: str, shape: tuple[int, ...], dtype: str) -> Value:
    """Return the array that a typed array holds."""
    return Value(shape, dtype, lambda i: f"{name}[{flat(i, shape)}]", True, name)


def scalar(name: str, dtype: str) -> Value:
    """Return the number that a variable holds."""
    return Value((), dtype, lambda i: name)


def number(x: Any) -> str:
    """Return a number as JavaScript writes it. A float is rounded to float32."""
    if isinstance(x, (bool, np.bool_)):
        return "true" if x else "false"
    if isinstance(x, (int, np.integer)):
        return f"({x})" if x < 0 else str(x)
    x = float(np.float32(x))
    text = "NaN" if math.isnan(x) else "Infinity" if x == math.inf else "-Infinity" if x == -math.inf else repr(x)
    return f"({text})" if text.startswith("-") else text.removesuffix(".0")


def flat(index: Index, shape: Sequence[int]) -> str:
    """Return the position of an index in row-major order."""
    fixed, terms, stride = 0, [], 1
    for i, n in zip(reversed(list(index)), reversed(list(shape))):
        if isinstance(i, Integral):
            fixed += i * stride
        elif n > 1:
            terms.insert(0, i if stride == 1 else f"{stride}*({i})")
        stride *= n
    return "+".join([*terms, *[str(fixed)] * bool(fixed > 0 or not terms)])


def shifted(i: Any, k: int) -> Any:
    """Return i + k."""
    return i + k if isinstance(i, Integral) else i if k == 0 else f"({i}{k:+d})"


def repeated(value: Value, index: Index) -> list:
    """Return the index of a value whose axes of length 1 are repeated."""
    return [0 if n == 1 else i for n, i in zip(value.shape, index)]


def rounded(text: str, dtype: str) -> str:
    """Return an expression, rounded to a type."""
    return {"float32": f"F({text})", "uint32": f"(({text})>>>0)", "int32": f"(({text})|0)"}.get(dtype, text)
