"""What the server needs beyond Panel's defaults. In a module of its own, since Panel clears a script's globals when
its session ends."""

import asyncio
import logging
import sys
import threading
import warnings
import weakref
from contextlib import contextmanager
from contextvars import Context
from urllib.parse import parse_qsl

from bokeh.application.handlers import code
from bokeh.io import doc as current
from bokeh.protocol.messages.error import error as ErrorMessage
from bokeh.server.views.ws import WSHandler
from bokeh.util.warnings import BokehUserWarning
from panel.io import handlers, location
from panel.io.server import ComponentResourceHandler
from panel.reactive import Syncable
from tornado.web import HTTPError, StaticFileHandler
from tornado.websocket import WebSocketClosedError

log = logging.getLogger(__name__)
_open, _on_message, _on_close = WSHandler.open, WSHandler.on_message, WSHandler.on_close
_create_error = ErrorMessage.create.__func__
_parse_url_path = ComponentResourceHandler.parse_url_path
_validate_absolute_path = StaticFileHandler.validate_absolute_path


def hear_at_once() -> None:
    """Panel collects the browser's changes for 50 ms."""
    Syncable._debounce = 0


def send_at_once() -> None:
    """Bokeh leaves Nagle's algorithm on, and three small writes a message then wait for the browser's delayed
    acknowledgement: about 40 ms a round trip instead of 6."""

    def open_(self, *arguments, **keywords):
        self.set_nodelay(True)
        return _open(self, *arguments, **keywords)

    WSHandler.open = open_


def expect_known_models() -> None:
    """A browser may describe a model that it was given a moment ago as if the server had never seen it. Bokeh warns, and
    takes its own."""
    warnings.filterwarnings("ignore", "reference already known", BokehUserWarning)


def expect_failed_writes() -> None:
    """A tab that closes in the middle of a message is no error: Panel leaves the exception of what it has begun to write
    unread, and asyncio would log it with a traceback. Everything else is logged as before."""

    def handle(loop, context):
        if not isinstance(context.get("exception"), WebSocketClosedError):
            loop.default_exception_handler(context)

    asyncio.get_event_loop().set_exception_handler(handle)


def expect_late_messages() -> None:
    """What a closed tab said just before, and was not yet heard, is no error either."""

    async def on_message(self, fragment):
        if self.connection is None or self.connection._session is not None:
            await _on_message(self, fragment)

    WSHandler.on_message = on_message


def expect_second_closing() -> None:
    """Nor that its connection is closed twice, when it breaks while it is read and written."""

    def on_close(self):
        if self.connection is None or self.connection._session is not None:
            _on_close(self)

    WSHandler.on_close = on_close


def keep_tracebacks() -> None:
    """Who sends nonsense is not told our paths: Bokeh answers a message that fails with the traceback, which the log has."""

    def create(cls, request_id, text, **metadata):
        message = _create_error(cls, request_id, text, **metadata)
        message.content["traceback"] = None
        return message

    ErrorMessage.create = classmethod(create)


def import_nothing() -> None:
    """Panel answers /components/MODULE/... and for that imports, and so executes, whatever module a visitor names. What our
    pages need is imported when the server starts; of others, and of what Panel fails on, there is nothing to be found."""

    def parse_url_path(self, path):
        if path.partition("/")[0] not in sys.modules:
            raise HTTPError(404)
        try:
            return _parse_url_path(self, path)
        except HTTPError:
            raise
        except Exception as error:
            raise HTTPError(404) from error

    ComponentResourceHandler.parse_url_path = parse_url_path


def expect_null_bytes() -> None:
    """A file whose name has a null byte is not there; Tornado fails on it."""

    def validate_absolute_path(self, root, absolute_path):
        if "\0" in absolute_path:
            raise HTTPError(404)
        return _validate_absolute_path(self, root, absolute_path)

    StaticFileHandler.validate_absolute_path = validate_absolute_path


def leave_links_alone() -> None:
    """Our pages read their links and say what is wrong in them. Panel would take numbers from them first, and show nothing
    at all where one has 5,000 digits or is "²"."""
    location.parse_query = lambda query: dict(parse_qsl(query[1:]))


def keep_documents_apart() -> None:
    """Bokeh notes in a list, shared by all threads, which page a callback belongs to, and leaves it there where the callback
    fails. So a page could be built with another visitor's style sheets, which Bokeh then refuses, or be kept for ever."""

    class Documents(threading.local):
        def __init__(self):
            self.entered = []

        def __len__(self):
            return len(self.entered)

        def __getitem__(self, index):
            return self.entered[index]

    documents = Documents()

    @contextmanager
    def patch_curdoc(document):
        documents.entered.append(weakref.ref(document))
        try:
            yield
        finally:
            documents.entered.pop()

    current._PATCHED_CURDOCS = documents
    current.patch_curdoc = code.patch_curdoc = handlers.patch_curdoc = patch_curdoc


def stay_local(document) -> None:
    """Style sheets from this server, also where a busy one answers so late that the page's session has expired: it is
    then built anew without the step in which Panel says where they are, and Panel would ask a CDN."""
    import panel as pn
    from panel.io.resources import LOCAL_DIST

    where = f"{pn.state.rel_path}/{LOCAL_DIST}" if pn.state.rel_path else LOCAL_DIST
    document._template_variables.setdefault("dist_url", where)


def begin_busy_cleanup() -> None:
    """On the event loop, before the first visitor comes: Panel's clearing away of old busy events is a task for ever, and
    would keep the page in whose context it begins."""
    import panel as pn

    Context().run(pn.state._schedule_busy_cleanup)


def apply() -> None:
    """Apply every patch of the server, once, before the first visitor comes."""
    for patch in (
        hear_at_once,
        send_at_once,
        expect_failed_writes,
        expect_late_messages,
        expect_second_closing,
        leave_links_alone,
        keep_tracebacks,
        keep_documents_apart,
        import_nothing,
        expect_null_bytes,
        expect_known_models,
    ):
        patch()
