"""What a proxy costs: requests a second, and the time of a frame there and back, without one, through nginx, and
through our own. The server behind is a small one, so that the proxy shows. All take turns, and medians are printed."""

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

import psutil
from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler, websocket_connect

from stein_core.cli.serve import PROXY, answers, configured, free_ports

ROOT = Path(__file__).resolve().parents[2]
ROUNDS, SECONDS, CLIENTS, FRAMES = 7, 2.0, 8, 300
FRAME = bytes(20_000)  # of 50 particles with their guides and arrows, roughly


class Page(RequestHandler):
    def get(self):
        self.write("alive")


class Echo(WebSocketHandler):
    def on_message(self, message):
        self.write_message(message, binary=True)


async def behind(port: int) -> None:
    HTTPServer(Application([("/app/ws", Echo), ("/.*", Page)])).listen(port, "127.0.0.1")
    await asyncio.Event().wait()


async def client(port: int, end: float) -> int:
    """Ask on one connection until then; return how many answers came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    while time.perf_counter() < end:
        writer.write(b"GET /liveness HTTP/1.1\r\nHost: here\r\n\r\n")
        await reader.readuntil(b"alive")
        count += 1
    writer.close()
    return count


async def rate(port: int) -> float:
    """Requests a second of several clients at once."""
    end = time.perf_counter() + SECONDS
    return sum(await asyncio.gather(*(client(port, end) for _ in range(CLIENTS)))) / SECONDS


async def trips(port: int) -> list[float]:
    """Milliseconds of each frame there and back."""
    socket = await websocket_connect(f"ws://127.0.0.1:{port}/app/ws")
    times = []
    for _ in range(FRAMES):
        begun = time.perf_counter()
        await socket.write_message(FRAME, binary=True)
        await socket.read_message()
        times.append(1000 * (time.perf_counter() - begun))
    socket.close()
    return times


def processor(process: subprocess.Popen | None) -> float:
    """Seconds of processor that a proxy has taken, with its workers."""
    if process is None:
        return 0.0
    tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children()]
    return sum(sum(one.cpu_times()[:2]) for one in tree)


def main() -> None:
    server, *ports = free_ports(3)
    ports = dict(zip(("direct", "nginx", "own"), (server, *ports)))
    with tempfile.TemporaryDirectory() as folder:
        text = (ROOT / "assets/nginx.conf").read_text()
        text = configured(text, str(ports["nginx"]), {"A": f"127.0.0.1:{server}"})
        (Path(folder) / "nginx.conf").write_text(text.replace("/tmp/steinlab-nginx.pid", f"{folder}/pid"))
        nginx = ["nginx", "-p", folder, "-c", f"{folder}/nginx.conf", "-g", "daemon off;"]
        own = [sys.executable, "-P", PROXY, f"127.0.0.1:{ports['own']}", f"A=127.0.0.1:{server}"]
        running = {
            "direct": subprocess.Popen([sys.executable, __file__, str(server)]),
            "nginx": subprocess.Popen(nginx),
            "own": subprocess.Popen(own),
        }
        try:
            while not all(map(answers, ports.values())):
                time.sleep(0.1)
            rates, times, spent = ({name: [] for name in ports} for _ in range(3))
            for _ in range(ROUNDS):
                for name, port in ports.items():
                    before = processor(running[name])
                    rates[name].append(asyncio.run(rate(port)))
                    spent[name].append(1000 * (processor(running[name]) - before) / rates[name][-1] / SECONDS)
                    times[name] += asyncio.run(trips(port))
            for name in ports:
                print(
                    f"{name}: {median(rates[name]):.0f} requests/s, {median(spent[name]):.2f} ms of processor each; "
                    f"a frame there and back: median {median(times[name]):.2f} ms, "
                    f"95% within {quantiles(times[name], n=20)[-1]:.2f} ms"
                )
        finally:
            for process in running.values():
                process.terminate()
                process.wait(20)


if __name__ == "__main__":
    asyncio.run(behind(int(sys.argv[1]))) if sys.argv[1:] else main()
