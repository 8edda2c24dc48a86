"""Shared by all tests: the compile counter. Steppers are shared through stein_core.compile."""

import gc
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import jax
import pytest
import quick
from bokeh.server import session as sessions
from bokeh.server.contexts import ApplicationContext
from checks import COMPILE, GIVES_WAY, TRACE, lazy

import stein_core
from stein_core.base.machine import maps_used, single_thread_lapack
from stein_core.contract.registry import Registry
from stein_core.runs import cache as steppers, outputs
from stein_core.sweep import batches
from steinlab.server.workarounds import WORKAROUNDS

BROWSER = "tests/browser/"

if GIVES_WAY:
    os.nice(19)  # the first process has the browser tests: a page that plays costs most while a test waits for it

quick.compile_quickly()
single_thread_lapack()
if not os.environ.get("STEINLAB_CACHE"):  # for all processes of this run; the user's own folder is left alone
    _folder = tempfile.TemporaryDirectory(prefix="steinlab-tests-")
    os.environ["STEINLAB_CACHE"] = _folder.name
stein_core.keep_compiled()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """For `pytest -n 3 --no-loadscope-reorder`: a module stays in one process, and so do all browser tests, which come
    first. (pytest-xdist's own groups are lost on the way to its processes.)"""
    from xdist.scheduler import LoadScopeScheduling

    class Modules(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return BROWSER if nodeid.startswith(BROWSER) else nodeid.split("::")[0]

        def _assign_work_unit(self, node):
            """Whichever process is ready first."""
            if BROWSER in self.workqueue:
                self.workqueue.move_to_end(BROWSER, last=node.gateway.id != "gw0")
            super()._assign_work_unit(node)

    return Modules(config, log)


def often() -> list[str]:
    """The tests of `often.txt`, as pytest names them."""
    file, named = "", []
    for line in (Path(__file__).parent / "often.txt").read_text().splitlines():
        if line.startswith("tests/"):
            file = line
        elif line.startswith(" "):
            named.append(f"{file}::{line.strip()}")
    return named


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark the tests of `often.txt`, of which each line names one. A run of parts of files cannot find all."""
    named, found = often(), set()
    for item in items:
        for name in {item.nodeid, item.nodeid.split("[")[0]}.intersection(named):
            found.add(name)
            if not item.get_closest_marker("rare"):
                item.add_marker("often")
    if not (config.getoption("lf") or any("::" in each for each in config.args)):
        files = {item.nodeid.split("::")[0] for item in items}
        gone = [name for name in named if name.split("::")[0] in files and name not in found]
        if gone:
            raise pytest.UsageError(f"often.txt names tests that are not there: {', '.join(gone)}")


def forget_all():
    """Forget every compiled program."""
    lazy.cache_clear()
    steppers._steppers.clear()
    batches._compiled.cache_clear()
    outputs._drawer.cache_clear()
    jax.clear_caches()
    gc.collect()


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
    """Each module starts without what the last one has registered. Programs are kept for the next modules, as long as
    there is room: every compiled one takes memory maps, of which a process has 65,530 on Linux, and XLA crashes without
    a word when there are no more."""
    registries = [each for each in vars(stein_core).values() if isinstance(each, Registry)]
    entries = [dict(registry._entries) for registry in registries]
    yield
    for registry, before in zip(registries, entries, strict=True):
        registry._entries = before
    lazy.cache_clear()
    if maps_used() >= 0.4:
        forget_all()


@pytest.fixture
def optimized():
    """Programs that a test compiles are those of users, see `quick`: where last digits, memory or speed count."""
    if quick.ASKED:
        yield
    else:
        forget_all()  # another test may have compiled the same program quickly
        with quick.optimized():
            yield


@pytest.fixture
def on_the_loop(monkeypatch):
    """Pages run on the event loop, as on our server: from 3.10 on Bokeh would take threads."""
    (row,) = (one for one in WORKAROUNDS if one.where == "stay_on_the_loop")
    if row.needed:
        for owner, name in ((sessions, "_run_in_executor"), (ApplicationContext, "_can_initialize_document_in_worker")):
            monkeypatch.setattr(owner, name, getattr(owner, name))  # to have it back
        row.apply()


@pytest.fixture
def counted():
    """A context manager that counts JAX's traces and compiles: `with counted() as n: ...; n[TRACE]`."""

    @contextmanager
    def counting():
        counts = {TRACE: 0, COMPILE: 0}

        def listen(event, duration, **facts):
            if event in counts:
                counts[event] += 1

        jax.monitoring.register_event_duration_secs_listener(listen)
        try:
            yield counts
        finally:
            jax.monitoring.unregister_event_duration_listener(listen)

    return counting
