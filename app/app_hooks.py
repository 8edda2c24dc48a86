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
    """Before the first visitor: prompt websockets, the compilation cache, and the programs that pages open with."""
    root = str(Path(__file__).resolve().parents[1])
    if root not in sys.path:  # a checkout that is not installed; a change made at import time would be undone
        sys.path.insert(0, root)
    import jax

    from app import lessons
    from app.serving import expect_closed_tabs, prompt_websockets, settle, warm_up
    from stein_core import keep_compiled

    # The threads that ask for a picture wait for it anyway; handing it to one more thread costs a twentieth of its time.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    keep_buffers()
    prompt_websockets()
    expect_closed_tabs()
    keep_compiled()
    gc.set_threshold(700, 10, 50)  # the third number: large searches five times as rare as by default
    settle()

    def warm():
        time.sleep(FIRST)
        warm_up()
        time.sleep(THEN)
        lessons.warm_up()
        settle()

    threading.Thread(target=warm, name="warm-up", daemon=True).start()


def keep_buffers():
    """Memory that a computation has used stays with the process, up to 256 MB: to get it from Linux again, page by page,
    cost a step of 2,000 particles as much as its arithmetic. One pool for all threads, since another's cannot grow so large."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        trim_threshold, mmap_threshold, arenas = -1, -3, -8  # as in glibc's malloc.h
        libc.mallopt(trim_threshold, 2**28)
        libc.mallopt(mmap_threshold, 2**28)
        libc.mallopt(arenas, 1)


def on_server_unloaded(server_context):
    """The server ends, at once: Python itself would abort where a thread is in the midst of a compilation. What has been
    computed is on disk already."""
    from app.jobs import stop

    stop()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)
