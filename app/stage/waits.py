"""What a page says while it waits for a program."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from stein_core import METHODS, cache_folder

USUAL = 4.0  # seconds that a program takes on two cores
TAKEN = 0.5  # a program that comes sooner was there already

FILE = "waits.json"  # in the folder of the compiled programs

_seconds: dict[str, float] = {}  # method -> how long its last program took on this machine


@contextmanager
def timed(method: str) -> Iterator[None]:
    """Note how long a program of this method takes to compile."""
    began = time.monotonic()
    yield
    if (took := time.monotonic() - began) > TAKEN:
        _known()[method] = round(took, 1)
        with suppress(OSError):
            (cache_folder() / FILE).write_text(json.dumps(_seconds), encoding="utf-8")


def _known() -> dict[str, float]:
    """Return the seconds of every method, and read first what an earlier server has learned."""
    if not _seconds:
        with suppress(OSError, ValueError, AttributeError):
            kept = json.loads((cache_folder() / FILE).read_text(encoding="utf-8"))
            _seconds.update({name: float(took) for name, took in kept.items() if name in METHODS})
    return _seconds


def waiting_for(methods: Iterable[str]) -> str:
    """Say which programs are being compiled and how long that takes, as far as this server knows."""
    methods = list(methods)
    seconds = math.ceil(sum(_known().get(method, USUAL) for method in methods))
    labels = ", ".join(METHODS[method].label for method in methods)
    return f"compiling {labels}, about {seconds} s, once" if methods else ""
