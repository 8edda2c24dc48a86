"""python tests/browser/crowd.py [--playing 10] [--idle 0] [--hidden 0] [--job KIND]: one server and many visitors at
once.

With a job there is one visitor more, who runs something heavy all the while: a sweep, NUTS, or three networks of h =
100; or there are eight, who go through all of lesson 9 (or of 10) at once, and again every ten seconds. The visitors
are websocket clients that acknowledge every picture at once. Printed: pictures per second of each, the time from a
slider's move to its picture, and what the server takes. Clients and server share this machine.
"""

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

from chromium import Server
from visitors import Visitor

QUERY = "?target=oring&methods=svgd&method.particles=50"
# page, buttons; none of it has been computed before
JOBS = {
    "sweep": (
        f"?page=collapse&methods=svgd,smi&dims=10,30,100,300&alphas={random.uniform(1, 2):.6f}&seeds=5",
        ["Run .*"],
    ),
    "nuts": ("?page=wave&methods=map&width=30", ["Compute NUTS here"]),
    "networks": ("?page=wave&methods=svgd,smi,vi&width=100", []),
    "lessons": ("?page=lessons&lesson=09", 5 * ["Next"]),
    "own model": ("?page=lessons&lesson=10", 5 * ["Next"]),
}


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has taken."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Its resident megabytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def turn_sliders(visitors: list[Visitor], until: float) -> None:
    """Each moves alpha about every three seconds, at moments of its own."""

    async def one(visitor: Visitor, number: int):
        stop = 55
        await asyncio.sleep(3 * number / len(visitors))
        while time.monotonic() < until - 2:
            stop = 120 - stop  # alpha 0.5 or 1.6
            await visitor.turn("alpha", stop)
            await asyncio.sleep(3)

    await asyncio.gather(*(one(visitor, i) for i, visitor in enumerate(visitors)))


async def start(visitor: Visitor, query: str, buttons: list[str], again: bool) -> None:
    """Click them one after the other, and again every ten seconds, on the page as it was opened."""
    for button in buttons:
        await visitor.click(button)
    while again:
        await asyncio.sleep(10)
        await visitor.go(query)
        for button in buttons:
            await visitor.click(button)


async def crowd(server: Server, options) -> None:
    pid = server.process.pid
    before = memory(pid)
    playing = [Visitor(server.url, options.query, turns=True) for _ in range(options.playing)]
    paused, hidden = ([Visitor(server.url, options.query) for _ in range(n)] for n in (options.idle, options.hidden))
    for visitor in playing + paused + hidden:
        await visitor.open()
        asyncio.create_task(visitor.watch(float("inf")))
    for visitor in paused:
        await visitor.key("space")
    for visitor in hidden:
        visitor.visible = False
    await asyncio.sleep(options.settle)
    if options.job:
        query, buttons = JOBS[options.job]
        busy = [Visitor(server.url, query) for _ in range(8 if "lessons" in query else 1)]
        for visitor in busy:
            await visitor.open()
            asyncio.create_task(visitor.watch(float("inf")))
        await asyncio.sleep(options.settle)
        for visitor in busy:
            asyncio.create_task(start(visitor, query, buttons, again=len(busy) > 1))
        await asyncio.sleep(5)
    seconds, own = options.seconds, time.process_time()
    seen, sent, spent, began = (
        [len(v.pictures) for v in playing],
        sum(v.bytes for v in playing),
        cpu(pid),
        time.monotonic(),
    )
    await turn_sliders(playing, began + seconds)
    await asyncio.sleep(max(0.0, began + seconds - time.monotonic()))
    seconds = time.monotonic() - began
    spent = cpu(pid) - spent
    rates = sorted((len(v.pictures) - n) / seconds for v, n in zip(playing, seen))
    if options.job:
        print(f"{options.job} beside them: {busy[0].said or f'{len(busy[0].pictures)} pictures'}")
    everyone = options.playing + options.idle + options.hidden
    print(f"{options.playing} playing, {options.idle} paused, {options.hidden} hidden, {seconds:.0f} s")
    if rates:
        frames = sum(rates) * seconds
        waits = sorted(1000 * wait for v in playing for wait in v.waits) or [float("nan")]
        print(
            f"pictures a second of each: least {rates[0]:.1f}, median {statistics.median(rates):.1f}, most "
            f"{rates[-1]:.1f}"
        )
        print(
            f"slider to its frame: median {statistics.median(waits):.0f} ms, "
            f"p95 {waits[int(0.95 * len(waits))]:.0f} ms, "
            f"most {waits[-1]:.0f} ms ({len(waits)} of {sum(v.asked for v in playing)} moves)"
        )
        print(
            f"{(sum(v.bytes for v in playing) - sent) / frames / 1000:.1f} kB a frame, "
            f"{1000 * spent / frames:.1f} ms of the server's CPU"
        )
    print(f"visitors: {100 * (time.process_time() - own) / seconds:.0f} % of a core")
    share = 100 * spent / seconds
    print(
        f"server: {share:.0f} % of a core, {memory(pid):.0f} MB; a visitor {share / everyone:.1f} %, "
        f"{(memory(pid) - before) / everyone:.1f} MB"
    )


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--playing", type=int, default=10)
    options.add_argument("--idle", type=int, default=0)
    options.add_argument("--hidden", type=int, default=0)
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument(
        "--settle", type=float, default=15, help="seconds before it is measured: background compiling ends"
    )
    options.add_argument("--query", default=QUERY)
    options.add_argument("--job", choices=JOBS)
    options = options.parse_args()
    server = Server(Path(tempfile.mkdtemp()))
    try:
        asyncio.run(crowd(server, options))
    finally:
        server.stop()
    if "Traceback" in server.log():
        print(server.log())


if __name__ == "__main__":
    main()
