"""The frame around the pages, from the visit to the first page."""

import asyncio
import time

import panel as pn
import pytest
from bokeh.document import Document
from checks import PATIENCE, finished, session_of
from panel.io.server import DocHandler, get_server
from panel.io.state import set_curdoc
from panel.viewable import Viewable
from tornado.httpclient import AsyncHTTPClient
from tornado.ioloop import IOLoop

from steinlab import shell

pytestmark = pytest.mark.usefixtures("on_the_loop")


@pytest.mark.parametrize("part", ["build", "Shell.make"])
def test_a_failure_at_start_gives_a_message_instead_of_a_blank_page(monkeypatch, part):
    def broken(*arguments):
        raise RuntimeError("no such thing")

    served = []
    monkeypatch.setattr(f"steinlab.shell.{part}", broken)
    monkeypatch.setattr(Viewable, "servable", lambda self, **k: served.append(self))

    async def visited():
        with session_of(Document()) as session, set_curdoc(session.document):
            shell.serve()
            await asyncio.sleep(0.1)

    finished(visited())
    assert any("no such thing" in text.object for text in served[0].select(pn.pane.HTML))


def test_a_page_is_answered_before_it_is_built(monkeypatch):
    """The frame, that is: its scripts load while the page is built."""
    heard = []
    monkeypatch.setattr(DocHandler, "on_finish", lambda handler: heard.append("answered"), raising=False)
    monkeypatch.setattr(shell.Shell, "make", lambda self, key, query: heard.append(key))
    monkeypatch.setattr(shell.Shell, "drawer", lambda self, key: {})

    async def asked() -> str:
        server = get_server({"app": shell.serve}, port=0, start=True, loop=IOLoop.current())
        try:
            answer = await AsyncHTTPClient().fetch(f"http://localhost:{server.port}/app?page=wave")
            end = time.monotonic() + PATIENCE
            while len(heard) < 2 and time.monotonic() < end:
                await asyncio.sleep(0.01)
            return answer.body.decode()
        finally:
            server.stop()

    page = finished(asked())
    assert heard == ["answered", "wave"]
    assert page.index("Loading the page") < page.index('<script type="text/java')
    sheet = '<link rel="stylesheet"'
    assert page.count(sheet) == page.count(f'{sheet} media="print"') > 0  # the first picture waits for none


def test_a_lecture_goes_over_pages_that_have_no_lecture_of_their_own_and_ends():
    seen = []

    async def visited():
        with session_of(Document()) as session, set_curdoc(session.document):
            made = shell.Shell({"page": "notation"})
            made.begin()
            made.go("?play=benchmarks%3Ftable%3Dsvgd_uci~notation%3F")
            seen.append((made.key, made.browser.lecture, made.presentation.playlist.at, made.full("")))
            for by in (1, 1, -1):  # it ends at its end
                made.presentation.forth(by)
                seen.append((made.key, made.presentation.playlist.at))
            made.presentation.on_key("p")
            seen.append((made.key, made.browser.lecture, made.presentation.playlist))
            offered = set(made.bar.shares)
            made.go("?page=lecture")
            seen.append((offered, set(made.bar.shares), made.bar.tour.visible))

    finished(visited())
    assert seen == [
        ("benchmarks", True, 1, "?play=benchmarks%3Ftable%3Dsvgd_uci~notation%3F"),
        ("notation", 2),
        ("notation", 2),
        ("benchmarks", 1),
        ("benchmarks", False, None),
        ({"Copy link", "Add to a lecture"}, {"Copy link"}, False),
    ]
