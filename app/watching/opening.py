"""Show the page of a loop: within a notebook, else in a browser."""

from __future__ import annotations

import os
import sys
import webbrowser


def open_page(url: str, show: bool | None) -> None:
    """Show a page in Jupyter, else in a browser if there is a screen, and print its address.

    Args:
        url: of the page.
        show: whether to open anything; None: if there is a screen.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None and show is not False:
        from IPython.display import IFrame, display

        display(IFrame(url, "100%", 720))
        return
    print(f"Watch at {url}", flush=True)
    screen = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if show or show is None and screen:
        webbrowser.open(url)
