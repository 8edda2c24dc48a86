"""Server hooks of `panel serve app`."""

import sys
import threading
from pathlib import Path


def on_server_loaded(server_context):
    """Before the first visitor: prompt websockets, the compilation cache, and the first page's programs."""
    root = str(Path(__file__).resolve().parents[1])
    if root not in sys.path:  # a checkout that is not installed; a change made at import time would be undone
        sys.path.insert(0, root)
    from app.serving import expect_closed_tabs, prompt_websockets, warm_up
    from stein_core import keep_compiled

    prompt_websockets()
    expect_closed_tabs()
    keep_compiled()
    threading.Thread(target=warm_up, name="warm-up", daemon=True).start()
