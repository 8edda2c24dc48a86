"""`panel` with the same arguments; at SIGUSR1 it writes what is alive in it to the file $STEINLAB_COUNTS."""

import gc
import json
import os
import signal
import threading
from types import FrameType, ModuleType

from panel.command import main


def holders(one, levels: int = 8) -> list[list[str]]:
    """What refers to an object, what refers to that, and so on."""
    layer, seen, found = [one], set(), []
    for _ in range(levels):
        seen |= {id(thing) for thing in layer}
        layer = [thing for thing in gc.get_referrers(*layer) if id(thing) not in seen and not isinstance(thing, (FrameType, ModuleType))]
        layer = [thing for thing in layer if not (isinstance(thing, list) and len(thing) > 10_000)]  # of gc itself
        found.append(sorted({f"{type(thing).__name__} {list(thing)[:4] if isinstance(thing, dict) else ''}"[:120] for thing in layer}))
        if not 0 < len(layer) < 100:
            break
    return found


def count(*signal_and_frame):
    import panel as pn

    from app.worker import Worker
    from stein_core import runner

    gc.collect()
    gc.unfreeze()  # what is frozen counts too, and so does garbage that the server has left there
    alive = gc.get_objects()
    kinds = [type(one) for one in alive]
    held = [holders(one) for one in alive if issubclass(type(one), Worker)]
    del alive
    gc.freeze()
    found = {
        "sessions": sum(kind.__name__ == "ServerSession" for kind in kinds),
        "runs": sum(issubclass(kind, Worker) for kind in kinds),
        "held": held,
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
