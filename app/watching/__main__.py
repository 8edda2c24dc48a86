"""The process that shows a loop: python -m steinlab.watching ADDRESS PORT. It reads `pipe` messages on its stdin."""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import panel as pn
from tornado.ioloop import IOLoop

from steinlab.server import patches, workarounds
from steinlab.watching.feed import Feed
from steinlab.watching.page import build

GRACE = 30.0  # seconds after the loop, and after its last page was closed
NICE = 15  # how much lower its priority is than the loop's


def main(address: str, port: str) -> None:
    """Serve the page until the loop has ended and nobody looks."""
    os.nice(NICE)
    feed = Feed(os.fdopen(os.dup(sys.stdin.fileno()), "rb"))
    workarounds.apply()
    origin = ["*"] if address in ("0.0.0.0", "::") else None
    server = pn.serve(
        {"/": lambda: build(feed)}, address=address, port=int(port), show=False, start=False, title="Watch",
        websocket_origin=origin, verbose=False,
    )  # fmt: skip
    server.start()
    print(json.dumps({"port": server.port}), flush=True)
    threading.Thread(target=feed.read, name="feed", daemon=True).start()
    loop = IOLoop.current()
    loop.add_callback(patches.begin_busy_cleanup)
    seen = time.monotonic()

    def tick():
        nonlocal seen
        if feed.pages or not feed.ended:
            seen = time.monotonic()
        if time.monotonic() - seen > GRACE:
            return loop.stop()
        loop.call_later(1, tick)

    tick()
    loop.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)
