"""What the server needs beyond Panel's defaults. In a module of its own, since Panel clears a script's globals when
its session ends."""

import asyncio
import gc
import logging
import math
import sys
import threading
import time
import warnings
import weakref
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from urllib.parse import parse_qsl

from bokeh.application.handlers import code
from bokeh.io import doc as current
from bokeh.protocol.messages.error import error as ErrorMessage
from bokeh.server.views.ws import WSHandler
from bokeh.util.warnings import BokehUserWarning
from panel.io import handlers, location
from panel.io.server import ComponentResourceHandler
from panel.io.state import set_curdoc
from panel.reactive import Syncable
from tornado.ioloop import IOLoop
from tornado.web import HTTPError, StaticFileHandler
from tornado.websocket import WebSocketClosedError

from app.server.limits import LIMITS
from app.server.streaming import SHARE
from stein_core.machine import trim_memory

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


class Garbage:
    """When Python looks through all that lives for what nobody can reach any more: all pages stand still meanwhile, for
    half a second where thirty are open, and Panel asks for it a few seconds after one is closed. What is there when a page
    has been loaded is frozen, which takes it out of such searches, until MOST pages have ended or nobody plays."""

    MOST = 5  # a closed page holds 13 to 55 MB
    SOON, LATER = 10.0, 30.0  # seconds

    def __init__(self):
        self._ended = 0

    def page_ended(self) -> None:
        """On the event loop, when a page's session has ended. Each has a timer of its own: `--warm` ends one on a loop
        that ends with it."""
        self._ended += 1
        self._look_soon()

    def _look_soon(self) -> None:
        asyncio.get_running_loop().call_later(self.SOON, self._look, context=Context())  # not the page's own: it holds it

    def _look(self) -> None:
        if not self._ended:
            return
        if SHARE.pages() and self._ended < self.MOST:
            self._look_soon()
            return
        self._ended = 0
        self._search()
        asyncio.get_running_loop().call_later(self.LATER, self._look_again, context=Context())

    def _look_again(self) -> None:
        """What a page had begun, a compilation say, may have held it the first time."""
        if not SHARE.pages():
            self._search()

    def _search(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        trim_memory()


GARBAGE = Garbage()


class Visitors:
    """The open pages of a server."""

    ARRIVING = 4  # seconds from the visit until a page moves

    def __init__(self):
        self._open: set[int] = set()
        self._last = -math.inf

    @property
    def arriving(self) -> bool:
        """Whether a page was asked for just now."""
        return time.monotonic() < self._last + self.ARRIVING

    def admit(self, document) -> bool:
        """Count one more until its session ends; False where there are as many as LIMITS allows."""
        if len(self._open) >= LIMITS.sessions:
            return False
        key, self._last = id(document), time.monotonic()
        self._open.add(key)
        document.on_session_destroyed(lambda context: self._end(key))
        return True

    def _end(self, key: int) -> None:
        self._open.discard(key)
        GARBAGE.page_ended()


VISITORS = Visitors()


def warm_up() -> None:
    """Compile what the first page opens with."""
    from app.stage import session
    from app.pages.wave import session as wave_session
    from app.stage.scene import SideBySide
    from app.stage.setup import Setup
    from stein_core import compile

    setup = Setup()
    try:
        specs = [setup.spec(method, session.FIRST_CAPACITY) for method in setup.methods]
        for prepare in (*[partial(compile, spec) for spec in specs], partial(SideBySide().scene, specs)):
            # A visitor's own programs come first.
            while session.COMPILERS.busy or wave_session.COMPILERS.busy or VISITORS.arriving:
                time.sleep(0.2)
            prepare()
    except Exception:  # the first visitor's session will meet it again, and show it
        log.exception("warm-up")


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


def forget_page(document) -> None:
    """Once the session has ended, drop what Panel still knows of its page: it keeps the area for notifications of every
    page for ever, with the document, and what is in that where no browser ever loaded it."""
    import panel as pn

    def forget(context):
        for ref, (_, _, of, _) in list(pn.state._views.items()):
            if of is document:
                del pn.state._views[ref]

    document.on_session_destroyed(forget)


def detach_busy(page) -> None:
    """Undo pmui.Page's subscription to the process-wide `pn.state.busy`: it keeps every closed page alive, and sends
    every page two messages for every event of any visitor."""
    import panel as pn

    private = page._param__private
    for item in list(private.ref_watchers):
        names, watcher = item
        if "busy" in names:
            pn.state.param.unwatch(watcher)
            private.ref_watchers.remove(item)
    private.refs.pop("busy", None)
