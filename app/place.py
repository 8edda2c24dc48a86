"""Where a lesson's outputs live: in the Lessons page, in a served notebook, in Jupyter, or nowhere (a script)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import panel as pn


@dataclass
class Place:
    """later: runs a function on the event loop soon; any thread may call it. app: what the link of a picture is put
    behind. lesson: the Lessons page shows the outputs itself. jupyter: a kernel, where there is neither a document nor
    a server of ours. outputs: everything that was made here, so that whoever owns the place can rest or close it."""

    later: Callable[[Callable[[], None]], object]
    app: str = "app?"
    lesson: bool = False
    jupyter: bool = False
    outputs: list = field(default_factory=list)


_place: ContextVar[Place | None] = ContextVar("place", default=None)


@contextmanager
def placed(place: Place) -> Iterator[Place]:
    """Outputs made meanwhile, on this thread, belong to `place`."""
    token = _place.set(place)
    try:
        yield place
    finally:
        _place.reset(token)


def here() -> Place:
    """The place of an output that is made now."""
    if place := _place.get():
        return place
    if doc := pn.state.curdoc:
        place = Place(doc.add_next_tick_callback)
        pn.state.on_session_destroyed(lambda context: [output.close() for output in place.outputs])
        return place
    try:
        loop = asyncio.get_running_loop()  # a kernel runs its cells on it, and the frames' messages have to go through it
    except RuntimeError:
        return Place(lambda call: call())
    return Place(loop.call_soon_threadsafe, app="http://localhost:5006/app?", jupyter=True)
