"""`panel` with the same arguments; at SIGUSR1 it writes what is alive in it to the file $STEINLAB_COUNTS."""

import gc
import json
import os
import signal
import sys
import threading

from panel.command import main


def path_to(ids: set[int]) -> list[str]:
    """What leads from a module or a running function to one of these objects; nothing does where they are garbage, or where
    something that is not Python holds them."""
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

    from app.worker import Worker
    from stein_core import runner

    gc.collect()
    gc.unfreeze()  # what is frozen counts too, and so does garbage that the server has left there
    alive = gc.get_objects()
    kinds = [type(one) for one in alive]
    workers = {id(one) for one in alive if issubclass(type(one), Worker)}
    held = path_to(workers) if workers else []
    del alive
    gc.collect()
    garbage = len(workers) - sum(id(one) in workers for one in gc.get_objects())
    gc.freeze()
    found = {
        "sessions": sum(kind.__name__ == "ServerSession" for kind in kinds),
        "runs": sum(issubclass(kind, Worker) for kind in kinds),
        "held": held,
        "garbage": garbage,
        "views": len(pn.state._views),  # what Panel knows of the open pages
        "programs": sum(issubclass(kind, runner.Stepper) for kind in kinds),
        "kept": len(runner._steppers),
        "threads": sorted(thread.name for thread in threading.enumerate()),
    }
    file = os.environ["STEINLAB_COUNTS"]
    with open(file + ".new", "w") as out:
        json.dump(found, out)
    os.replace(file + ".new", file)


signal.signal(signal.SIGUSR1, count)
main()
