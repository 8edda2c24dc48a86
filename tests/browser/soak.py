"""python tests/browser/soak.py [--minutes 30] [--seed 0]: visitors come, play, turn sliders, read lessons, go from page
to page, start long jobs, leave or vanish, at random.

At the end nobody is left, and neither is any session, run, view or thread of theirs, nor a program beyond those that
are kept; no page had stopped, memory is flat, and nothing was logged as an exception. Exits with 1 where one of these
fails.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from chromium import Server
from crowd import memory
from visitors import Visitor

MOST = 8  # visitors at a time
POOLED = re.compile(r"jobs|[a-z-]+ \d")  # a pool begins a thread when it first needs it, and keeps it
COMING = re.compile("WebSocket connection|ServerConnection created|Failed sending")
GONE = 80  # seconds after which the server has forgotten a closed page and looked for what it left
LINKS = [
    "",
    "?target=oring&methods=svgd,smi",
    "?target=squiggle&methods=smi",
    "?target=gaussian&methods=svgd&dim=20",
    "?target=oring&methods=svgd&method.particles=200",
    "?page=location",
    "?page=collapse",
    "?page=wave&methods=svgd,map&width=5",
    "?page=lessons",
    "?page=lessons&lesson=02&cell=5",
    "?page=lessons&lesson=08&cell=9",
    "?page=collapse&methods=svgd,smi&dims=3,30&particles=7",
    "?page=notation",
    "?target=no&methods=such&dim=thing",
    "?page=wave&methods=map&width=3&rows=2",
]


async def live(visitor: Visitor, chance: random.Random, seconds: float) -> None:
    """One visitor's stay."""
    await visitor.open()
    watching = asyncio.create_task(visitor.watch(time.monotonic() + seconds))
    while not watching.done():
        await asyncio.sleep(chance.uniform(0.2, 2))
        act = chance.random()
        if watching.done():
            continue
        if act > 0.97:
            await visitor.go(chance.choice(LINKS))
        elif act > 0.94:
            for label in ("Compute NUTS here", "Run .*|Recompute .*"):
                with suppress(LookupError):  # this page has another, or none
                    await visitor.click(label)
        elif visitor.stage is None:
            continue
        elif act < 0.5:
            label, most = chance.choice([("alpha", 60), ("particles", 40), ("step size", 30), ("learning rate", 30)])
            with suppress(LookupError):
                await visitor.turn(label, chance.randint(2, most))
        elif act < 0.7:
            await visitor.key(chance.choice(["space", "right", "r"]))
        else:
            visitor.visible = act < 0.9
    await watching
    if chance.random() < 0.5:
        await visitor.close()
    else:
        visitor.kill()


def counts(server: Server, file: Path) -> dict:
    """What is alive in the server."""
    file.unlink(missing_ok=True)
    server.process.send_signal(signal.SIGUSR1)
    for _ in range(600):
        if file.exists():
            return json.loads(file.read_text()) | {"MB": round(memory(server.process.pid))}
        time.sleep(0.1)
    raise RuntimeError("the server does not answer")


async def drive(server: Server, chance: random.Random, minutes: float, pid: int) -> list[tuple[float, int]]:
    """Visitors until the time is over; memory once a minute."""
    began, here, seen, visits = time.monotonic(), set(), [], 0
    while (gone := (time.monotonic() - began) / 60) < minutes:
        here = {stay for stay in here if not stay.done() or stay.result()}  # a stay that has failed raises here
        while len(here) < MOST:
            visits += 1
            stay = live(Visitor(server.url, chance.choice(LINKS)), chance, chance.uniform(1, 40))
            here.add(asyncio.create_task(stay))
        if gone >= len(seen):
            maps = len(Path(f"/proc/{pid}/maps").read_text().splitlines())
            seen.append((memory(pid), maps))
            print(f"minute {gone:.0f}: {visits} visits, {seen[-1][0]:.0f} MB, {maps} memory maps", flush=True)
        await asyncio.sleep(0.2)
    await asyncio.gather(*here)
    return seen


def grown(seen: list[tuple[float, int]]) -> list[str]:
    """What is wrong with (memory, memory maps) of every minute. Each program takes both, and maps tell when one came:
    so the longest time without another is looked at. One sample is worth little: who is here differs, and a few closed
    pages wait to be cleared away."""
    spells = [[]]
    for one in seen:
        if spells[-1] and abs(one[1] / spells[-1][0][1] - 1) > 0.01:
            spells.append([])
        spells[-1].append(one)
    quiet = [megabytes for megabytes, maps in max(spells, key=len)]
    if len(quiet) < 4:
        return ["programs were compiled all the time, so memory was not compared: more minutes"]
    early, late = (statistics.median(half) for half in (quiet[: len(quiet) // 2], quiet[len(quiet) // 2 :]))
    print(f"for {len(quiet) - 1} minutes no program came; memory in their halves: {early:.0f} MB, then {late:.0f} MB")
    return [f"memory grew from {early:.0f} to {late:.0f} MB while nothing was compiled"] * (late > 1.03 * early)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.minutes < 5:
        parser.error("--minutes: at least 5, to compare memory")
    folder = Path(tempfile.mkdtemp())
    file = folder / "counts.json"
    environment = {**os.environ, "STEINLAB_COUNTS": str(file)}
    server = Server(folder, (), environment, [str(Path(__file__).with_name("watched.py"))])
    chance, problems = random.Random(options.seed), []
    try:
        asyncio.run(
            drive(server, chance, min(2, options.minutes), server.process.pid)
        )  # every program is compiled once
        time.sleep(GONE)
        before = counts(server, file)
        seen = asyncio.run(drive(server, chance, options.minutes, server.process.pid))
        time.sleep(GONE)
        after = counts(server, file)
    finally:
        server.stop()
    print(f"before: {before}\nafter:  {after}")
    for kind in ("sessions", "runs", "views"):
        if after[kind]:
            problems.append(
                f"{after[kind]} {kind} are left, {after['garbage']} of the runs are garbage, one is held by "
                f"{after['held']}"
            )
    if after["programs"] > after["kept"] or after["meters"] > after["kept"]:
        problems.append(
            f"{after['programs']} programs and {after['meters']} of diagnostics are left, where {after['kept']} are "
            f"kept"
        )
    if after["stalled"]:
        problems.append(f"{after['stalled']} pages waited in vain for a picture that was ready")
    extra = Counter(after["threads"]) - Counter(before["threads"])
    for name in [name for name in extra if POOLED.fullmatch(name) and after["threads"].count(name) == 1]:
        del extra[name]
    if extra:
        problems.append(f"threads are left: {dict(extra)}")
    problems += grown(seen)
    if "Traceback" in server.log() or "ERROR" in server.log():
        said = "\n".join(line for line in server.log().splitlines() if not COMING.search(line))
        problems.append(f"the log has errors:\n{said[-5000:]}")
    print("\n".join(problems) or "nothing is left over, memory is flat, nothing went wrong")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
