"""What no input may bring about: a file opened elsewhere, something run or unpickled, a call that hangs."""

import collections
import dataclasses
import os
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import jax

from stein_core.base.machine import cache_folder

PROCESSOR, PATIENCE = 20, 60  # seconds a call: of the processor, and in all on a busy machine
MAKERS = {dataclasses.__file__, collections.__file__}  # they write the methods of a class, then run that
LIBRARIES = [Path(__file__).parents[1], Path(sys.prefix), Path(sys.base_prefix)]
NEVER = {
    "os.system", "os.exec", "os.fork", "os.forkpty", "os.spawn", "os.posix_spawn", "os.startfile", "subprocess.Popen",
    "pickle.find_class", "socket.connect", "ctypes.dlopen",
}  # fmt: skip
READS = {"open", "os.listdir", "os.scandir"}
WRITES = {
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.truncate",
    "sqlite3.connect",
}
_watching: list[tuple[list[Path], list[str]]] = []


def _inside(path, folders) -> bool:
    path = os.path.realpath(os.fsdecode(path))
    return any(os.path.commonpath([path, folder]) == os.fspath(folder) for folder in map(os.path.realpath, folders))


def _audit(event, arguments):
    if not _watching:
        return
    folders, found = _watching[-1]
    if event in NEVER:
        found.append(f"{event} {arguments!r}")
    elif event == "exec":
        file, by = arguments[0].co_filename, sys._getframe(1).f_code.co_filename
        if not (file.startswith("<frozen") or by in MAKERS or _inside(file, LIBRARIES)):
            found.append(f"exec {file} by {by}")
    elif event in WRITES or event in READS and not isinstance(arguments[0], int):
        writes = event in WRITES or event == "open" and set("wax+") & set(arguments[1] or "r")
        if not _inside(arguments[0] or ".", folders if writes else folders + LIBRARIES):
            found.append(f"{event} {arguments!r}")


jax.devices()  # JAX reads what devices there are, once, from /sys
sys.addaudithook(_audit)  # for good: Python has no way to take it away


@contextmanager
def guarded(*folders):
    """Fails if what is done meanwhile writes a file outside these folders and the cache (or reads one outside them, the
    project and Python's own), starts a process, executes or unpickles anything, or takes longer than PROCESSOR or
    PATIENCE."""
    began, worked = time.monotonic(), time.thread_time()

    def late(*_):
        waited, work = time.monotonic() - began, time.thread_time() - worked
        if waited >= PATIENCE or work >= PROCESSOR:
            raise TimeoutError(f"not done after {waited:.0f} s, {work:.0f} s of them at work")
        signal.alarm(1)

    found: list[str] = []
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(1)
    compiled = jax.config.jax_compilation_cache_dir  # it stays when STEINLAB_CACHE changes
    _watching.append(([*folders, cache_folder(), *filter(None, [compiled])], found))
    try:
        yield
    finally:
        _watching.pop()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert not found, found
