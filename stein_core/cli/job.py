"""What long commands share: recipes from a file, their progress, and the end with the process that has started them."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import Callable, Iterator

from tqdm import tqdm

from stein_core.base.errors import short
from stein_core.contract.recipe import Recipe

OFTEN = 0.1  # seconds between two JSON lines that carry nothing but numbers
INTERRUPTED = 130  # the exit code after Ctrl-C: 128 + SIGINT
AT_ONCE = 1.0  # seconds from Ctrl-C to the end
LOOK = 0.3  # seconds between two looks whether the parent process lives


def add_job(parser) -> None:
    """The option of a command that another process runs."""
    text = "write progress to stdout, as JSON lines; end when process PID, which has started this one, ends"
    parser.add_argument("--job", type=int, metavar="PID", help=text)


def end_with(parent: int) -> None:
    """End this process, even in the middle of a compilation, as soon as `parent` is no longer its parent."""

    def watch():
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def end_with_interrupt() -> None:
    """End this process a second after Ctrl-C: nothing else ends a thread that compiles."""

    def interrupted(*_):
        os.write(2, b"\ninterrupted; the finished rows of a sweep or a table are kept.\n")
        timer = threading.Timer(AT_ONCE, os._exit, [INTERRUPTED])
        timer.daemon = True
        timer.start()
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else a shell has it ignored
        signal.signal(signal.SIGINT, interrupted)


@contextmanager
def progress(options, total: int, unit: str) -> Iterator[Callable]:
    """Show how far a command is, as a bar on stderr, or with --job as JSON lines on stdout.

    Yields:
        report(done, left=None, text="", **news): done of `total` units, seconds left, a text for the bar, and what
        else the JSON line carries, such as another total.
    """
    if options.job is None:
        with tqdm(total=total, unit=unit, disable=None, file=sys.stderr) as bar:

            def show(done, left=None, text="", **news):
                bar.total = news.get("total", total)
                bar.update(done - bar.n)
                bar.set_postfix_str(text)

            yield show
        return
    last = -OFTEN

    def write(done, left=None, text="", **news):
        nonlocal last
        if news or done >= total or time.monotonic() > last + OFTEN:
            last = time.monotonic()
            print(json.dumps({"done": done, "total": total, "left": left, **news}), flush=True)

    yield write


def read_recipes(path: str) -> list[Recipe]:
    """The recipes of a JSON file, one object of `Recipe.to_dict` or a list of them; "-" is stdin.

    Raises:
        ValueError: the file is not there, or its content is something else.
    """
    if path != "-" and not os.path.isfile(path):
        raise ValueError(f"recipes {short(path)!r}: there is no such file.")
    try:
        with sys.stdin if path == "-" else open(path, encoding="utf-8") as file:
            plain = json.load(file)
    except (ValueError, RecursionError):  # no JSON, no text
        plain = None
    plain = [plain] if isinstance(plain, dict) else plain
    if not (isinstance(plain, list) and plain and all(isinstance(one, dict) for one in plain)):
        raise ValueError(
            f"recipes {short(path)!r}: no JSON of recipes; allowed: an object of Recipe.to_dict, or a list."
        )
    return [Recipe.from_dict(one) for one in plain]
