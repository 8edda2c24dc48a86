"""`panel` with the same arguments; at SIGUSR1 it writes what is alive in it to the file $STEINLAB_COUNTS."""

import gc
import json
import os
import signal
import threading

from panel.command import main


def count(*signal_and_frame):
    import panel as pn

    from app.worker import Worker
    from stein_core import runner

    gc.collect()
    gc.unfreeze()  # what is frozen counts too, and so does garbage that the server has left there
    kinds = [type(one) for one in gc.get_objects()]
    gc.freeze()
    found = {
        "sessions": sum(kind.__name__ == "ServerSession" for kind in kinds),
        "runs": sum(issubclass(kind, Worker) for kind in kinds),
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
