"""`panel` with the same arguments; at SIGUSR1 it writes what is alive in it to the file $STEINLAB_COUNTS.

What is counted is known by weak references from its beginning. To ask the garbage collector for all objects would also
give those that another thread is in the midst of building: `tuple(...)` of an iterator raises SystemError where anybody
else refers to its tuple.
"""

import gc
import json
import os
import signal
import sys
import threading
import time
import weakref
from pathlib import Path

from bokeh.server.session import ServerSession
from panel.command import main

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from stein_core.runs import assembly, cache as steppers  # noqa: E402
from steinlab.server import memory  # noqa: E402
from steinlab.server.streaming import Streamer  # noqa: E402
from steinlab.stage.worker import Worker  # noqa: E402


def known(kind: type) -> list[weakref.ref]:
    """Weak references to every object of this kind from now on."""
    born, begin = [], kind.__init__

    def init(self, *arguments, **named):
        born.append(weakref.ref(self))
        begin(self, *arguments, **named)

    kind.__init__ = init
    return born


SESSIONS, RUNS, PROGRAMS, METERS = map(known, (ServerSession, Worker, steppers.Stepper, assembly.CompiledDiagnostics))
STREAMERS = known(Streamer)
STALLED = set()  # pages whose picture has waited for the event loop for more than LATE seconds
LATE = 20


LONGEST = {"search": 0.0, "dismantling": 0.0}  # seconds


def timed(name: str, call):
    """Return the function, which notes in LONGEST how long it takes."""

    def noted(*arguments):
        began = time.perf_counter()
        try:
            return call(*arguments)
        finally:
            LONGEST[name] = max(LONGEST[name], time.perf_counter() - began)

    return noted


def note_search(phase: str, about: dict, began: list = [0.0]):  # noqa: B006
    """Note how long the collector searches, except at the start."""
    if phase == "start":
        began[0] = time.perf_counter()
    elif SESSIONS:
        LONGEST["search"] = max(LONGEST["search"], time.perf_counter() - began[0])


gc.callbacks.append(note_search)
memory.dismantle = timed("dismantling", memory.dismantle)


def alive(references: list[weakref.ref]) -> list:
    return [one for reference in references if (one := reference()) is not None]


def look_for_stalled():
    while True:
        time.sleep(1)
        late = time.monotonic() - LATE
        STALLED.update(id(one) for one in alive(STREAMERS) if one._scheduled and one._asked < late and not one._closed)


def path_to(ids: set[int]) -> list[str]:
    """What leads from a module or a running function to one of these objects; nothing does where they are garbage, or
    where something that is not Python holds them."""
    frames = sys._current_frames() | {threading.get_ident(): sys._getframe(2)}  # without this search itself
    layer = [sys.modules, *threading.enumerate()]
    for frame in frames.values():
        while frame:
            layer.append(frame)
            frame = frame.f_back
    seen, parent = {id(one) for one in layer}, {}
    while layer:
        deeper = []
        for one in layer:
            for other in gc.get_referents(one):
                if id(other) in seen:
                    continue
                seen.add(id(other))
                parent[id(other)] = one
                if id(other) in ids:
                    path, at = [described(other)], other
                    while id(at) in parent:
                        at = parent[id(at)]
                        path.append(described(at))
                    return path[::-1]
                deeper.append(other)
        layer = deeper
    return ["nothing"]


def described(one) -> str:
    """An object's type and a little of what it is."""
    what = list(one)[:4] if isinstance(one, dict) else getattr(one, "__qualname__", getattr(one, "__name__", ""))
    return f"{type(one).__name__} {what}"[:120]


def count(*signal_and_frame):
    import panel as pn

    longest = dict(LONGEST)
    gc.collect()
    gc.unfreeze()  # what is frozen counts too, and so does garbage that the server has left there
    found = {
        "sessions": len(alive(SESSIONS)),
        "runs": len(runs := alive(RUNS)),
        "held": path_to(ids) if (ids := {id(one) for one in runs}) else [],
        "views": len(pn.state._views),  # what Panel knows of the open pages
        "programs": len(alive(PROGRAMS)),
        "meters": len(alive(METERS)),
        "kept": len(steppers._steppers),
        "stalled": len(STALLED),
        **longest,
        "threads": sorted(thread.name for thread in threading.enumerate()),
    }
    del runs
    gc.collect()
    found["garbage"] = found["runs"] - len(alive(RUNS))
    gc.freeze()
    file = os.environ["STEINLAB_COUNTS"]
    with open(file + ".new", "w") as out:
        json.dump(found, out)
    os.replace(file + ".new", file)


threading.Thread(target=look_for_stalled, name="stalled", daemon=True).start()
signal.signal(signal.SIGUSR1, count)
main()
