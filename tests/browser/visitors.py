"""Visitors without a browser: websocket clients that open a page, acknowledge every picture at once and turn its
sliders.

They speak Bokeh's protocol: a message is three texts (header, metadata, content) and two more parts for every buffer.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from typing import Any, Iterator

import numpy as np
from tornado.httpclient import AsyncHTTPClient
from tornado.websocket import websocket_connect

STAGES = ("Stage", "WaveStage")
JOB = re.compile(
    r"[\d,]+ of [\d,]+ (runs|steps), [^&<]*|Waiting for [^&<]* to finish: position \d+ of \d+ in the queue"
)
KEEP_CLASS = re.compile(r'"keep_class", "([^"]+)"')
AGAIN = 1.0  # seconds without a picture after which a browser acknowledges the last one again


class Visitor:
    """One open page. pictures: when each came; bytes: of all messages; turns: whether alpha will be moved, whose
    answers are timed in waits (seconds), asked: how often it was. said: the last text that tells how far a job is.
    pace: seconds between two paintings, 0 for none."""

    def __init__(self, url: str, query: str = "", turns: bool = False, pace: float = 0.0):
        self.url, self.query, self.turns, self.pace = url, query, turns, pace
        self.pictures: list[float] = []
        self.waits: list[float] = []
        self.asked = 0
        self.bytes, self.last, self.row, self.said = 0, None, 0, ""
        self.visible, self.repulsion = True, 0.0
        self._turned: tuple[float, Any] | None = None
        self._painted, self._left = 0.0, False
        self._again = 0.0  # when a picture was last acknowledged again
        self._reading, self._writing = {}, asyncio.Lock()
        self.kept_class = ""  # code and key of the class that it leads
        self.frames = None  # the stage's own websocket, if it has one

    async def open(self) -> None:
        """Load the page, pull its document and say that it is ready, as a browser does."""
        page = (await AsyncHTTPClient().fetch(self.url + self.query, request_timeout=120)).body.decode()
        token = re.search(r'"token":"([^"]+)"', page).group(1)
        self.socket = await websocket_connect(
            self.url.replace("http", "ws") + "/ws", subprotocols=["bokeh", token], max_message_size=2**30
        )
        await self._message()  # the server's ACK
        await self._send("PULL-DOC-REQ", {})
        header = {}
        while header.get("msgtype") != "PULL-DOC-REPLY":  # a change of the page may come first
            header, document, _ = await self._message()
        self.objects = {one["id"]: one for one in objects(document)}
        self.stage = next(
            (one["id"] for one in self.objects.values() if one["attributes"].get("class_name") in STAGES), None
        )
        await self._event("document_ready", {})
        if self.stage:
            token = self.objects[self.stage]["attributes"]["data"].get("attributes", {}).get("channel")
            if token:
                address = f"{self.url.replace('http', 'ws')}/frames/{token}"
                self.frames = await websocket_connect(address, max_message_size=2**30)
            await self._say({"ready": True})

    def widget(self, label: str) -> dict:
        """The slider or button whose label is this expression."""
        for one in self.objects.values():
            data = one["attributes"].get("data")
            if isinstance(data, dict) and re.fullmatch(label, str(data.get("attributes", {}).get("label"))):
                return one
        raise LookupError(f"no widget {label!r}")

    async def turn(self, label: str, value: float) -> None:
        """Move a slider to a stop or value. Of alpha the answer is the first picture whose repulsion has jumped."""
        self.asked += 1
        self._turned = (time.monotonic(), self.repulsion) if self.turns else None
        await self._change(self.widget(label)["attributes"]["data"]["id"], "value", value)

    async def fill(self, label: str, text: str) -> None:
        """Write into a field."""
        await self._change(self.widget(label)["attributes"]["data"]["id"], "value", text)

    async def click(self, label: str) -> None:
        """Click a button."""
        await self._event("dom_event", {"model": {"id": self.widget(label)["id"]}, "node": "click", "data": {}})

    async def go(self, link: str) -> None:
        """To another page, as by the browser's Back."""
        browser = next(one["id"] for one in self.objects.values() if one["attributes"].get("class_name") == "Browser")
        await self._event("data_event", {"model": {"id": browser}, "data": {"back": link}})

    async def key(self, name: str) -> None:
        """Press a key of the stage's."""
        await self._say({"key": name})

    async def watch(self, until: float) -> None:
        """Take what comes and acknowledge pictures until a moment of time.monotonic()."""
        while (left := until - time.monotonic()) > 0:
            for read in (self._message, *[self._frame] * (self.frames is not None)):  # they go on when the time is over
                if read.__name__ not in self._reading:
                    self._reading[read.__name__] = asyncio.ensure_future(read())
            waiting = self._reading.values()
            done, _ = await asyncio.wait(waiting, timeout=min(left, AGAIN), return_when=asyncio.FIRST_COMPLETED)
            if self.visible and self.pictures and time.monotonic() > max(self.pictures[-1], self._again) + AGAIN:
                self._again = time.monotonic()
                await self._acknowledge()
            if (reading := self._reading.get("_frame")) in done:
                del self._reading["_frame"]
                await self._picture(np.frombuffer(reading.result(), np.float32))
            if (reading := self._reading.get("_message")) not in done:
                continue
            del self._reading["_message"]
            _, content, buffers = reading.result()
            self.objects |= {one["id"]: one for one in objects(content) if "id" in one}  # what the page has got since
            if found := KEEP_CLASS.search(json.dumps(content)):
                self.kept_class = found[1]
            for event in content.get("events", ()):
                if found := JOB.search(str(event.get("new"))):
                    self.said = found[0]
                data = event.get("msg_data", {}).get("values", {})
                if (
                    event.get("msg_data", {}).get("name") == "esm_event"
                    and buffers
                    and self.stage
                    and self.stage in json.dumps(data)
                ):
                    await self._picture(np.frombuffer(buffers[0], np.float32))

    async def close(self) -> None:
        """Leave, as a tab that is closed."""
        self._stop_reading()
        for socket in filter(None, (self.frames, self.socket)):
            socket.close()

    def kill(self) -> None:
        """Vanish without a word, as a machine that loses power."""
        self._stop_reading()
        for socket in filter(None, (self.frames, self.socket)):
            socket.protocol.stream.close()

    def _stop_reading(self) -> None:
        self._left = True
        for reading in self._reading.values():
            reading.cancel()

    async def _picture(self, frame: np.ndarray) -> None:
        now = time.monotonic()
        self.pictures.append(now)
        self.last, self.row = float(frame[0]), int(frame[1])
        self.repulsion = repulsion(frame) if self.turns else 0.0
        if self._turned and abs(self.repulsion / self._turned[1] - 1) > 0.3:
            self.waits.append(now - self._turned[0])
            self._turned = None
        if self.visible and self.pace:
            self._painted = max(now, self._painted + self.pace)
            asyncio.get_running_loop().call_later(self._painted - now, self._paint, self.last)
        elif self.visible:
            await self._acknowledge()

    def _paint(self, number: float) -> None:
        self._painting = asyncio.ensure_future(self._say({"ack": number, "row": self.row}))

    async def _acknowledge(self) -> None:
        await self._say({"ack": self.last, "row": self.row})

    async def _say(self, data: dict) -> None:
        if self._left:
            return
        if self.frames and data.keys() & {"ack", "ready"}:
            return await self.frames.write_message(json.dumps(data))
        await self._event("data_event", {"model": {"id": self.stage}, "data": data})

    async def _event(self, name: str, values: dict) -> None:
        entries = [
            [key, {"type": "map", "entries": list(map(list, value.items()))} if key == "data" else value]
            for key, value in values.items()
        ]
        event = {"type": "event", "name": name, "values": {"type": "map", "entries": entries}}
        await self._send(
            "PATCH-DOC", {"events": [{"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": event}]}
        )

    async def _change(self, model: str, attribute: str, value: Any) -> None:
        await self._send(
            "PATCH-DOC", {"events": [{"kind": "ModelChanged", "model": {"id": model}, "attr": attribute, "new": value}]}
        )

    async def _send(self, kind: str, content: dict) -> None:
        async with self._writing:
            for part in ({"msgid": uuid.uuid4().hex, "msgtype": kind}, {}, content):
                await self.socket.write_message(json.dumps(part))

    async def _message(self) -> tuple[dict, dict, list[bytes]]:
        parts = [json.loads(await self._part()) for _ in range(3)]
        buffers = []
        for _ in range(parts[0].get("num_buffers", 0)):
            await self._part()
            buffers.append(await self._part())
        return parts[0], parts[2], buffers

    async def _frame(self) -> bytes:
        frame = await self.frames.read_message()
        if frame is None:
            raise ConnectionError("the server has closed the stage's connection")
        self.bytes += len(frame)
        return frame

    async def _part(self) -> str | bytes:
        part = await self.socket.read_message()
        if part is None:
            raise ConnectionError("the server has closed the connection")
        self.bytes += len(part)
        return part


def repulsion(frame: np.ndarray) -> float:
    """Mean length of the repulsion on the particles of a picture's first panel, see `steinlab.stage.wire.pack`."""
    count, _, _, _, metrics, fixed = frame[3:9].astype(int)
    rows = frame[9 + metrics + 2 * fixed :][: 9 * count].reshape(count, 9)
    return float(np.hypot(rows[:, 6], rows[:, 7]).mean())


def objects(tree: Any) -> Iterator[dict]:
    """Every model of a document."""
    if isinstance(tree, dict):
        if tree.get("type") == "object" and "attributes" in tree:
            yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for one in tree:
            yield from objects(one)
