"""python tests/browser/reloads.py [--pages 200]: open and close pages, and print the memory and the longest pauses.

First every link is opened twice, so that its programs are compiled. What is printed then is the server's resident
memory, the longest search for garbage and the longest time that it took to dismantle a closed page.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from chromium import Server
from crowd import memory
from soak import counts
from visitors import Visitor

LINKS = [
    "",
    "?page=particles",
    "?page=lessons&lesson=01",
    "?page=location",
    "?page=lessons&lesson=04&idea=3",
    "?page=collapse",
    "?page=wave&methods=svgd,map&width=5",
    "?page=posterior",
    "?target=oring&methods=svgd,smi",
    "?page=notation",
]
GONE = 40  # seconds after which the server has forgotten a closed page


async def visit(url: str, link: str, seconds: float) -> None:
    """Open a page, watch it and leave."""
    visitor = Visitor(url, link)
    await visitor.open()
    await visitor.watch(time.monotonic() + seconds)
    await visitor.close()


async def visits(server: Server, count: int, seconds: float) -> list[float]:
    """Open so many pages, two at a time, and return the memory after every ten."""
    seen = []
    for first in range(0, count, 10):
        links = (LINKS * 2)[first % len(LINKS) :][:10]
        for pair in zip(links[::2], links[1::2]):
            await asyncio.gather(*(visit(server.url, link, seconds) for link in pair))
        seen.append(memory(server.process.pid))
        print(f"{first + 10} pages: {seen[-1]:.0f} MB", flush=True)
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=200)
    pages = parser.parse_args().pages
    folder = Path(tempfile.mkdtemp())
    environment = {**os.environ, "STEINLAB_COUNTS": str(folder / "counts.json")}
    server = Server(folder, (), environment, [str(Path(__file__).with_name("watched.py"))])
    try:
        asyncio.run(visits(server, 2 * len(LINKS), 12))
        time.sleep(GONE)
        before = memory(server.process.pid)
        seen = asyncio.run(visits(server, pages, 2))
        time.sleep(GONE)
        after = memory(server.process.pid)
        found = counts(server, folder / "counts.json")
    finally:
        server.stop()
    print(f"memory: {before:.0f} MB before, {max(seen):.0f} MB at most, {after:.0f} MB after {pages} pages")
    print(f"longest search {found['search']:.3f} s, longest dismantling {found['dismantling']:.3f} s")
    print(f"left: {found['sessions']} sessions, {found['runs']} runs, {found['views']} views")
    errors = [line for line in server.log().splitlines() if "Traceback" in line or "ERROR" in line]
    print("\n".join(errors) or "no error in the log")
    return bool(errors or max(seen) > before + 200)


if __name__ == "__main__":
    sys.exit(main())
