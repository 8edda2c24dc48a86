"""Compile all that a lecture needs, before it begins."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steinlab.lesson import reading
from steinlab.lesson.ideas import ideas_of
from steinlab.lesson.playlist import Place, place_of
from steinlab.server.background import STOPPING, Cancelled as Unwanted, Threads, background_work
from steinlab.server.errors import note

log = logging.getLogger(__name__)
PREPARERS = Threads(1, "prepare")


class Preparing:
    """Go through the stops of a lecture on a thread.

    Args:
        play: names of the stops, see `steinlab.lesson.playlist.place_of`.
        pages: key -> entry, see `steinlab.contents`.
        tell: called on the thread after each stop.

    Attributes:
        done: number of stops that are ready.
        failed: sentences about those that could not be prepared.
        state: "running", "done" or "cancelled".
    """

    has_threads = True  # see `steinlab.server.memory.dismantle`

    def __init__(self, play: Sequence[str], pages: Mapping[str, Any], tell: Callable[[], None]):
        self.play, self.tell = tuple(play), tell
        self.places = [place_of(name, pages) for name in play]
        self.builds = [pages[place.page].build for place in self.places]
        self.done, self.failed, self.state = 0, [], "running"
        self.began = time.monotonic()
        PREPARERS.submit(self._work)

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self.began

    def cancel(self) -> None:
        """Prepare no more stops; a program that is being compiled ends at its next piece."""
        if self.state == "running":
            self.state = "cancelled"

    def _unwanted(self) -> bool:
        return self.state == "cancelled" or STOPPING.is_set()

    def _work(self):
        for place, build in zip(self.places, self.builds):
            if self._unwanted():
                break
            try:
                with background_work(self._unwanted):
                    settle = prepare(place, build)
                settle()
            except Unwanted:
                break
            except Exception as error:
                self.failed.append(f"{place.title}: {note(log, 'prepare', error)}")
            self.done += 1
            self.tell()
        if self.state == "running":
            self.state = "done"
        self.tell()
        self.tell = lambda: None


def prepare(place: Place, build: Any) -> Callable[[], None]:
    """Compile what a stop needs, on the calling thread. Return a call that waits for the rest.

    Args:
        place: where the stop leads.
        build: class of its page; `prepare(query)` of it compiles, if there is one.
    """
    if place.page == "lessons":
        lesson = reading.lessons()[place.query["lesson"]]
        idea = ideas_of(lesson)[int(place.query["idea"]) - 1]
        return reading.prepare(lesson, idea.start, idea.stop)
    if hasattr(build, "prepare"):
        build.prepare(place.query)
    return lambda: None
