"""A websocket of a stage's own beside Bokeh's: it carries frames and acknowledgements and nothing else.

A frame that goes through Bokeh's is a message of five parts, and each answer is an event of the page's document.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Callable
from functools import partial
from secrets import token_urlsafe
from weakref import WeakMethod, WeakValueDictionary

import numpy as np
from bokeh.server.urls import per_app_patterns
from bokeh.server.views.ws import WSHandler
from tornado.ioloop import IOLoop
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketHandler

from stein_core.base.errors import short

log = logging.getLogger(__name__)

PATTERN = r"/frames/([A-Za-z0-9_-]{16})"
GONE = 4404  # tells a browser that the page has ended
CHANNELS: WeakValueDictionary[str, Channel] = WeakValueDictionary()


class Channel:
    """Carry the frames of one stage to its browser, and what the browser says about them back.

    Args:
        take: a bound method that gets each message of the browser, on the event loop; an acknowledgement without the
            page's document.
        later: runs a function on the event loop with the page's document locked, see `steinlab.server.loop.soon`.

    Attributes:
        token: the browser names the channel by it. Nobody can guess it.
    """

    has_threads = True  # see `steinlab.server.memory.dismantle`

    def __init__(self, take: Callable[[dict], None], later: Callable[[Callable[[], None]], None]):
        self.token = token_urlsafe(12)
        self.take, self.later = WeakMethod(take), later
        self.socket: WebSocketHandler | None = None
        self._loop: IOLoop | None = None  # a cell of a lesson makes its stage on another thread
        CHANNELS[self.token] = self

    def schedule(self, call: Callable[[], None]) -> None:
        """Run a function on the event loop soon. It may only send. Any thread."""
        if self._loop is None:
            self.later(call)
        else:
            self._loop.add_callback(call)

    def connect(self, socket: WebSocketHandler) -> None:
        """Send frames to this browser. On the event loop."""
        self.socket, self._loop = socket, IOLoop.current()

    def send(self, frame: np.ndarray) -> bool:
        """Send a frame. On the event loop.

        Returns:
            False if no browser listens.
        """
        if self.socket is not None and not put(self.socket, framed(frame.tobytes())):
            self.socket = None
        return self.socket is not None

    def receive(self, text: str | bytes) -> None:
        """Take a message of the browser, or drop it with a line in the log."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            log.warning("frames: dropped what is no JSON: %r", short(text))
            return
        if not (take := self.take()):
            return
        if isinstance(data, dict) and "ack" in data:
            take(data)  # it changes nothing of the page
        else:
            self.later(partial(take, data))


def framed(payload: bytes) -> bytes:
    """Return a binary message of a websocket server (RFC 6455, section 5.2), which many can be sent."""
    size = len(payload)
    if size < 126:
        return struct.pack("!BB", 0x82, size) + payload
    if size < 2**16:
        return struct.pack("!BBH", 0x82, 126, size) + payload
    return struct.pack("!BBQ", 0x82, 127, size) + payload


def put(socket: WebSocketHandler, message: bytes) -> bool:
    """Write what `framed` has made. Tornado's own `write_message` makes it anew for each socket, and a task.

    Returns:
        False if the connection is closed.
    """
    connection = socket.ws_connection
    if connection is None or connection.stream.closed():
        return False
    try:
        connection.stream.write(message)
    except StreamClosedError:
        return False
    return True


class Heard:
    """Mixin of a component that sends frames, which others may follow.

    Attributes:
        listeners: each gets every frame, on the event loop.
    """

    listeners: tuple[Callable[[np.ndarray], None], ...] = ()

    def tell(self, frame: np.ndarray) -> None:
        """Give a frame to those who follow."""
        for listener in self.listeners:
            listener(frame)


class Channelled(Heard):
    """Mixin of a component that sends frames: through a channel of its own if the server has channels."""

    _line: Channel | None = None
    _later: Callable | None = None

    def begin_channel(self, later: Callable) -> Callable:
        """Open a channel.

        Args:
            later: as of `Channel`.

        Returns:
            What a `Streamer` may schedule its frames with.
        """
        if not is_installed():
            return later
        self._later, self._line = later, Channel(self._handle_msg, later)
        self.channel = self._line.token
        return self._line.schedule

    def send(self, frame: np.ndarray) -> None:
        """Show a frame."""
        self.tell(frame)
        if self._line is None:
            self._send_msg(frame)
        elif not self._line.send(frame):
            self._later(partial(self._send_msg, frame))


class FramesHandler(WebSocketHandler):
    """Connect a browser with a channel."""

    max_message_size = 4096
    channel: Channel | None = None
    check_origin = WSHandler.check_origin

    def initialize(self, **context) -> None:
        """Take what Bokeh gives every handler of an app."""

    def open(self, token: str) -> None:
        self.set_nodelay(True)
        self.channel = CHANNELS.get(token)
        if self.channel is None:
            self.close(GONE, "this page has ended")
        else:
            self.channel.connect(self)

    def on_message(self, message: str | bytes) -> None:
        if self.channel:
            self.channel.receive(message)

    def on_close(self) -> None:
        if self.channel and self.channel.socket is self:
            self.channel.socket = None


def is_installed() -> bool:
    """Whether servers that start later have channels."""
    return any(pattern[0] == PATTERN for pattern in per_app_patterns)


def install() -> None:
    """Let servers that start later have channels."""
    if not is_installed():
        per_app_patterns.append((PATTERN, FramesHandler))
