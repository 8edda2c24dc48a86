"""`serve`: open the app; with `--processes N` in several processes behind a proxy, nginx or our own."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from stein_core.base.errors import short
from stein_core.cli.site import folder_of_app

LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ"  # one for each process: codes of its classes begin with it
CHECK, PATIENCE, DEAF = 2.0, 5.0, 3  # seconds between looks, seconds for an answer, unanswered looks until a restart
PROXY = str(Path(__file__).with_name("proxy.py"))
STARTING = 120.0  # seconds that a process has until it must answer


def add_serve(commands) -> None:
    """Add the arguments of `serve`. All others go to `panel serve`."""
    serve = commands.add_parser("serve", help="open the app; takes the options of `panel serve`", add_help=False)
    serve.set_defaults(act=run_server)
    serve.add_argument("--processes", type=int, help="how many servers, behind a proxy")
    serve.add_argument("--proxy", choices=("nginx", "own"), help="which proxy; default: nginx if it is installed")
    text = "servers elsewhere, each started with that letter in STEINLAB_PROCESS"
    serve.add_argument("--hosts", metavar="C=HOST:PORT,...", help=text)


def run_server(options) -> int:
    """`serve`: this process becomes `panel serve` of the app, or watches over several of them."""
    folder = folder_of_app("serve").resolve()
    index = [] if any(one.startswith("--index") for one in options.others) else ["--index", folder.name]
    command = [sys.executable, "-m", "panel", "serve", str(folder), *index]
    if options.processes is None:
        if options.proxy or options.hosts:
            raise ValueError("--proxy and --hosts need --processes: a proxy stands before several servers.")
        os.execv(sys.executable, [*command, *options.others])
    if not 1 <= options.processes <= len(LETTERS):
        raise ValueError(f"--processes = {short(options.processes)}; allowed: 1 to {len(LETTERS)}.")
    hosts = read_hosts(options.hosts or "", LETTERS[options.processes :])
    nginx = shutil.which("nginx")
    if options.proxy == "nginx" and not nginx:
        raise ValueError("--proxy nginx: there is no nginx here; allowed: own, or nginx-light of Debian installed.")
    own = options.proxy == "own" or not nginx
    return Servers(command, options.others, options.processes, folder, hosts, own).run()


def read_hosts(text: str, letters: str) -> dict[str, str]:
    """Return the addresses of servers elsewhere, by the letters of their classes.

    Args:
        text: of `--hosts`, such as "C=other:8001,D=other:8002".
        letters: that no server here has.

    Raises:
        ValueError: if it reads otherwise, or a letter is not free.
    """
    hosts = {}
    for part in filter(None, text.split(",")):
        letter, _, address = part.partition("=")
        host, _, port = address.rpartition(":")
        if len(letter) != 1 or letter not in letters or letter in hosts:
            raise ValueError(f"--hosts: {short(letter)!r}; allowed: one letter each of {letters or 'none'}.")
        if not re.fullmatch(r"[A-Za-z0-9._-]+|\[[0-9a-fA-F:]+\]", host) or not valid_port(port):
            raise ValueError(f"--hosts: {short(part)!r}; allowed: {letter}=HOST:PORT.")
        hosts[letter] = address
    return hosts


def valid_port(text: str) -> bool:
    """Whether this is the number of a port."""
    return re.fullmatch(r"[0-9]{1,5}", text) is not None and 1 <= int(text) <= 65535


class Servers:
    """Keep several servers and their proxy alive.

    Args:
        command: starts a server, but for its port.
        others: more options of `panel serve`. `--port` is the proxy's.
        count: of servers.
        folder: of the app.
        hosts: addresses of servers elsewhere, by their letters. Others keep those alive.
        own: whether the proxy is our own, not nginx.
    """

    def __init__(
        self, command: list[str], others: list[str], count: int, folder: Path, hosts: dict[str, str], own: bool
    ):
        known = argparse.ArgumentParser(prog="serve", allow_abbrev=False, add_help=False)
        known.add_argument("--port", type=int, default=5006)
        known.add_argument("--address", default="")
        known.add_argument("--allow-websocket-origin", action="append")
        given, rest = known.parse_known_args(others)
        origins = given.allow_websocket_origin or [f"localhost:{given.port}"]
        allowed = [part for origin in origins for part in ("--allow-websocket-origin", origin)]
        self.ports = free_ports(count)
        self.commands = [
            [*command, "--address", "127.0.0.1", "--port", str(port), "--liveness", "--use-xheaders", *allowed, *rest]
            for port in self.ports
        ]
        self.all = {letter: f"127.0.0.1:{port}" for letter, port in zip(LETTERS, self.ports)} | hosts
        self.own, self.listen = own, f"{given.address}:{given.port}" if given.address else str(given.port)
        self.assets = next(path for path in (folder / "assets", folder.parent / "assets") if path.exists())
        self.servers: list[subprocess.Popen] = []
        self.begun, self.deaf = [0.0] * count, [0] * count
        self.proxy: subprocess.Popen | None = None

    def run(self) -> int:
        """Start all, and start again what ends or does not answer, until this process is told to end."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *arguments: sys.exit(0))
        with tempfile.TemporaryDirectory(prefix="steinlab-") as folder:
            try:
                self.servers = [self._start(k) for k in range(len(self.ports))]
                self._await()
                self._start_proxy(Path(folder))
                proxy = "our own proxy" if self.own else "nginx"
                address = f"http://localhost:{self.listen.split(':')[-1]}/app"
                print(f"{len(self.all)} servers behind {address}, through {proxy}", flush=True)
                while True:
                    time.sleep(CHECK)
                    for k in range(len(self.servers)):
                        self._look(k)
                    if self.proxy.poll() is not None:
                        print("the proxy has ended; it is started again", file=sys.stderr, flush=True)
                        self._start_proxy(Path(folder))
            finally:
                self._stop()

    def _await(self) -> None:
        """Wait until all answer, but no longer than they may take to start: `_look` then starts them again."""
        end = time.monotonic() + STARTING
        while time.monotonic() < end and not all(map(answers, self.ports)):
            time.sleep(0.2)

    def _start(self, k: int) -> subprocess.Popen:
        self.begun[k], self.deaf[k] = time.monotonic(), 0
        return subprocess.Popen(self.commands[k], env={**os.environ, "STEINLAB_PROCESS": LETTERS[k]})

    def _look(self, k: int) -> None:
        if self.servers[k].poll() is None:
            if answers(self.ports[k]):
                self.deaf[k], self.begun[k] = 0, -STARTING
                return
            self.deaf[k] += time.monotonic() - self.begun[k] > STARTING
            if self.deaf[k] < DEAF:
                return
            self.servers[k].kill()
            self.servers[k].wait()
        print(f"server {LETTERS[k]} has ended; it is started again", file=sys.stderr, flush=True)
        self.servers[k] = self._start(k)

    def _start_proxy(self, folder: Path) -> None:
        if self.own:
            servers = [f"{letter}={address}" for letter, address in self.all.items()]
            listen = self.listen if ":" in self.listen else f":{self.listen}"
            # -P: the folder of the file, which has a site.py, stays out of Python's path
            self.proxy = subprocess.Popen([sys.executable, "-P", PROXY, listen, *servers])
            return
        text = configured((self.assets / "nginx.conf").read_text(encoding="utf-8"), self.listen, self.all)
        (folder / "nginx.conf").write_text(text.replace("/tmp/steinlab-nginx.pid", str(folder / "pid")))
        command = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
        self.proxy = subprocess.Popen(command)

    def _stop(self) -> None:
        for process in filter(None, [self.proxy, *self.servers]):
            process.terminate()
        for process in filter(None, [self.proxy, *self.servers]):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def configured(text: str, listen: str, servers: dict[str, str]) -> str:
    """Return nginx's configuration for these servers: the shipped one has two, as an example.

    Args:
        text: the shipped one.
        listen: the port, or address and port, that visitors open.
        servers: address and port of each, by its letter.
    """
    lines = "".join(f"    server {address};\n" for address in servers.values())
    text = re.sub(r"(    server 127\.0\.0\.1:\d+;\n)+", lambda found: lines, text)
    rooms = "".join(f"    ~/class/(?i:{letter}) room_{letter};\n" for letter in servers)
    text = re.sub(r"(    ~/class/\S+ 127\.0\.0\.1:\d+;\n)+", lambda found: rooms, text)
    groups = "".join(f"  upstream room_{letter} {{ server {address}; }}\n" for letter, address in servers.items())
    text = text.replace("  upstream steinlab {", groups + "  upstream steinlab {")  # a group may have a host's name
    return re.sub(r"listen \S+;", f"listen {listen};", text)


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens to."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def answers(port: int) -> bool:
    """Whether a server says that it is alive."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/liveness", timeout=PATIENCE) as answer:
            return answer.status == 200
    except OSError:
        return False
