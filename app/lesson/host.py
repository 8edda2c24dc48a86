"""Where a lesson's outputs live: in page Lessons, in a served notebook, in Jupyter, or nowhere (a script)."""

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

from steinlab.server.loop import soon
from steinlab.server.memory import forget_page


@dataclass
class NotebookHost:
    """Say how the outputs of one notebook reach their reader.

    Args:
        later: runs a function on the event loop soon; any thread may call it.
        app: URL prefix of links to the app.
        lesson: whether page Lessons shows the outputs itself.
        jupyter: whether it is a Jupyter kernel, which has neither a document nor our server.
        outputs: every output made here, so that the owner of the host can pause or close them.
        texts: the HTML before each output that is still to be shown, and after the last one (served notebooks).
    """

    later: Callable[[Callable[[], None]], object]
    app: str = "app?"
    lesson: bool = False
    jupyter: bool = False
    outputs: list = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


_served: WeakKeyDictionary[Document, NotebookHost] = WeakKeyDictionary()
_host: ContextVar[NotebookHost | None] = ContextVar("host", default=None)


@contextmanager
def use_host(host: NotebookHost) -> Iterator[NotebookHost]:
    """Give the outputs that this thread makes within the block to `host`."""
    token = _host.set(host)
    try:
        yield host
    finally:
        _host.reset(token)


def current_host() -> NotebookHost:
    """Return the host of an output that is made now."""
    if host := _host.get():
        return host
    if doc := pn.state.curdoc:
        if doc not in _served:
            _served[doc] = host_of_served(doc)
        return _served[doc]
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        return NotebookHost(lambda call: call())
    loop = asyncio.get_running_loop()  # a kernel runs its cells on it, and the frames' messages have to go through it

    def later(call):
        with suppress(RuntimeError):  # the kernel has ended
            loop.call_soon_threadsafe(call)

    return NotebookHost(later, app="http://localhost:5006/app?", jupyter=True)


def host_of_served(doc: Document) -> NotebookHost:
    """Make the host of a notebook under `panel serve`."""

    post = soon(doc)

    def later(call):  # until the document is loaded, Panel drops what changes
        post(lambda: pn.state.onload(call))

    def leave(context):
        _served.pop(doc, None)  # a weak dictionary keeps what its own values refer to
        for output in host.outputs:
            output.close()

    host = NotebookHost(later)
    pn.state.on_session_destroyed(leave)
    forget_page(doc, host)
    return host
