"""Server hooks of `panel serve app`."""

import ctypes
import gc
import logging
import os
import sys
import threading
import time

from steinlab.classroom import socket
from steinlab.server import channel

for handlers in (channel, socket):  # before the server lists its handlers
    handlers.install()
FIRST, THEN = 3, 5  # seconds to wait before each warm-up, so that the first visitor has the CPU


def on_server_loaded(server_context):
    """Apply the patches and open the compilation cache; a few seconds later, compile the programs of the first pages.

    All modules of pages and lessons are imported here, before the first visitor. If two threads import modules of one
    package at the same time, Python may give one of them a half-initialised module. Panel also looks into every large
    package that is imported.
    """
    import jax
    import jax.experimental.multihost_utils  # noqa: F401  (JAX would do so at its first `device_put`)
    import panel as pn
    from tornado.ioloop import IOLoop

    from stein_core import keep_compiled
    from stein_core.base.machine import single_thread_lapack
    from stein_core.runs.runner import WIDE
    from steinlab import notebook, shell, warm_up  # noqa: F401  (see above)
    from steinlab.server import patches, workarounds
    from steinlab.server.limits import LIMITS

    pn.panel(None)  # makes Panel import the packages by which it recognises figures
    # The threads that ask for a frame wait for it anyway; handing it to one more thread costs 5 % of its time.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    if LIMITS.particles >= WIDE:
        keep_buffers()
    workarounds.apply()
    IOLoop.current().add_callback(patches.begin_busy_cleanup)
    keep_compiled()
    single_thread_lapack()
    gc.set_threshold(*gc.get_threshold()[:2], 50)  # up to Python 3.13: full garbage collections a fifth as often
    gc.collect()
    gc.freeze()  # none of this ever becomes garbage

    def warm():
        time.sleep(FIRST)
        warm_up.compile_particles()
        time.sleep(THEN)
        warm_up.compile_first_lesson()
        gc.freeze()

    threading.Thread(target=warm, name="warm-up", daemon=True).start()


def keep_buffers():
    """Let glibc keep freed memory in the process.

    By default glibc returns the arrays of every step to Linux. Getting them back costs a sixth of a step of 4,000
    particles. All threads share one pool, because the pools of single threads cannot grow so large. The process then
    keeps its peak memory, so only servers that allow that many particles do this.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        trim_threshold, mmap_threshold, arenas = -1, -3, -8  # as in glibc's malloc.h
        if libc.mallopt(mmap_threshold, 2**28):  # older versions of glibc refuse
            libc.mallopt(trim_threshold, 2**28)
            libc.mallopt(arenas, 1)


def on_server_unloaded(server_context):
    """End the process at once. Python's own exit would abort if a thread is compiling. All results are on disk
    already."""
    from steinlab.server.jobs import stop

    stop()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)
