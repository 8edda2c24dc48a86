"""python tests/browser/classroom.py [--followers 200] [--json] [--kill]: one lecturer and a class that follows.

The followers are websocket clients, as a page of `steinlab.classroom.page` is one. They acknowledge every eighth frame.
The lecturer turns alpha about every two seconds. Printed: frames a second of a follower, the time within which 95 % of
the slider's moves reach every tenth follower, how many answers are lost, and what the server takes.
--kill ends the server with SIGKILL while answers come, and starts it again. Clients and server share this machine.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import tempfile
import time
import uuid
from pathlib import Path

import numpy as np
from chromium import Server, free_port
from crowd import cpu, memory
from tornado.httpclient import HTTPClientError
from tornado.websocket import WebSocketClosedError, websocket_connect
from visitors import Visitor, repulsion

QUERY = "?target=oring&methods=svgd&method.particles=50"
STOPS = (65, 55)  # of alpha's slider


class Follower:
    """One phone. It joins at a moment of its own within five seconds.

    frames: when each came; waits: seconds from a move of the slider to its frame; confirmed: whether the server has the
    answer.
    """

    def __init__(self, url: str, code: str, number: int):
        self.url, self.code, self.who, self.number = url, code, uuid.uuid4().hex, number
        self.frames: list[float] = []
        self.waits: list[float] = []
        self.question, self.confirmed, self.pending, self.repulsion = None, False, None, 0.0
        self.taken = 0

    async def follow(self, moved: dict) -> None:
        """Take what comes, and connect again when the connection is lost."""
        address = f"{self.url.replace('http', 'ws')}/class/{self.code}/socket?who={self.who}"
        await asyncio.sleep(self.number % 50 / 10)
        while True:
            try:
                self.socket = await websocket_connect(address, connect_timeout=20)
                self.taken = 0
                while (message := await self.socket.read_message()) is not None:
                    await self._take(message, moved)
            except (OSError, HTTPClientError, WebSocketClosedError):
                pass
            await asyncio.sleep(0.4 + 0.4 * (self.number % 10) / 10)

    async def answer(self, value: float) -> None:
        """Answer the question that stands. The answer waits until the server has it."""
        self.pending = {"answer": value, "to": self.question, "name": f"follower {self.number}", "own": False}
        try:
            await self.socket.write_message(json.dumps(self.pending))
        except WebSocketClosedError:  # the connection is lost; it is sent again when the follower is back
            pass

    async def _take(self, message: str | bytes, moved: dict) -> None:
        if isinstance(message, str):
            told = json.loads(message)
            if told.get("question"):
                self.question = told["question"]["id"]
            if "answered" in told:
                self.confirmed = self.confirmed or told["mine"]["value"] == self.pending["answer"]
            elif "mine" in told and self.pending and not told["mine"]:
                await self.socket.write_message(json.dumps(self.pending))
            return
        now, frame = time.monotonic(), np.frombuffer(message, np.float32)
        self.frames.append(now)
        self.taken += 1
        if self.taken % 8 == 0:
            await self.socket.write_message(json.dumps({"ack": self.taken}))
        if self.number % 10 == 0:  # of a tenth of them: numpy on all would take the processor from the server
            long = repulsion(frame)
            before = moved.get("repulsion", {}).get(self.number)
            if before and self.waits_for != moved["at"] and abs(long / before - 1) > 0.3:
                self.waits_for = moved["at"]
                self.waits.append(now - moved["at"])
            self.repulsion = long

    waits_for = 0.0


async def play(server: Server, folder: Path, port: int, options) -> dict:
    lecturer = Visitor(server.url, options.query, turns=True, pace=1 / 60)  # as a screen paints
    await lecturer.open()
    watching = asyncio.create_task(watch(lecturer))
    await asyncio.sleep(options.settle)
    await lecturer.click("Class")
    code, key = await until(lambda: lecturer.kept_class and lecturer.kept_class.split())
    moved: dict = {}
    followers = [Follower(server.url, code, k) for k in range(options.followers)]
    tasks = [asyncio.create_task(one.follow(moved)) for one in followers]
    await until(lambda: all(one.frames for one in followers))
    begun, before = time.monotonic(), cpu(server.process.pid)
    alone = len(lecturer.pictures)
    while time.monotonic() < begun + options.seconds:
        moved["repulsion"] = {one.number: one.repulsion for one in followers}
        stop = STOPS[0] if moved.get("stop") == STOPS[1] else STOPS[1]
        moved |= {"at": time.monotonic(), "stop": stop}
        await lecturer.turn("alpha", 120 - stop if stop == STOPS[0] else 65)
        await asyncio.sleep(2)
    took, share = time.monotonic() - begun, cpu(server.process.pid) - before
    rates = [sum(begun < t for t in one.frames) / took for one in followers]
    waits = sorted(wait for one in followers for wait in one.waits)
    result = {
        "followers": options.followers,
        "frames": round(min(rates), 1),
        "median_frames": round(statistics.median(rates), 1),
        "lecturer_frames": round((len(lecturer.pictures) - alone) / took, 1),
        "p95_ms": round(1000 * waits[int(0.95 * len(waits))]) if waits else None,
        "waits": len(waits),
        "server_share": round(share / took, 3),
        "server_mb": round(memory(server.process.pid)),
    }
    result |= await ask(server, folder, port, lecturer, watching, (code, key), followers, options)
    for task in [*tasks, watching]:
        task.cancel()
    return result


async def ask(server, folder, port, lecturer, watching, room, followers, options) -> dict:
    """All answer within five seconds; with --kill the server dies meanwhile, and comes back."""
    await lecturer.fill("Question", "How much?")
    await lecturer.click("Ask the class")
    await until(lambda: all(one.question for one in followers))
    begun = time.monotonic()

    async def one(follower: Follower, k: int):
        await asyncio.sleep(5 * k / len(followers))
        await follower.answer(k / len(followers))

    asked = [asyncio.create_task(one(follower, k)) for k, follower in enumerate(followers)]
    if options.kill:
        await asyncio.sleep(2.5)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        watching.cancel()
        restarted = time.monotonic()
        again = await asyncio.to_thread(Server, folder, (), None, ("-m", "panel"), port)
        server.process = again.process
        back = time.monotonic() - restarted
    await asyncio.gather(*asked)
    await until(lambda: all(follower.confirmed for follower in followers), 60)
    kept = [json.loads(line) for line in (Path(os.environ["STEINLAB_CACHE"]) / "classes" / f"{room[0]}.jsonl").open()]
    values = {fact["answer"][1]: fact["answer"][3] for fact in kept if "answer" in fact}
    lost = sum(values.get(follower.who) != k / len(followers) for k, follower in enumerate(followers))
    more = {"restart_s": round(back, 1)} if options.kill else {}
    return {"lost": lost, "answers": len(values), "answers_s": round(time.monotonic() - begun, 1), **more}


async def watch(lecturer: Visitor) -> None:
    """Follow the lecturer's page until the server ends."""
    try:
        await lecturer.watch(float("inf"))
    except ConnectionError:
        lecturer.kill()


async def until(found, seconds: float = 120.0):
    """Wait for what a function finds."""
    end = time.monotonic() + seconds
    while not (result := found()):
        if time.monotonic() > end:
            raise TimeoutError("what was awaited did not come")
        await asyncio.sleep(0.02)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--followers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--settle", type=float, default=20, help="seconds before it begins: background compiling ends")
    parser.add_argument("--query", default=QUERY)
    parser.add_argument("--kill", action="store_true", help="end the server while answers come")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("STEINLAB_CACHE", folder)
        port = free_port()
        server = Server(Path(folder), port=port)
        try:
            result = asyncio.run(play(server, Path(folder), port, options))
        finally:
            server.stop()
    if options.json:
        return print(json.dumps(result))
    for name, value in result.items():
        print(f"{name:>16} {value}")


if __name__ == "__main__":
    main()
