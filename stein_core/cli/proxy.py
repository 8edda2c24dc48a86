"""The proxy of `serve --processes` where there is no nginx. It does what assets/nginx.conf does.

It is a program of its own that imports Tornado only: it starts at once and takes little memory.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import re
import signal
import sys
from urllib.parse import unquote

from tornado import httputil
from tornado.http1connection import HTTP1Connection, HTTP1ConnectionParameters
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream, StreamClosedError
from tornado.tcpclient import TCPClient

COOKIE = "steinlab_process"  # its value is the letter of the visitor's server
LARGEST = 2 * 2**20  # bytes of the body of a request, as client_max_body_size
DROPPED = 64 * 2**20  # bytes of a refused body that are read, so that the visitor reads the answer
CONNECT = 3.0  # seconds for a connection to a server
AVOID, GONE = 5.0, 60.0  # seconds without new visitors after a failure; seconds of failures until known ones move
CLASS = re.compile(r"/class/(?!kind/)([A-Za-z])")
HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect", "proxy-connection"}
SAFE = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "frame-ancestors 'self'"}
REFUSALS = {
    411: ("Length Required", "Say the length of the request."),
    413: ("Content Too Large", f"A request may have {LARGEST // 2**20} MB."),
    502: ("Bad Gateway", "This server does not answer. Load the page again in a minute."),
}
TASKS: set[asyncio.Task] = set()  # asyncio itself keeps none alive


class Proxy(httputil.HTTPServerConnectionDelegate):
    """Choose the server of each request and pass it on.

    Args:
        servers: address and port of each, by the letter that codes of its classes begin with.
    """

    def __init__(self, servers: dict[str, tuple[str, int]]):
        self.servers, self.turns, self.client = servers, itertools.count(), TCPClient()
        self.failed: dict[str, tuple[float, float]] = {}  # letter -> its first and last failure since it answered

    def start_request(self, server_conn, request_conn) -> Passage:
        """Begin a request, as Tornado asks for."""
        return Passage(self, request_conn)

    def choices(self, path: str, cookie: str, now: float) -> list[str]:
        """Return the letters of the servers that may take a request, best first.

        Args:
            path: of the request.
            cookie: the letter in the visitor's, or "". It counts until its server has failed for long.
            now: seconds on any clock that goes forward.
        """
        found = CLASS.search(unquote(path.split("?")[0]))
        if found and found[1].upper() in self.servers:
            return [found[1].upper()]
        first, last = self.failed.get(cookie, (now, now))
        if cookie in self.servers and last - first < GONE:
            return [cookie]
        at, letters = next(self.turns) % len(self.servers), list(self.servers)
        late = {letter for letter, (_, last) in self.failed.items() if now - last < AVOID}
        return sorted(letters[at:] + letters[:at], key=late.__contains__)

    async def connect(self, letters: list[str], now: float) -> tuple[str, IOStream | None]:
        """Return the first of these servers that takes a connection, and the connection; None if no one does."""
        for letter in letters:
            try:
                stream = await self.client.connect(*self.servers[letter], timeout=CONNECT)
            except (OSError, StreamClosedError) as error:
                if letter not in self.failed:
                    why = getattr(error, "real_error", None) or error
                    print(f"server {letter} takes no connection: {why}", file=sys.stderr, flush=True)
                self.failed[letter] = self.failed.get(letter, (now, now))[0], now
                continue
            self.failed.pop(letter, None)
            stream.set_nodelay(True)
            return letter, stream
        return "", None


class Passage(httputil.HTTPMessageDelegate):
    """Pass one request to its server. Each part waits until the one before has been written.

    Args:
        proxy: chooses the server.
        front: the visitor's connection.
    """

    def __init__(self, proxy: Proxy, front: HTTP1Connection):
        self.proxy, self.front = proxy, front
        self.back: HTTP1Connection | None = None  # the server's; None if the request was refused
        self.size, self.cookie = 0, ""  # bytes of its body so far; the letter of a new cookie
        self.read = self.answered = self.complete = False  # all of it; the answer's head is sent; all of the answer is

    async def headers_received(self, start_line, headers) -> None:
        """Connect to a server and send it the head. Wait for the answer if it may become a websocket."""
        self.method, self.expects = start_line.method, "Expect" in headers
        if "Transfer-Encoding" in headers and start_line.method not in ("POST", "PUT", "PATCH"):
            return await self.refuse(411)
        if headers.get("Content-Length", "").isdigit() and int(headers["Content-Length"][:18]) > LARGEST:
            return await self.refuse(413)
        known, now = letter_of(headers.get("Cookie", "")), asyncio.get_running_loop().time()
        letter, stream = await self.proxy.connect(self.proxy.choices(start_line.path, known, now), now)
        if stream is None:
            return await self.refuse(502)
        self.cookie = "" if letter == known or CLASS.search(unquote(start_line.path)) else letter
        self.back = HTTP1Connection(stream, True, HTTP1ConnectionParameters(max_body_size=2**50))
        self.front.set_close_callback(self.back.close)
        bodiless = headers.get("Content-Length", "0") == "0" and "Transfer-Encoding" not in headers
        upgrade = headers.get("Upgrade", "").lower() == "websocket" and bodiless
        sent = passed(headers, "Upgrade" if upgrade else "close")
        sent.pop("X-Scheme", None)  # Tornado believes it more than the next
        sent["X-Real-Ip"], sent["X-Forwarded-Proto"] = self.front.context.remote_ip, self.front.context.protocol
        line = httputil.RequestStartLine(start_line.method, start_line.path, "")
        await self.written(self.back.write_headers(line, sent))
        self.answer = asyncio.ensure_future(self.pass_answer())
        if upgrade:
            self.back.finish()
            await self.answer

    async def data_received(self, chunk: bytes) -> None:
        """Send a part of the body. Without a length its head could not be refused."""
        self.size += len(chunk)
        if self.back is None and self.size > DROPPED:
            self.front.finish()
        elif self.back is not None and self.size > LARGEST:
            self.back, back = None, self.back
            await self.refuse(413)
            back.close()
        elif self.back is not None:
            await self.written(self.back.write(chunk))

    def finish(self) -> None:
        """End the request."""
        self.read = True
        if self.back is None:
            self.front.finish()
        elif not self.answer.done() and not self.back.stream.closed():
            self.back.finish()

    def on_connection_close(self) -> None:
        """Leave the server when the visitor has left."""
        if self.back is not None:
            self.back.close()

    async def pass_answer(self) -> None:
        """Pass the answer on. Without one say so; if it breaks off, break off."""
        back = self.back
        try:
            await back.read_response(Answer(self))
        except StreamClosedError:
            pass
        back.close()
        if not self.answered:
            self.back = None
            await self.refuse(502)
        elif not self.complete:
            self.front.close()

    async def refuse(self, code: int) -> None:
        """Answer with one sentence, or break off if an answer has begun."""
        if self.answered:
            return self.front.close()
        self.answered = self.complete = True
        reason, text = REFUSALS[code]
        headers = httputil.HTTPHeaders({"Content-Type": "text/plain", "Content-Length": str(len(text)), **SAFE})
        body = None if self.method == "HEAD" else text.encode()
        await self.written(self.front.write_headers(httputil.ResponseStartLine("", code, reason), headers, body))
        if self.read or self.expects:  # who waits for "100 Continue" sends nothing more
            self.front.finish()

    async def written(self, writing) -> None:
        """Wait until a part is written; if the other side has left, leave this one."""
        try:
            await writing
        except StreamClosedError:
            self.on_connection_close()


class Answer(httputil.HTTPMessageDelegate):
    """Pass the answer of a server to the visitor of a request."""

    def __init__(self, request: Passage):
        self.request, self.front = request, request.front

    async def headers_received(self, start_line, headers) -> None:
        """Send the head. After "101" both connections carry bytes, whatever they mean."""
        upgrade = start_line.code == 101
        if start_line.code < 200 and not upgrade or self.request.answered:
            return
        self.request.answered = True
        sent = passed(headers, "Upgrade" if upgrade else "")
        if self.request.cookie:
            sent.add("Set-Cookie", f"{COOKIE}={self.request.cookie}; Path=/; HttpOnly; SameSite=Lax")
        for name, value in SAFE.items() if not upgrade else ():
            sent.add(name, value)
        line = httputil.ResponseStartLine("", start_line.code, start_line.reason)
        await self.request.written(self.front.write_headers(line, sent))
        if upgrade and not self.front.stream.closed():
            self.request.complete = True
            ends = self.front.detach(), self.request.back.detach()
            ends[0].set_nodelay(True)
            for source, sink in (ends, ends[::-1]):
                TASKS.add(task := asyncio.ensure_future(carry(source, sink)))
                task.add_done_callback(TASKS.discard)

    async def data_received(self, chunk: bytes) -> None:
        """Send a part of the body."""
        await self.request.written(self.front.write(chunk))

    def finish(self) -> None:
        """End the answer."""
        self.request.complete = True
        if not self.front.stream.closed():
            self.front.finish()


async def carry(source: IOStream, sink: IOStream) -> None:
    """Carry bytes until one side closes, then close the other. No more is read than the other side takes."""
    try:
        while True:
            await sink.write(await source.read_bytes(65536, partial=True))
    except StreamClosedError:
        sink.close()
        source.close()


def letter_of(cookies: str) -> str:
    """Return the letter in a visitor's cookies, or ""."""
    found = re.search(rf"(?:^|[;,] *){COOKIE}=([A-Z]) *(?:[;,]|$)", cookies)
    return found[1] if found else ""


def passed(headers: httputil.HTTPHeaders, connection: str) -> httputil.HTTPHeaders:
    """Return the headers that are for the other end, not for this connection.

    Args:
        headers: of a request or an answer.
        connection: what to say of the next connection: "Upgrade" makes it a websocket, "" says nothing.
    """
    own = HOP | {token.strip().lower() for token in headers.get("Connection", "").split(",")}
    kept = httputil.HTTPHeaders()
    for name, value in headers.get_all():
        if name.lower() not in own:
            kept.add(name, value)
    kept.update({"Connection": connection} if connection else {})
    kept.update({"Upgrade": "websocket"} if connection == "Upgrade" else {})
    return kept


def place(text: str) -> tuple[str, int]:
    """Return address and port of `address:port`."""
    address, _, port = text.rpartition(":")
    return address.strip("[]"), int(port)


async def serve(listen: str, servers: dict[str, tuple[str, int]]) -> None:
    """Pass on what comes to `address:port` until this process is told to end."""
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    address, port = place(listen)
    front = HTTPServer(Proxy(servers), max_body_size=2**50)
    front.listen(port, address)
    await end.wait()
    front.stop()


if __name__ == "__main__":
    options = argparse.ArgumentParser(prog="proxy")
    options.add_argument("listen", help="address:port; without an address all of them")
    options.add_argument("servers", nargs="+", help="LETTER=address:port")
    given = options.parse_args()
    asyncio.run(serve(given.listen, {one[0]: place(one[2:]) for one in given.servers}))
