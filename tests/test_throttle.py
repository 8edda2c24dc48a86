"""Lessons beside pages that play: long runs in pieces, and one page's new cells after another's."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import holoviews as hv
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import pytest
from checks import PATIENCE, assert_same_frame, finished, lazy, until
from desks import cliff  # noqa: F401  (a fixture)

from stein_core import Spec, from_numpyro
from stein_core.base.pieces import PIECE, in_pieces, resting
from stein_core.runs.runner import Stepper
from steinlab.lesson import chart
from steinlab.lesson.chart import IDLE, Chart
from steinlab.lesson.host import NotebookHost
from steinlab.lesson.reading import Cell, Lesson, Reading
from steinlab.server import background
from steinlab.server.background import LONGEST_REST, Cancelled, UiThrottle, background_work

SVGD = Spec("gaussian", 2, "svgd", capacity=32)


@pytest.mark.long
def test_steps_in_pieces_are_the_same_steps():
    stepper, moments = lazy(SVGD), []
    knobs = {"method.step_size": 0.05}
    begun = stepper.reset(0, knobs)
    whole = stepper.advance(begun, knobs, 30_000)
    with in_pieces(lambda: moments.append(time.perf_counter())):
        began = time.perf_counter()
        pieces = stepper.advance(begun, knobs, 30_000)
        took = time.perf_counter() - began
    assert_same_frame(stepper.look(pieces, knobs, False), stepper.look(whole, knobs, False))
    assert int(pieces.step) == 30_000 and 2 < len(moments) < 10 + 5 * took / PIECE
    moments.clear()
    with in_pieces(lambda: moments.append(0)):
        for _ in range(3):
            stepper.advance(begun, knobs, 1)  # as where a frame is wanted of each
    stepper.advance(begun, knobs, 1000)
    assert len(moments) == 3  # only within


def test_a_run_in_pieces_ends_where_it_diverges(cliff):
    stepper, knobs = Stepper(Spec("cliff", 1, "map", capacity=4)), {"method.step_size": 0.01}
    begun = stepper.reset(0, knobs)
    whole = stepper.advance(begun, knobs, 10_000)
    rests = []
    with in_pieces(lambda: rests.append(1)):
        pieces = stepper.advance(begun, knobs, 10_000)
    assert 20 < int(whole.step) == int(pieces.step) < 10_000 and rests


def test_a_lesson_that_is_left_stops_in_the_midst_of_its_steps():
    told, begun = [], threading.Event()
    stepper = lazy(SVGD)
    begin = stepper.reset(0, {})
    stepper.advance(begin, {}, 1)  # compiled
    cells = (Cell(True, "begun.set(); stepper.advance(begin, {}, 10**9)"), Cell(True, "1"))
    one = Reading(
        Lesson("99", "T", 1, "Q?", cells),
        NotebookHost(lambda call: call(), lesson=True),
        lambda *news: told.append(news),
    )
    one._namespace |= {"stepper": stepper, "begin": begin, "begun": begun}
    one.run_to(2)
    assert begun.wait(PATIENCE)
    time.sleep(0.2)
    assert one._running
    one.close()
    until(lambda: not one._running, seconds=10)
    assert not told


class Clock:
    """Time that passes where it is told to."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_background_work_has_the_share_of_one_page_more_and_ends_when_it_is_unwanted(monkeypatch):
    clock, playing, pauses, unwanted = Clock(), 4, [], []

    @contextmanager
    def in_pieces(pause):
        pauses.append(pause)
        yield

    monkeypatch.setattr(background, "time", clock)
    monkeypatch.setattr(background, "in_pieces", in_pieces)
    monkeypatch.setattr(background.FRAME_BUDGET, "pages", lambda within: playing)
    monkeypatch.setattr(background, "SPARE_CORES", 1)
    monkeypatch.setattr(background, "AT_WORK", threading.Semaphore(2))

    def rest(worked: float, pause=0) -> float:
        clock.now += worked
        began = clock.now
        pauses[pause]()
        return clock.now - began

    with background_work(lambda: unwanted), background_work(lambda: unwanted):
        assert rest(1.0) == 0.0  # what came before its first piece of work is none of its doing
        assert rest(0.1) == pytest.approx(0.4, abs=0.03)
        assert rest(0.5) == pytest.approx(2.0, abs=0.03)
        assert rest(60.0) == pytest.approx(LONGEST_REST, abs=0.03)
        playing = 0
        assert rest(0.5) == 0.0
        playing = 4
        monkeypatch.setattr(background, "SPARE_CORES", 2)  # three cores
        assert rest(0.5) == pytest.approx(1.0, abs=0.03)
        assert rest(0.5, 1) == 0.0  # another's first piece of work
        unwanted.append(1)
        with pytest.raises(Cancelled):
            rest(0.5)


@pytest.mark.parametrize("at_a_time", [1, 2])
def test_so_many_threads_of_background_work_run_at_a_time(monkeypatch, at_a_time):
    monkeypatch.setattr(background, "AT_WORK", threading.Semaphore(at_a_time))
    monkeypatch.setattr(background.FRAME_BUDGET, "pages", lambda within=1.0: 0)
    both, met = threading.Barrier(2), []

    def work():
        with background_work(lambda: False):
            for _ in range(3):
                with suppress(threading.BrokenBarrierError):  # the other one does not come
                    both.wait(2)
                    met.append(1)
                resting(lambda: time.sleep(PIECE))()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work) for _ in range(2)]:
            done.result()
    assert bool(met) == (at_a_time == 2)


def test_background_work_that_waits_for_other_background_work_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(background, "AT_WORK", threading.Semaphore(1))
    monkeypatch.setattr(background, "LONGEST_REST", 0.1)

    def other():
        with background_work(lambda: False):
            return 1

    with ThreadPoolExecutor(1) as pool, background_work(lambda: False):
        assert pool.submit(other).result(10) == 1


def test_a_search_for_a_start_rests_and_ends_when_it_is_unwanted():
    def model():
        numpyro.sample("x", dist.Normal(jnp.zeros(3), 1.0).to_event(1))

    with pytest.raises(Cancelled), background_work(lambda: True):
        from_numpyro(model)


def test_steps_in_background_work_pause_and_end_when_they_are_unwanted():
    asked = []
    stepper = lazy(SVGD)
    state = stepper.reset(0, {})
    with background_work(lambda: asked.append(1)):
        stepper.advance(state, {}, 30_000)
    assert len(asked) > 2
    with pytest.raises(Cancelled), background_work(lambda: asked.append(1) or len(asked) > 100):
        stepper.advance(state, {}, 10**9)


@pytest.mark.parametrize("playing", [3, 0])
def test_what_takes_long_leaves_the_event_loop_free_for_as_long_while_pages_play(monkeypatch, playing):
    # Starved pages have sent nothing for a second.
    monkeypatch.setattr(background.FRAME_BUDGET, "pages", lambda within=1.0: playing if within > 1 else 0)
    done = []

    async def all_at_once():
        loop, some = asyncio.get_running_loop(), UiThrottle()

        def long(name):
            began = time.monotonic()
            time.sleep(0.5)
            done.append((name, began, time.monotonic()))
            if name == "fails":
                raise ZeroDivisionError

        for name in ("a", "fails", "b"):
            some.run(loop.call_soon, lambda name=name: long(name))
        while len(done) < 3:
            await asyncio.sleep(0.001)

    finished(all_at_once())
    gaps = [after[1] - before[2] for before, after in zip(done, done[1:])]
    assert sorted(name for name, *_ in done) == ["a", "b", "fails"]
    assert min(gaps) > 0.49 if playing else max(gaps) < 0.4


def test_what_has_no_event_loop_is_done_at_once(monkeypatch):
    monkeypatch.setattr(background.FRAME_BUDGET, "pages", lambda within: 3)
    some, done = UiThrottle(), []

    def both():
        for name in ("a", "b"):
            some.run(lambda call: call(), lambda name=name: (time.sleep(0.1), done.append(name)))

    with ThreadPoolExecutor(1) as pool:  # on this thread Playwright's loop may be running
        pool.submit(both).result()
    assert done == ["a", "b"]


def test_a_chart_ends_with_its_newest_drawing_whatever_the_order_of_turns(monkeypatch):
    waiting = []
    monkeypatch.setattr(chart.UI_THROTTLE, "run", lambda later, call: waiting.append(call))
    made = Chart(lambda n: hv.Curve([0, n]), "", {"n": (1, 9, 1)})
    assert not made.settle()
    made.controls["n"].value = 5
    assert not made.settle()
    for call in waiting[::-1]:
        call()
    assert made.figure[0].object.renderers[0].data_source.data["y"].tolist() == [0, 5] and made.line.object == IDLE
