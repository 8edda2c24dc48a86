"""The faults of Panel, Bokeh and Tornado that this app works around."""

from collections.abc import Callable
from importlib import metadata
from typing import NamedTuple

from packaging.version import Version

from steinlab.server import patches


class Workaround(NamedTuple):
    """One fault of a library, and what we do about it.

    Args:
        where: the function of `patches`, or the file (and name) elsewhere.
        package: the library, with the newest version in which tests/test_upstream*.py show the fault.
        breaks: what breaks without the work-around.
        issue: upstream issue about this fault; "" if we know none.
        apply: patches the library for the whole server; None if each page or browser calls the work-around itself.
        since: the first version with the fault; "" if all have it.
        mended: the first version without it; "" if there is none.
    """

    where: str
    package: str
    breaks: str
    issue: str = ""
    apply: Callable[[], None] | None = None
    since: str = ""
    mended: str = ""

    @property
    def needed(self) -> bool:
        """Whether the installed version has the fault."""
        installed = Version(metadata.version(self.package.split(" ")[0]))
        begun = not self.since or installed >= Version(self.since)
        return begun and (not self.mended or installed < Version(self.mended))


def _here(patch: Callable[[], None], package: str, breaks: str, issue: str = "", **versions: str) -> Workaround:
    return Workaround(patch.__name__, package, breaks, issue, patch, **versions)


# When a test named test_upstream* fails, a release has mended the fault: write its version into `mended`. Delete
# a row, its code and its test when pyproject.toml allows no version that has the fault.
WORKAROUNDS = (
    _here(patches.hear_at_once, "panel 1.9.4", "Panel collects a browser's changes for 50 ms, so every slider lags."),
    _here(
        patches.send_at_once,
        "bokeh 3.9.2",
        "Nagle's algorithm is on. The three small writes of a message wait for the browser's delayed acknowledgement: "
        "about 40 ms for a round trip instead of 6.",
    ),
    _here(
        patches.expect_failed_writes,
        "panel 1.9.4",
        "A tab that closes in the middle of a message leaves a traceback in the log: Panel never reads the exception "
        "of the write that it has begun.",
        "https://github.com/holoviz/panel/issues/3341",  # closed, but still so
    ),
    _here(
        patches.expect_late_messages,
        "bokeh 3.9.2",
        "The last message of a closed tab fails with an AssertionError and a traceback in the log.",
    ),
    _here(
        patches.expect_second_closing,
        "bokeh 3.9.2",
        "A connection that breaks while it is read and written is closed twice; the second time fails with an "
        "AssertionError.",
    ),
    _here(
        patches.leave_links_alone,
        "panel 1.9.4",
        'Panel turns fields of a link into numbers. The page stays blank if one has 5,000 digits or is "²".',
    ),
    _here(
        patches.keep_tracebacks,
        "bokeh 3.9.2",
        "The answer to a message that fails has the traceback, and so the server's paths.",
    ),
    _here(
        patches.look_models_up,
        "bokeh 3.9.2",
        "Each message to a browser makes a table of all models of its page: a fifth of the time of a frame.",
    ),
    _here(
        patches.keep_documents_apart,
        "bokeh 3.9.2",
        "All threads share one stack of current documents, and a callback that fails leaves its document there. A page "
        "may be built with another visitor's style sheets, which Bokeh then refuses, or be kept for ever.",
        mended="3.10",
    ),
    _here(
        patches.stay_on_the_loop,
        "bokeh 3.10.2",
        "Bokeh runs each callback of a page on one of many threads, where no event loop is running: timers that a "
        "callback starts never end.",
        since="3.10",
    ),
    _here(
        patches.import_nothing,
        "panel 1.9.4",
        "Panel imports, and so executes, whatever module a visitor names in /components/MODULE/...",
    ),
    _here(
        patches.search_nothing,
        "panel 1.9.4",
        "Panel starts a full garbage collection five seconds after a page was closed, which freezes all pages.",
        "https://github.com/holoviz/panel/pull/6518",
    ),
    _here(
        patches.destroy_callbacks,
        "bokeh 3.9.2",
        "The models of a closed page keep their callbacks, which refer to the page: only a full garbage collection "
        "frees it.",
    ),
    _here(
        patches.destroy_style_sheets,
        "panel 1.10.0",
        "Panel makes style sheets for each component and drops them: 430 objects of a page that only a full garbage "
        "collection frees.",
        since="1.10",
    ),
    _here(
        patches.expect_null_bytes, "tornado 6.6.1", "A file name with a null byte gives a traceback instead of a 404."
    ),
    _here(
        patches.expect_known_models,
        "bokeh 3.9.2",
        "The log warns of a known reference when a browser describes a model that it has only just received.",
        "https://github.com/bokeh/bokeh/pull/12915",
    ),
    Workaround(
        "stay_local",
        "panel 1.9.4",
        "If the server is so busy that a session expires before its page is served, the page is rebuilt without the "
        "address of the style sheets and asks a CDN.",
    ),
    Workaround(
        "begin_busy_cleanup",
        "panel 1.9.4",
        "Panel's task that removes old busy events runs for ever in the context of the first page, which it keeps.",
    ),
    Workaround(
        "app/notebook.py stay_offline",
        "panel 1.9.4",
        "Jupyter loads style sheets of Panel from a CDN in spite of inline=True.",
        "https://github.com/holoviz/panel/issues/5167",
    ),
    Workaround(
        "app/server/loop.py soon",
        "bokeh 3.9.2",
        "add_next_tick_callback is not thread-safe: Bokeh may lose a callback of another thread.",
        "https://github.com/bokeh/bokeh/issues/4000",  # names the missing lock, and IOLoop.add_callback instead
    ),
    Workaround(
        "app/server/loop.py unscheduled",
        "panel 1.9.4",
        "Before a browser has loaded a page, Panel leaves each change to a callback of Bokeh's. It refers to itself: "
        "only a full garbage collection frees the page.",
    ),
    Workaround(
        "app/server/loop.py Unbusy",
        "panel 1.9.4",
        "Each message of a browser sets `busy` for all visitors, a third of the time of an acknowledgement.",
    ),
    Workaround(
        "app/server/memory.py detach_busy",
        "panel-material-ui 0.16.6",
        "Every Page subscribes to the server's `busy` for ever, which keeps it in memory.",
    ),
    Workaround(
        "app/server/memory.py forget_page",
        "panel 1.9.4",
        "Panel keeps the notification area of every page, and its document, for ever.",
    ),
    Workaround(
        "app/ui/drop_stale_writes.js",
        "panel 1.9.4",
        "A React widget writes an older value back after the server has set a newer one: a knob turns back.",
    ),
    Workaround(
        "app/ui/reconnect.js",
        "bokeh 3.9.2",
        "A connection that was cut within a message never works again, and sending without an open socket throws.",
    ),
    Workaround(
        "app/ui/guard_layout.js",
        "bokeh 3.9.2",
        "A figure that is added to a page is measured before it has a layout, and BokehJS throws.",
    ),
    Workaround(
        "app/ui/guard_hidden.js",
        "panel 1.10.0",
        "An HTML pane that turns visible before it has been drawn has no container yet, and Panel throws.",
    ),
    Workaround(
        "app/ui/guard_loading.js",
        "bokeh 3.10.2",
        "A hidden widget that is laid out while MathJax loads is never finished. The page stays under its sheet.",
    ),
)


def apply() -> None:
    """Apply the patches for the whole server, once, before the first visitor comes."""
    for workaround in WORKAROUNDS:
        if workaround.apply and workaround.needed:
            workaround.apply()
