"""Server hooks of `panel serve app`."""

import gc
import logging
import os
import sys
import threading
import time
from pathlib import Path

AFTER = 5  # seconds: who opens a page at once is not to share the processor with the preparation of lessons


def on_server_loaded(server_context):
    """Before the first visitor: prompt websockets, the compilation cache, and the programs that pages open with."""
    root = str(Path(__file__).resolve().parents[1])
    if root not in sys.path:  # a checkout that is not installed; a change made at import time would be undone
        sys.path.insert(0, root)
    import jax

    from app import lessons
    from app.serving import VISITORS, expect_closed_tabs, prompt_websockets, warm_up
    from stein_core import keep_compiled

    # The threads that ask for a picture wait for it anyway; handing it to one more thread costs a twentieth of its time.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    prompt_websockets()
    expect_closed_tabs()
    keep_compiled()
    settle()

    def warm():
        warm_up()
        time.sleep(AFTER)
        lessons.warm_up()
        if not VISITORS:  # else what they leave behind would stay too
            settle()

    threading.Thread(target=warm, name="warm-up", daemon=True).start()


def settle():
    """What is there now stays: looking through it for garbage, again and again, held up every page by a quarter of a
    second. Nor is all that has come since looked through so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 50)


def on_server_unloaded(server_context):
    """The server ends, at once: Python itself would abort where a thread is in the midst of a compilation. What has been
    computed is on disk already."""
    from app.jobs import stop

    stop()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)
