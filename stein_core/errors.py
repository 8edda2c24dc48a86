"""Errors of what users type: they name the argument, the value, what is allowed and the nearest match."""

from __future__ import annotations

import difflib
from typing import Iterable


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


def unknown(kind: str, name: object, allowed: Iterable[str]) -> UnknownName:
    """The error for `name`, which is not among `allowed`, with the nearest match first."""
    near = difflib.get_close_matches(str(name), list(allowed), n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return UnknownName(f"unknown {kind} {short(name)!r}{hint or '.'} Allowed: {', '.join(allowed)}.")
