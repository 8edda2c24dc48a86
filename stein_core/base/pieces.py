"""Long computations that let others have the processor in between."""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Callable, Iterator

PIECE = 0.05  # seconds
_rest: ContextVar[Callable[[], None] | None] = ContextVar("rest", default=None)


@contextmanager
def in_pieces(rest: Callable[[], None]) -> Iterator[None]:
    """Let long computations of this library yield on this thread: they work in pieces of about PIECE seconds.

    These are `Stepper.advance` and the search for a start in `from_numpyro`. `compile` rests before it begins. Threads
    share one device. Without pieces each thread would wait for all steps of another one. The numbers stay the same.

    Args:
        rest: called after each piece; an exception that it raises ends the computation.
    """
    token = _rest.set(rest)
    try:
        yield
    finally:
        _rest.reset(token)


def rest_of_this_thread() -> Callable[[], None] | None:
    """Return what `in_pieces` wants called after each piece, or None."""
    return _rest.get()


def resting(call: Callable) -> Callable:
    """Return `call` that rests after about PIECE seconds of calls, for a loop of short calls."""
    rest, began = _rest.get(), time.perf_counter()
    if rest is None:
        return call

    def calling(*arguments):
        nonlocal began
        result = call(*arguments)
        if time.perf_counter() > began + PIECE:
            rest()
            began = time.perf_counter()
        return result

    return calling
