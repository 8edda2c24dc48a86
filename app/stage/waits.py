"""What a page says while it waits for a program."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from stein_core import METHODS

USUAL = 4.0  # seconds that a program takes on two cores
TAKEN = 0.5  # a program that comes sooner was there already

_seconds: dict[str, float] = {}  # method -> how long its last program took here


@contextmanager
def timed(method: str) -> Iterator[None]:
    """Note how long a program of this method takes to compile."""
    began = time.monotonic()
    yield
    if (took := time.monotonic() - began) > TAKEN:
        _seconds[method] = took


def waiting_for(methods: Iterable[str]) -> str:
    """Say which programs are being compiled and how long that takes, as far as this server knows."""
    methods = list(methods)
    seconds = math.ceil(sum(_seconds.get(method, USUAL) for method in methods))
    labels = ", ".join(METHODS[method].label for method in methods)
    return f"compiling {labels}, about {seconds} s, once" if methods else ""
