"""Run functions of other threads on the event loop."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

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
