"""What keeps the event loop busy for long, such as new cells of a lesson: of all pages one at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from app.server.streaming import SHARE


def running() -> bool:
    """Whether an event loop runs on this thread: a script without one shows what it draws at once."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Turns:
    """Where pages play, the event loop is theirs after each such piece of work for as long as that took: their sliders then
    wait for one piece at most, and not for those of a whole class."""

    def __init__(self):
        self._free = 0.0  # the moment of time.monotonic() from which the next one may begin

    def take(self, later: Callable[[Callable[[], None]], object], call: Callable[[], None]) -> None:
        """Call it by `later`, see `app.server.loop.soon`, as soon as it has its turn. Any thread."""

        def work():
            began = time.monotonic()
            if began < self._free and SHARE.pages() and running():
                asyncio.get_running_loop().call_later(self._free - began, later, work)
                return
            try:
                call()
            finally:
                self._free = 2 * time.monotonic() - began

        later(work)


TURNS = Turns()
