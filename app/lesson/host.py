"""Where a lesson's outputs live: in the Lessons page, in a served notebook, in Jupyter, or nowhere (a script)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import panel as pn
from bokeh.document import Document

from app.server.loop import soon
from app.server.memory import GARBAGE, forget_page


@dataclass
class Place:
    """later: runs a function on the event loop soon; any thread may call it. app: what the link of a picture is put
    behind. lesson: the Lessons page shows the outputs itself. jupyter: a kernel, where there is neither a document nor
    a server of ours. outputs: everything that was made here, so that whoever owns the place can rest or close it.
    texts: the Markdown before each output that is still to be shown, and after the last one; a served notebook has it."""

    later: Callable[[Callable[[], None]], object]
    app: str = "app?"
    lesson: bool = False
    jupyter: bool = False
    outputs: list = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


_served: WeakKeyDictionary[Document, Place] = WeakKeyDictionary()
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
        if doc not in _served:
            _served[doc] = served(doc)
        return _served[doc]
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        return Place(lambda call: call())
    loop = asyncio.get_running_loop()  # a kernel runs its cells on it, and the frames' messages have to go through it

    def later(call):
        with suppress(RuntimeError):  # the kernel has ended
            loop.call_soon_threadsafe(call)

    return Place(later, app="http://localhost:5006/app?", jupyter=True)


def served(doc: Document) -> Place:
    """The place of a notebook under `panel serve`."""

    post = soon(doc)

    def later(call):  # until the document is loaded, Panel drops what changes
        post(lambda: pn.state.onload(call))

    def leave(context):
        _served.pop(doc, None)  # a weak dictionary keeps what its own values refer to
        for output in place.outputs:
            output.close()
        GARBAGE.page_ended()

    place = Place(later)
    pn.state.on_session_destroyed(leave)
    forget_page(doc)
    return place
