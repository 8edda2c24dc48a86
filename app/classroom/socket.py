"""How phones reach a class: its page, and a websocket each."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from typing import Any

from bokeh.server.urls import per_app_patterns
from bokeh.server.views.ws import WSHandler
from tornado.web import HTTPError, RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from stein_core.base.errors import short
from stein_core.sweep.batches import ENDS
from steinlab.classroom.page import KINDS, follower_page, stage_script
from steinlab.classroom.room import Room
from steinlab.classroom.rooms import ROOMS
from steinlab.classroom.runs import SCRIPTS
from steinlab.server.channel import put
from steinlab.server.messages import flag, number, text, whole

log = logging.getLogger(__name__)

WINDOW = 24  # frames on the way to one phone, at most: it says every eighth that it has come
MESSAGES = 40  # that one phone may send in a second
UNKNOWN, MANY, FULL, RUDE = 4404, 4429, 4503, 4408  # reasons why a connection ends
SCHEMAS = (
    {"ack": whole},
    {"answer": number, "to": whole, "name": text, "own": flag},
    {"ended": whole, "result": number, "to": whole, "of": number},
)


class Follower(WebSocketHandler):
    """One phone's connection. It may answer the question that stands, and nothing else."""

    max_message_size = 4096
    check_origin = WSHandler.check_origin
    room: Room | None = None

    def initialize(self, **context: Any) -> None:
        """Take what Bokeh gives every handler of an app."""
        self.sent = self.acked = self.heard = 0
        self.since = 0.0
        self.waiting: dict[int, bytes] = {}

    def open(self, code: str) -> None:
        self.set_nodelay(True)
        self.who = self.get_query_argument("who", "")
        if not re.fullmatch(r"[A-Za-z0-9-]{20,40}", self.who):
            return self.close(RUDE, "who: 20 to 40 letters and digits.")
        try:
            room = ROOMS.find(code, self.request.remote_ip)
        except PermissionError as error:
            return self.close(MANY, str(error))
        if room is None:
            return self.close(UNKNOWN, "There is no class with this code.")
        if not room.join(self, self.who):
            return self.close(FULL, "The class is full.")
        self.room = room

    def tell(self, text: str) -> None:
        """Send a text."""
        try:
            self.write_message(text)
        except WebSocketClosedError:
            pass  # `on_close` follows

    def show(self, frame: bytes, row: int = 0) -> None:
        """Send a frame, as `framed` has made it, now or when those on the way have come. The newest of a row wins."""
        if self.sent - self.acked >= WINDOW:
            self.waiting[row] = frame
            return
        self.sent += 1
        put(self, frame)

    def on_message(self, message: str | bytes) -> None:
        if self.room is None or not self._may_speak():
            return
        try:
            data = json.loads(message)
        except (ValueError, RecursionError):
            data = None
        fitting = [one for one in SCHEMAS if isinstance(data, dict) and data.keys() == one.keys()]
        if not fitting or not all(fits(data[name]) for name, fits in fitting[0].items()):
            log.warning("class: dropped a message that no page of ours sends: %r", short(message))
            return
        if "ack" in data:
            self.acked = max(self.acked, min(data["ack"], self.sent))
            waiting, self.waiting = self.waiting, {}
            for row, frame in waiting.items():
                self.show(frame, row)
        elif "ended" in data:
            if self.room.on_run and data["ended"] < len(ENDS):
                self.room.on_run(self.who, data["to"], data["of"], ENDS[data["ended"]], data["result"])
        else:
            problem = self.room.answer(self.who, data["to"], data["answer"], data["name"], data["own"])
            mine = {"problem": problem} if problem else {"mine": self.room.mine(self.who)}
            self.tell(json.dumps({"answered": data["to"], **mine}))

    def on_close(self) -> None:
        if self.room:
            self.room.leave(self)

    def _may_speak(self) -> bool:
        now = time.monotonic()
        if now - self.since > 1:
            self.since, self.heard = now, 0
        self.heard += 1
        if self.heard > MESSAGES:
            self.close(RUDE, "Too many messages.")
        return self.heard <= MESSAGES


class Plain(RequestHandler):
    """A handler that needs nothing of the app."""

    def initialize(self, **context: Any) -> None:
        """Take what Bokeh gives every handler of an app."""

    def send(self, kind: str, body: str | bytes, keep: str = "no-cache") -> None:
        """Send a text of this kind; `keep` says how long a browser may keep it."""
        self.set_header("Content-Type", f"text/{kind}; charset=utf-8")
        self.set_header("Cache-Control", keep)
        self.finish(body)


class Page(Plain):
    """The page of a follower: the same for every code, so that it tells nobody which codes there are."""

    def get(self, code: str | None = None) -> None:
        """Send it."""
        self.send("html", follower_page())


class Script(Plain):
    """The code of a stage that is not that of page Particles."""

    def get(self, kind: str) -> None:
        """Send it, if a lecturer has shown such a stage."""
        if kind not in KINDS:
            raise HTTPError(404)
        self.send("javascript", stage_script(KINDS[kind]))


class OwnRun(Plain):
    """What a phone runs to make its own run. Its name is its hash. The code of the class finds the process."""

    def get(self, name: str) -> None:
        """Send it."""
        if name not in SCRIPTS:
            raise HTTPError(404)
        self.set_header("Content-Encoding", "gzip")
        self.send("javascript", SCRIPTS[name], "max-age=86400, immutable")


PATTERNS: list[tuple[str, Callable]] = [
    (r"/class/?", Page),
    (r"/class/kind/([A-Za-z]+)\.js", Script),
    (r"/class/([^/]{1,40})/?", Page),
    (r"/class/([^/]{1,40})/socket", Follower),
    (r"/class/[^/]{1,40}/run/([0-9a-f]{16})\.js", OwnRun),
]


def install() -> None:
    """Let servers that start later have classes."""
    known = {pattern[0] for pattern in per_app_patterns}
    per_app_patterns.extend(one for one in PATTERNS if one[0] not in known)
