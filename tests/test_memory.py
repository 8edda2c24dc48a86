"""A closed page is freed at once: nothing of it waits for a search of the whole heap."""

import asyncio
import gc
import sys
import time
import weakref
from pathlib import Path

import panel as pn
import pytest
from bokeh.model import Model
from checks import PATIENCE, finished
from panel.io import document as io_document
from panel.io.server import get_server
from panel.reactive import Reactive
from panel.viewable import Viewable
from tornado.ioloop import IOLoop

sys.path.append(str(Path(__file__).with_name("browser")))
from visitors import Visitor  # noqa: E402

from steinlab import notebook, shell  # noqa: E402, F401  (the server imports it before the first visitor)
from steinlab.server import memory, patches, workarounds  # noqa: E402
from steinlab.stage.worker import Worker  # noqa: E402

ROWS = {row.where: row for row in workarounds.WORKAROUNDS}


@pytest.fixture
def born(monkeypatch, on_the_loop):
    """Weak references to what is made of a page from now on, on a server with the work-arounds that free it."""
    known = []
    for kind in (shell.Shell, Worker):

        def init(self, *arguments, begin=kind.__init__, **named):
            known.append(weakref.ref(self))
            begin(self, *arguments, **named)

        monkeypatch.setattr(kind, "__init__", init)
    monkeypatch.setattr(memory, "SOON", 0.01)
    monkeypatch.setattr(memory, "LITTLE", 0)  # nothing is searched
    monkeypatch.setattr(shell, "keep_alive", lambda: None)
    monkeypatch.setattr(Model, "destroy", patches._destroy)  # to have both back
    monkeypatch.setattr(io_document, "_garbage_collect", io_document._garbage_collect)
    patches.destroy_callbacks()
    patches.search_nothing()
    if ROWS["destroy_style_sheets"].needed:
        monkeypatch.setattr(Reactive, "_resolve_stylesheets", patches._resolve)
        patches.destroy_style_sheets()
    gc.collect()
    gc.disable()
    yield known
    gc.enable()


def left_of(born: list) -> dict[str, list]:
    """Return the kinds of those that are alive, and of what refers to each."""
    alive = [one() for one in born if one()]
    return {type(one).__name__: [type(by).__name__ for by in gc.get_referrers(one) if by is not alive] for one in alive}


async def visited(query: str, born: list) -> None:
    """Open a page, leave it when it has begun, and wait until nothing is left of it."""
    life = int(1000 * PATIENCE)  # a session that ends while its page loads would leave threads of its own
    options = {"unused_session_lifetime_milliseconds": life, "check_unused_sessions_milliseconds": 50}

    def serve():
        born.append(weakref.ref(pn.state.curdoc))
        return shell.build()

    server = get_server({"app": serve}, port=0, start=True, loop=IOLoop.current(), **options)
    try:
        visitor = Visitor(f"http://localhost:{server.port}/app", query)
        await visitor.open()
        end = time.monotonic() + (PATIENCE if visitor.stage else 1)
        while not visitor.pictures and time.monotonic() < end:
            await visitor.watch(time.monotonic() + 0.2)
        assert left_of(born)
        await visitor.close()
        server._tornado._unused_session_lifetime_milliseconds = 1000
        end = time.monotonic() + PATIENCE
        while any(one() for one in born) and time.monotonic() < end:  # a program that compiles holds its page
            await asyncio.sleep(0.1)
    finally:
        server.stop()
        server.unlisten()


PAGES = [f"?page={key}" for key in shell.PAGES if key not in ("index", "notation", "particles", "wave", "posterior")]


@pytest.mark.parametrize(
    "query",
    [
        "?page=notation",
        "?page=particles",
        *(pytest.param(q, marks=pytest.mark.long) for q in ("?page=wave", "?page=posterior")),
        *(pytest.param(q, marks=pytest.mark.rare) for q in ("", *PAGES, "?page=lessons&lesson=02&idea=3")),
    ],
)
def test_a_closed_page_is_freed_without_a_search(query, born):
    finished(visited(query, born), 3 * PATIENCE)
    assert not left_of(born)
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    waiting = [type(one).__name__ for one in gc.garbage if isinstance(one, (Viewable, Model))]
    gc.garbage.clear()
    assert len(waiting) < 200, waiting  # of 500 and more
