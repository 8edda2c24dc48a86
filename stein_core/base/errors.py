"""Errors of user input: they name the argument, the value, what is allowed and the nearest match."""

from __future__ import annotations

import difflib
import inspect
from typing import Any, Callable, Iterable, Mapping

import numpy as np


def short(value: object) -> str:
    """Return a value as messages repeat it: at most its first 200 characters, fewer of those that Python escapes."""
    text = str(value)
    kept = text[:200]
    kept = kept[: 202 * len(kept) // len(repr(kept))]
    return text if kept == text else f"{kept}…"


def whole(name: str, text: str) -> int:
    """Return the whole number that a text says.

    Raises:
        ValueError: the text is no whole number; the message has `name`.
    """
    try:
        return int(text)
    except ValueError:  # also if it has more digits than Python reads
        raise ValueError(f"{name} = {short(text)!r} is not a whole number.") from None


class UnknownName(ValueError):
    """A name that is not registered. The message names the nearest match and all that is allowed."""


def unknown(kind: str, name: object, allowed: Iterable[str]) -> UnknownName:
    """Return the error for a `name` that is not among `allowed`, with the nearest match first."""
    near = difflib.get_close_matches(str(name), list(allowed), n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return UnknownName(f"unknown {kind} {short(name)!r}{hint or '.'} Allowed: {', '.join(allowed)}.")


def not_finite(function: Callable, args: tuple, kwargs: Mapping[str, Any]) -> str:
    """Return which arguments of a call have numbers that are not finite, with the first rows of these; or ""."""
    try:
        named = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # no such call, or no signature
        named = dict(kwargs)
    said = []
    for name, value in named.items():
        if getattr(value, "dtype", None) is None or not np.issubdtype(value.dtype, np.floating):
            continue
        bad = np.argwhere(~np.isfinite(np.atleast_1d(value)))
        if len(bad):
            rows = ", ".join(map(str, np.unique(bad[:, 0])[:5]))
            more = ", ..." * (len(np.unique(bad[:, 0])) > 5)
            said.append(f"Argument {name!r} has {len(bad)} numbers that are not finite, in rows {rows}{more}.")
    return " ".join(said)
