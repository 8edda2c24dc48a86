"""Names of JAX's compile events, comparisons of frames, a loop for coroutines and a server's session, shared by the
tests."""

import asyncio
import os
import sqlite3
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
from bokeh.server.contexts import BokehSessionContext
from bokeh.server.session import ServerSession
from tornado.ioloop import IOLoop

from stein_core import METHODS, Spec, Stepper

TRACE = "/jax/core/compile/jaxpr_trace_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
ARRAYS = ("particles", "locations", "scales", "attract", "repulse", "correlation")
FEW = {"width": 8, "layers": 2, "auxiliary": 5, "critic_width": 8, "burn": 1, "kept": 2, "leapfrogs": 2}


def few(method: str) -> dict[str, int]:
    """Return options that make the program of a method with networks small. A large one takes minutes to compile."""
    return {f"method.{o.name}": FEW[o.name] for o in METHODS[method].options if o.name in FEW}


@lru_cache
def lazy(spec: Spec) -> Stepper:
    """A Stepper that compiles what a test uses and no more: `compile` has the whole ready, which takes twice as
    long."""
    return Stepper(spec)


def assert_same_frame(a, b, rtol=0.0, atol=0.0):
    """Equal step and arrays; metrics too, where NaN equals NaN (undefined in both)."""
    assert a.step == b.step and a.finite == b.finite
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol, atol=atol, err_msg=name)
    assert list(a.metrics) == list(b.metrics)
    for name, value in a.metrics.items():
        np.testing.assert_allclose(value, b.metrics[name], rtol=rtol, atol=atol, err_msg=name)


def assert_no_nan(frame, note=""):
    with_nan = [name for name in ARRAYS if np.isnan(getattr(frame, name)).any()]
    assert not with_nan, note


def force_of(frame):
    return frame.attract + frame.repulse


GIVES_WAY = os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0"  # whether another process has the browser tests
# Seconds: a compile on a busy machine takes long, and longer in a process that gives way to the browser.
PATIENCE = int(os.environ.get("STEINLAB_PATIENCE", 180)) * (4 if GIVES_WAY else 1)


def finished(coroutine, seconds=PATIENCE):
    """What a coroutine returns, on a loop and thread of its own: on this one Playwright's loop may be running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, asyncio.wait_for(coroutine, seconds)).result()


def until(read, right=bool, seconds=PATIENCE, pause=0.01):
    """Return what `read` gives, once it is right: `until(tab.step, lambda at: at > 3)`."""
    end = time.monotonic() + seconds
    while not right(found := read()):
        assert time.monotonic() < end, f"still {found!r}"
        time.sleep(pause)
    return found


@contextmanager
def session_of(document):
    """A server's session of this document, on the loop that runs, begun as Bokeh does when the document has been
    made."""
    context = BokehSessionContext("one", None, document)
    context._request = SimpleNamespace(arguments={}, cookies={}, headers={})
    document._session_context = weakref.ref(context)
    session = ServerSession("one", document, io_loop=IOLoop.current())
    context._set_session(session)
    yield session


def rows_in(store) -> int:
    """How many rows a store has that another process writes."""
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as file:
            return file.execute("SELECT count(*) FROM rows").fetchone()[0]
    except sqlite3.OperationalError:  # not there yet
        return 0
