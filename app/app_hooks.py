"""Server hooks of `panel serve app`."""

import ctypes
import gc
import logging
import os
import sys
import threading
import time
from pathlib import Path

FIRST, THEN = 3, 5  # seconds: who opens a page at once is not to share the processor with preparations for others


def on_server_loaded(server_context):
    """Prompt websockets and the compilation cache; soon after, the programs that pages open with.

    What pages and lessons import is imported here, before anybody comes: where two threads import modules of one package
    at the same time, Python may give one of them half a module, and Panel looks into every large package that it finds.
    """
    root = str(Path(__file__).resolve().parents[1])
    if root not in sys.path:  # a checkout that is not installed; a change made at import time would be undone
        sys.path.insert(0, root)
    import jax
    import panel as pn
    from tornado.ioloop import IOLoop

    from app import notebook, shell, warm_up  # noqa: F401  (see above)
    from app.server import patches
    from app.server.limits import LIMITS
    from stein_core import keep_compiled
    from stein_core.runner import WIDE

    pn.panel(None)  # for this Panel imports what tells it that None is no figure of Matplotlib
    # The threads that ask for a picture wait for it anyway; handing it to one more thread costs a twentieth of its time.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    if LIMITS.particles >= WIDE:
        keep_buffers()
    patches.apply()
    IOLoop.current().add_callback(patches.begin_busy_cleanup)
    keep_compiled()
    gc.set_threshold(*gc.get_threshold()[:2], 50)  # up to Python 3.13: large searches five times as rare
    gc.collect()
    gc.freeze()  # see `app.server.memory.Garbage`

    def warm():
        time.sleep(FIRST)
        warm_up.compile_particles()
        time.sleep(THEN)
        warm_up.compile_first_lesson()
        gc.freeze()

    threading.Thread(target=warm, name="warm-up", daemon=True).start()


def keep_buffers():
    """Memory that a computation has used stays with the process: to get it from Linux again, page by page, costs a sixth
    of a step of 4,000 particles, whose arrays glibc gives back each time. One pool for all threads, since another's cannot
    grow so large. The price is that the process keeps what it held at its peak, so this is for servers that allow so many."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        trim_threshold, mmap_threshold, arenas = -1, -3, -8  # as in glibc's malloc.h
        if libc.mallopt(mmap_threshold, 2**28):  # older ones refuse
            libc.mallopt(trim_threshold, 2**28)
            libc.mallopt(arenas, 1)


def on_server_unloaded(server_context):
    """The server ends, at once: Python itself would abort where a thread is in the midst of a compilation. What has been
    computed is on disk already."""
    from app.server.jobs import stop

    stop()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)
