"""Free the memory of closed pages, without a search of the whole heap."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable
from contextvars import Context
from typing import Any

from panel.viewable import Viewable, Viewer

from stein_core.base.machine import trim_memory

COMPONENTS = Viewable, Viewer
LITTLE = 50_000  # objects that take 0.03 s to search
SOON = 2.0  # seconds after which the threads of a closed page have ended, as a rule


def keep_alive() -> None:
    """Let the collector skip what is alive now. A search then takes a few milliseconds.

    A closed page needs no search: see `dismantle`.
    """
    gc.collect(1)
    gc.freeze()


def forget_page(document, *owners: Any) -> None:
    """Free a page when its session has ended.

    Panel 1.9.4 keeps the notification area of every page for ever, and its document. No upstream issue known:
    https://github.com/holoviz/panel/issues/8605 was another leak of `state._views`.

    Args:
        document: Bokeh document of the page.
        owners: objects of this app that hold the page's components in their attributes.
    """
    import panel as pn

    def forget(context):
        shown = []
        for ref, (view, _, of, _) in list(pn.state._views.items()):
            if of is document:
                del pn.state._views[ref]
                shown.append(view)
        forget_parts(*owners, *shown)

    document.on_session_destroyed(forget)


def forget_parts(*owners: Any) -> None:
    """Free what a page does not show any more. On the event loop.

    Args:
        owners: objects that hold its components in their attributes.
    """
    # In a context of its own: the page's context refers to the page.
    asyncio.get_running_loop().call_later(SOON, finish, owners, context=Context())


def finish(owners: tuple) -> None:
    """Dismantle it, and give its memory back to Linux."""
    dismantle(owners)
    for owner in owners:
        for kept in vars(owner).values():
            if isinstance(kept, (dict, list)):
                kept.clear()
    if len(gc.get_objects(generation=2)) < LITTLE:  # what `keep_alive` skips is not among it
        gc.collect()
    trim_memory()


def dismantle(owners: Iterable[Any]) -> None:
    """Break the references in circles among the parts of a closed page, so that Python frees them at once.

    A component loses its values, and everybody its callbacks. What threads of the page may still call stays:
    attributes named `later`, and all of an object that `has_threads`.

    Args:
        owners: objects that hold the page's components in their attributes.
    """
    for part in parts_of(owners):
        if isinstance(part, COMPONENTS):
            private = part._param__private
            for kept in (private.watchers, private.ref_watchers, private.refs, private.params, private.values):
                kept.clear()
        own = vars(part)
        for name in PANELS & own.keys():
            own[name].clear()
        if not getattr(part, "has_threads", False):
            for name in [name for name, value in own.items() if is_callback(value) and name != "later"]:
                del own[name]


def is_callback(value: Any) -> bool:
    """Say whether this is a function, or a list of them."""
    return callable(value) or isinstance(value, (list, tuple)) and any(map(callable, value))


def parts_of(owners: Iterable[Any]) -> list:
    """Return these objects and all components and objects of the app in their attributes, however deep."""
    found, seen, waiting = [], {}, [*owners]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (str, float, int, type(None))) or id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, (list, tuple, set)):
            waiting += one
        elif isinstance(one, COMPONENTS):
            found.append(one)
            waiting += [vars(one), one._param__private.values]
        elif type(one).__module__.startswith("steinlab.") and hasattr(one, "__dict__"):
            found.append(one)
            waiting.append(vars(one))
    return found


PANELS = {name for name, value in vars(Viewable()).items() if isinstance(value, (dict, list))}  # of each component


def detach_busy(page) -> None:
    """Undo the subscription of a pmui.Page to the process-wide `pn.state.busy`.

    It keeps every closed page alive, and sends every page two messages for each event of any visitor.
    No upstream issue known; panel-material-ui 0.16.6.
    """
    import panel as pn

    private = page._param__private
    for item in list(private.ref_watchers):
        names, watcher = item
        if "busy" in names:
            pn.state.param.unwatch(watcher)
            private.ref_watchers.remove(item)
    private.refs.pop("busy", None)
