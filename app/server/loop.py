"""Other threads and the event loop."""

from __future__ import annotations

from functools import partial

from bokeh.io import doc as current
from panel.io.state import set_curdoc
from tornado.ioloop import IOLoop


class Unbusy:
    """For a component whose browser side sends many messages: they are handled without `pn.state.busy`, whose bookkeeping
    for all visitors together took a third of the time of an acknowledgement."""

    def _process_bokeh_event(self, document, event):
        with set_curdoc(document):
            self._process_event(event)


def soon(document):
    """A function for any thread that runs another one on the event loop soon, with the page's document locked, and nothing
    where the page has ended. Not by Bokeh's `add_next_tick_callback`: what another thread gives it while the event loop
    collects the document's changes is lost now and then, and a page that waits for it would stand still for ever."""
    loop = IOLoop.current()

    async def within(document, call):
        with current.patch_curdoc(document):
            call()

    def later(call):
        if context := document.session_context:
            loop.add_callback(context.with_locked_document, partial(within, call=call))

    return later
