"""Run functions of other threads on the event loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from threading import Lock
from weakref import WeakMethod

from bokeh.io import doc as current
from panel.io.state import set_curdoc, state
from tornado.ioloop import IOLoop


class Unbusy:
    """Mixin of a component whose script sends many messages: handle them without setting `pn.state.busy`.

    Panel's bookkeeping of `busy` for all visitors takes a third of the time of an acknowledgement.
    No upstream issue known; Panel 1.9.4.
    """

    def _process_bokeh_event(self, document, event):
        with set_curdoc(document):
            self._process_event(event)


@contextmanager
def unscheduled(document):
    """Apply changes of a page at once, although no browser has loaded it yet.

    Panel would leave each change to a callback of Bokeh's. It refers to itself, and so keeps the closed page.
    No upstream issue known; Panel 1.9.4.
    """
    state._connected[document] = True
    try:
        yield
    finally:
        del state._connected[document]


def soon(document):
    """Return later(call): it runs call() on the event loop soon, with the page's document locked. Any thread may call
    it.

    If the page has ended, nothing happens. Bokeh's `add_next_tick_callback` is not thread-safe
    (https://github.com/bokeh/bokeh/issues/4000, which proposes IOLoop.add_callback): Bokeh 3.9 sometimes loses a
    callback that comes while the event loop collects the document's changes, and the page would wait for it for ever.
    """
    loop = IOLoop.current()

    async def within(document, call):
        with current.patch_curdoc(document):
            call()

    def later(call):
        if context := document.session_context:
            loop.add_callback(context.with_locked_document, partial(within, call=call))

    return later


class Gate:
    """Run calls on the event loop as `later` does, but none before a browser has connected.

    Until then Panel leaves a message to a callback of Bokeh's. It refers to itself, and so keeps a page that is closed.
    No upstream issue known; Panel 1.9.4.
    """

    def __init__(self, later: Callable[[Callable[[], None]], None]):
        self.later, self._lock, self._is_open, self._held = later, Lock(), False, []

    def __call__(self, call: Callable[[], None]) -> None:
        """Run a bound method, which is forgotten if its owner is. Any thread."""
        with self._lock:
            if not self._is_open:
                self._held.append(WeakMethod(call))
                return
        self.later(call)

    def open(self) -> None:
        """Run what has waited: a browser has connected."""
        with self._lock:
            self._is_open, held, self._held = True, self._held, []
        for one in held:
            if call := one():
                self.later(call)
