"""Our own proxy of `serve`, with small servers behind it: whom it chooses, what it passes on and what it refuses."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from checks import finished
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders
from tornado.iostream import StreamClosedError
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler, websocket_connect

from stein_core.cli import proxy, serve
from stein_core.cli.main import main
from stein_core.cli.proxy import COOKIE, LARGEST, Proxy, letter_of, passed
from stein_core.cli.serve import read_hosts

MEGABYTE = 2**20


class Page(RequestHandler):
    """Tells what has come."""

    def initialize(self, name, seen):
        self.name, self.seen = name, seen

    def get(self, path):
        self.add_header("Set-Cookie", "one=1")
        self.add_header("Set-Cookie", "two=2")
        code = self.get_argument("code", "200")
        self.set_status(int(code))
        if code == "200":
            self.write({"name": self.name, "uri": self.request.uri, "headers": list(self.request.headers.get_all())})

    head = get

    def post(self, path):
        self.seen["posts"] += 1
        self.write({"name": self.name, "bytes": len(self.request.body)})


class Slow(RequestHandler):
    """Sends one part, and the other when it is told to."""

    def initialize(self, name, seen):
        self.seen = seen

    async def get(self):
        self.write("first")
        await self.flush()
        await self.seen["go"].wait()
        self.finish("second")

    def on_connection_close(self):
        self.seen["left"].set()
        self.seen["go"].set()


class Broken(RequestHandler):
    """Breaks off: at once, or in the middle of an answer."""

    def initialize(self, name, seen):
        pass

    async def get(self, when):
        if when == "middle":
            self.set_header("Content-Length", "100")
            self.write("ten bytes.")
            await self.flush()
        self.request.connection.stream.close()


class Socket(WebSocketHandler):
    """Answers with what comes; some texts are orders."""

    def initialize(self, name, seen):
        self.name, self.seen = name, seen

    def check_origin(self, origin):
        return origin.endswith(self.request.host)

    def select_subprotocol(self, offered):
        return offered[0] if offered else None

    async def on_message(self, message):
        if message == "end":
            self.close(4404, "gone")
        elif message == "ping":
            self.ping(b"are you there")
        elif message == "flood":
            for _ in range(300):
                await self.write_message(bytes(MEGABYTE), binary=True)
                self.seen["sent"] += 1
        else:
            await self.write_message(message, binary=isinstance(message, bytes))

    def on_pong(self, data):
        self.write_message(b"pong " + data, binary=True)

    def on_close(self):
        self.seen["closed"].set_result((self.close_code, self.close_reason))


def listening(delegate):
    """A server on a port of its own."""
    server = HTTPServer(delegate, max_body_size=64 * MEGABYTE)
    sock, port = bind_unused_port()
    server.add_socket(sock)
    return server, port


@asynccontextmanager
async def proxied():
    """Two servers, A and B, behind a proxy."""
    seen = {"posts": 0, "sent": 0, "go": asyncio.Event(), "left": asyncio.Event()}
    seen["closed"] = asyncio.get_running_loop().create_future()
    servers, addresses = {}, {}
    for name in "AB":
        facts = {"name": name, "seen": seen}
        paths = ((r"/slow", Slow), (r"/broken/(.*)", Broken), (r"/app/ws", Socket), (r"/(.*)", Page))
        app = Application([(path, handler, facts) for path, handler in paths], websocket_max_message_size=2**30)
        servers[name], port = listening(app)
        addresses[name] = ("127.0.0.1", port)
    choosing = Proxy(addresses)
    front = HTTPServer(choosing, max_body_size=2**50)
    sock, port = bind_unused_port()
    front.add_socket(sock)
    client = AsyncHTTPClient(force_instance=True, max_body_size=2**30)

    async def ask(path="/app", **what):
        return await client.fetch(HTTPRequest(f"http://127.0.0.1:{port}{path}", **what), raise_error=False)

    yield SimpleNamespace(ask=ask, port=port, servers=servers, seen=seen, proxy=choosing, client=client)
    for server in (front, *servers.values()):
        server.stop()
        await server.close_all_connections()
    client.close()


def with_proxy(test):
    """Run a coroutine with the servers and their proxy."""

    async def run():
        async with proxied() as there:
            await test(there)

    def test_it():
        finished(run(), 60)

    test_it.__name__, test_it.__doc__ = test.__name__, test.__doc__
    return test_it


@pytest.fixture(autouse=True)
def quiet(caplog):
    """Nothing that happens here is an error of a server or of the proxy."""
    yield
    assert not [record.getMessage() for record in caplog.get_records("call") if record.levelname == "ERROR"]


def told(answer):
    assert answer.code == 200, answer.body
    return json.loads(answer.body)


async def rests(read):
    """What `read` gives, once it gives the same for half a second."""
    before, now = None, read()
    while now != before:
        await asyncio.sleep(0.5)
        before, now = now, read()
    return now


def cookie_of(letter):
    return {"Cookie": f"other=1; {COOKIE}={letter}"}


@pytest.mark.parametrize(
    "cookies, letter",
    [
        (f"{COOKIE}=B", "B"),
        (f"a=1; {COOKIE}=B; b=2", "B"),
        (f"not_{COOKIE}=B", ""),
        (f"{COOKIE}=BB", ""),
        (f"{COOKIE}=b", ""),
        (f"a={COOKIE}=B", ""),
        ("steinlab=0f", ""),
        ("", ""),
    ],
)
def test_the_letter_of_a_cookie(cookies, letter):
    assert letter_of(cookies) == letter


def test_what_is_of_one_connection_is_not_passed_on():
    headers = HTTPHeaders({"Connection": "keep-alive, X-Hop", "X-Hop": "1", "TE": "trailers", "Keep-Alive": "5"})
    headers.update({"Upgrade": "h2c", "Proxy-Connection": "x", "Expect": "100-continue", "Host": "here"})
    headers.add("Accept", "a")
    headers.add("Accept", "b")
    assert list(passed(headers, "").get_all()) == [("Host", "here"), ("Accept", "a"), ("Accept", "b")]
    assert passed(headers, "close")["Connection"] == "close"
    assert passed(headers, "Upgrade")["Upgrade"] == "websocket"


def test_who_may_take_a_request():
    there = Proxy({letter: ("127.0.0.1", 1) for letter in "ABC"})
    first = [there.choices("/app", "", 10.0)[0] for _ in range(6)]
    assert first == list("ABCABC")  # new visitors in turns
    assert there.choices("/app", "B", 10.0) == ["B"] and sorted(there.choices("/app", "Z", 10.0)) == list("ABC")
    for path in ("/class/c7AA2222", "/app/class/C7AA", "/app/%63lass/%43AAA", "/class/C/socket?who=/class/A"):
        assert there.choices(path, "B", 10.0) == ["C"], path
    for path in ("/class", "/class/", "/class/kind/Canvas.js", "/app?from=/class/C", "/class/Z222"):
        assert there.choices(path, "B", 10.0) == ["B"], path
    there.failed["B"] = (10.0, 20.0)
    assert {there.choices("/app", "", 21.0)[-1] for _ in range(3)} == {"B"}  # the last one for new visitors
    assert {there.choices("/app", "", 26.0)[0] for _ in range(3)} == set("ABC")  # and tried again
    assert there.choices("/app", "B", 21.0) == ["B"]  # it may be back soon
    there.failed["B"] = (10.0, 10.0 + proxy.GONE)
    assert there.choices("/app", "B", 71.0)[0] != "B" and there.choices("/class/B222", "B", 71.0) == ["B"]


@with_proxy
async def test_a_server_learns_who_asks_and_the_visitor_gets_safe_headers(there):
    forged = {"X-Real-Ip": "6.6.6.6", "X-Forwarded-Proto": "https", "X-Scheme": "https", "Host": "name.example:80"}
    answer = await there.ask("/app?x=1", headers={**forged, "Connection": "X-Hop", "X-Hop": "1", "X-Kept": "1"})
    said = told(answer)
    headers = dict(said["headers"])
    assert said["uri"] == "/app?x=1" and headers["Host"] == "name.example:80" and headers["X-Kept"] == "1"
    assert headers["X-Real-Ip"] == "127.0.0.1" and headers["X-Forwarded-Proto"] == "http"
    assert "X-Scheme" not in headers and "X-Hop" not in headers and headers["Connection"] == "close"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self'"
    assert answer.headers.get_list("Set-Cookie") == [
        "one=1",
        "two=2",
        f"{COOKIE}={said['name']}; Path=/; HttpOnly; SameSite=Lax",
    ]


@with_proxy
async def test_a_visitor_stays_and_a_server_that_is_down_gets_no_new_one(there):
    assert {told(await there.ask())["name"] for _ in range(2)} == {"A", "B"}
    for letter in "AABB":
        answer = await there.ask(headers=cookie_of(letter))
        assert told(answer)["name"] == letter and len(answer.headers.get_list("Set-Cookie")) == 2  # no new one
    assert told(await there.ask("/class/b222", headers=cookie_of("A")))["name"] == "B"
    there.servers["B"].stop()
    assert [told(await there.ask())["name"] for _ in range(4)] == ["A"] * 4
    for answer in (await there.ask(headers=cookie_of("B")), await there.ask("/class/B222")):
        assert answer.code == 502 and answer.body == b"This server does not answer. Load the page again in a minute."
    first, last = there.proxy.failed["B"]
    there.proxy.failed["B"] = (first - proxy.GONE, last)
    answer = await there.ask(headers=cookie_of("B"))
    assert told(answer)["name"] == "A" and f"{COOKIE}=A" in answer.headers["Set-Cookie"]


@with_proxy
async def test_answers_without_a_body_keep_the_connection(there):
    reader, writer = await asyncio.open_connection("127.0.0.1", there.port)
    for line in ("HEAD /app", "GET /app?code=304", "GET /app?code=204", "GET /app"):
        writer.write(f"{line} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 " + line.partition("=")[2].encode()) and b"Connection: close" not in head
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
    assert b"/app" in await reader.readexactly(length)
    writer.close()


@with_proxy
async def test_answers_and_uploads_are_streamed(there):
    parts, first = [], asyncio.Event()

    def take(part):
        parts.append(part)
        first.set()

    asking = asyncio.ensure_future(there.ask("/slow", streaming_callback=take))
    await first.wait()
    assert parts == [b"first"]
    there.seen["go"].set()
    await asking
    assert parts == [b"first", b"second"]

    async def body(write):
        for _ in range(4):
            await write(bytes(1000))

    assert told(await there.ask(method="POST", body_producer=body))["bytes"] == 4000


@with_proxy
async def test_too_large_an_upload_is_refused(there):
    assert told(await there.ask(method="POST", body=bytes(LARGEST)))["bytes"] == LARGEST

    async def body(write):
        for _ in range(5):
            await write(bytes(MEGABYTE))

    said = b"A request may have 2 MB."
    for what in ({"body": bytes(LARGEST + 1)}, {"body_producer": body}):
        answer = await there.ask(method="POST", **what)
        assert (answer.code, answer.body) == (413, said)
    answer = await there.ask(method="POST", body=bytes(LARGEST + 1), expect_100_continue=True)
    assert (answer.code, answer.body) == (413, said)
    assert there.seen["posts"] == 1
    reader, writer = await asyncio.open_connection("127.0.0.1", there.port)
    writer.write(b"DELETE /app HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 411")
    writer.close()
    for server in there.servers.values():
        server.stop()
    assert (await there.ask(method="POST", body=bytes(LARGEST + 1))).code == 413  # no server is asked


@with_proxy
async def test_a_server_that_breaks_off_is_no_answer_and_half_an_answer_no_whole_one(there):
    assert (await there.ask("/broken/start")).code == 502
    with pytest.raises((HTTPClientError, StreamClosedError)):
        (await there.ask("/broken/middle")).rethrow()


@with_proxy
async def test_a_server_learns_that_a_visitor_has_left(there):
    reader, writer = await asyncio.open_connection("127.0.0.1", there.port)
    writer.write(b"GET /slow HTTP/1.1\r\nHost: here\r\n\r\n")
    await reader.readuntil(b"first")
    writer.close()
    await asyncio.wait_for(there.seen["left"].wait(), 20)


@with_proxy
async def test_a_websocket_carries_all_that_there_is(there):
    url = f"ws://127.0.0.1:{there.port}/app/ws"
    browser = await websocket_connect(
        url, subprotocols=["bokeh", "token"], max_message_size=2**30, compression_options={}
    )
    assert browser.selected_subprotocol == "bokeh"
    for message in ("text \u03b1", b"\x00bytes", bytes(3 * MEGABYTE), ""):
        await browser.write_message(message, binary=isinstance(message, bytes))
        assert await browser.read_message() == message
    await browser.write_message("ping")
    assert await browser.read_message() == b"pong are you there"
    await browser.write_message("end")
    assert await browser.read_message() is None and (browser.close_code, browser.close_reason) == (4404, "gone")
    assert (await there.seen["closed"])[0] == 4404
    there.seen["closed"] = asyncio.get_running_loop().create_future()
    browser = await websocket_connect(HTTPRequest(url, headers=cookie_of("B")))
    browser.close(4001, "bye")
    assert await asyncio.wait_for(there.seen["closed"], 20) == (4001, "bye")
    for origin, code in ((f"http://127.0.0.1:{there.port}", 101), ("http://elsewhere.example", 403)):
        there.seen["closed"] = asyncio.get_running_loop().create_future()
        try:
            browser = await websocket_connect(HTTPRequest(url, headers={"Origin": origin}))
            browser.close()
            await there.seen["closed"]
            assert code == 101
        except HTTPClientError as error:
            assert error.code == code


@with_proxy
async def test_a_visitor_who_does_not_read_fills_no_memory(there):
    slow = socket.create_connection(("127.0.0.1", there.port))
    slow.sendall(
        b"GET /app/ws HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        b"\x81\x85\x00\x00\x00\x00flood"
    )
    sent = await rests(lambda: there.seen["sent"])
    assert 0 < sent < 60  # what the system's buffers hold
    got, loop = 0, asyncio.get_running_loop()
    while got < 300 * MEGABYTE:
        got += len(await loop.run_in_executor(None, slow.recv, 2**20))
    assert there.seen["sent"] == 300
    slow.close()
    await asyncio.wait_for(there.seen["closed"], 20)


def test_hosts_of_the_command_are_read_and_wrong_ones_named():
    text = "C=other:8001,D=10.0.0.2:8001,E=[fe80::1]:80"
    assert read_hosts(text, "CDEF") == {"C": "other:8001", "D": "10.0.0.2:8001", "E": "[fe80::1]:80"}
    assert read_hosts("", "") == {} and proxy.place("[fe80::1]:80") == ("fe80::1", 80)
    for wrong in ("A=other:1", "C=a:1,C=b:1", "other:1", "C=other", "C=other:0", "C=o;ther:1", "CD=other:1", "C=:1"):
        with pytest.raises(ValueError, match="--hosts: .*allowed: "):
            read_hosts(wrong, "CDEF")


@pytest.mark.parametrize("asked, installed, own", [("", True, False), ("", False, True), ("own", True, True)])
def test_which_proxy_serve_takes(monkeypatch, asked, installed, own):
    made = []
    monkeypatch.setattr(serve.shutil, "which", lambda name: name if installed else None)
    monkeypatch.setattr(serve.Servers, "run", lambda servers: made.append(servers) or 0)
    words = ["serve", "--processes", "2", "--hosts", "C=other:8001", *(["--proxy", asked] if asked else [])]
    assert main(words) == 0 and made[0].own == own and list(made[0].all) == ["A", "B", "C"]
    assert len(made[0].commands) == 2 and made[0].all["C"] == "other:8001"


@pytest.mark.parametrize(
    "words, said",
    [
        (["--processes", "2", "--proxy", "nginx"], "there is no nginx here"),
        (["--proxy", "own"], "need --processes"),
        (["--hosts", "C=other:1"], "need --processes"),
        (["--processes", "2", "--hosts", "B=other:1"], "one letter each of CDEF"),
    ],
)
def test_what_serve_refuses(monkeypatch, capsys, words, said):
    monkeypatch.setattr(serve.shutil, "which", lambda name: None)
    assert main(["serve", *words]) == 2 and said in capsys.readouterr().err
