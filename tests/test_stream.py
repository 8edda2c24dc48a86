"""Streamer without a browser: a list of callbacks stands in for the event loop."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.io import doc as current
from checks import PATIENCE, finished, session_of

from steinlab.server.loop import soon
from steinlab.server.streaming import WRAP, FrameBudget, Streamer


class Loop:
    """A hand-cranked event loop that records what was sent."""

    def __init__(self, budget=None):
        budget = budget or SimpleNamespace(sent=lambda page, waited: 0.0)
        self.callbacks, self.sent = [], []
        self.streamer = Streamer(self.sent.append, self.callbacks.append, budget=budget)

    def turn(self):
        while self.callbacks:
            self.callbacks.pop(0)()

    def publish(self, value):
        self.streamer.publish(np.array([0, value], np.float32))

    def values(self):
        return [float(frame[1]) for frame in self.sent]

    def seqs(self):
        return [int(frame[0]) for frame in self.sent]


@pytest.fixture
def loop():
    return Loop()


def test_window_is_never_exceeded(loop):
    for value in range(10):
        loop.publish(value)
        loop.turn()
    assert loop.seqs() == [1, 2]
    loop.streamer.ack(1)
    loop.turn()
    assert loop.seqs() == [1, 2, 3]


def test_newest_frame_replaces_a_waiting_one(loop):
    for value in range(5):
        loop.publish(value)
    loop.turn()
    assert loop.values() == [4]
    for value in (5, 6, 7, 8):
        loop.publish(value)
        loop.turn()
    loop.streamer.ack(2)
    loop.turn()
    assert loop.values() == [4, 5, 8]


def test_acknowledging_the_last_frame_frees_the_whole_window(loop):
    for value in range(2):
        loop.publish(value)
        loop.turn()
    loop.streamer.ack(2)
    for value in range(2, 5):
        loop.publish(value)
        loop.turn()
    assert loop.seqs() == [1, 2, 3, 4]


def test_published_array_is_left_alone(loop):
    frame = np.array([0, 7], np.float32)
    loop.streamer.publish(frame)
    loop.turn()
    assert frame[0] == 0 and loop.sent[0] is not frame


def test_wait_slot_blocks_while_a_frame_waits_or_the_window_is_full(loop):
    assert loop.streamer.wait_slot(0)
    loop.publish(0)
    assert not loop.streamer.wait_slot(0.02)
    loop.turn()
    assert loop.streamer.wait_slot(0)  # one in flight, one more allowed
    loop.publish(1)
    loop.turn()
    assert not loop.streamer.wait_slot(0.02)


@pytest.mark.parametrize("wake", ["leaves the slot", "ack", "ready"])
def test_wait_slot_wakes(loop, wake):
    loop.publish(0)
    if wake != "leaves the slot":
        loop.turn()
        loop.publish(1)
        loop.turn()
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(loop.streamer.wait_slot(10)))
    waiter.start()
    time.sleep(0.05)
    assert not answers
    if wake == "ack":
        loop.streamer.ack(1)
    elif wake == "ready":
        loop.streamer.ready()
    loop.turn()
    waiter.join(2)
    assert answers == [True]


def test_close_wakes_a_waiter_and_sends_nothing_more(loop):
    for value in range(2):
        loop.publish(value)
        loop.turn()
    loop.publish(2)
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(loop.streamer.wait_slot(10)))
    waiter.start()
    time.sleep(0.05)
    loop.streamer.close()
    waiter.join(2)
    assert answers == [False]
    loop.streamer.ack(2)
    loop.publish(3)
    loop.streamer.ready()
    loop.turn()
    assert loop.values() == [0, 1]


def test_close_before_the_flush_ran(loop):
    loop.publish(0)
    loop.streamer.close()
    loop.turn()
    assert not loop.sent


def test_ready_forgets_what_was_in_flight_and_resends_the_newest(loop):
    for value in range(2):
        loop.publish(value)
        loop.turn()
    loop.streamer.ready()
    loop.turn()
    assert loop.values() == [0, 1, 1]
    assert loop.seqs() == [1, 2, 3]
    loop.streamer.ack(2)  # a late answer from before the reconnect frees nothing
    loop.publish(2)
    loop.turn()
    loop.publish(3)
    loop.turn()
    assert loop.seqs() == [1, 2, 3, 4]


def test_repeated_ack_releases_lost_frames(loop):
    loop.publish(0)
    loop.turn()
    loop.streamer.ack(1)
    for value in (1, 2):
        loop.publish(value)
        loop.turn()
    assert not loop.streamer.wait_slot(0)
    loop.streamer.ack(1)
    loop.turn()
    assert loop.values() == [0, 1, 2, 2]
    loop.streamer.ack(4)
    loop.streamer.ack(4)  # nothing is missing now, so nothing goes out again
    loop.turn()
    assert len(loop.sent) == 4


def test_sequence_numbers_wrap(loop):
    loop.streamer._sent = loop.streamer._acked = WRAP - 2
    for value in range(3):
        loop.publish(value)
        loop.turn()
    assert loop.seqs() == [WRAP - 1, 0]
    assert not loop.streamer.wait_slot(0)
    loop.streamer.ack(0.0)  # counts for both, across the wrap
    loop.turn()
    assert loop.seqs() == [WRAP - 1, 0, 1]
    assert loop.streamer.wait_slot(0)
    loop.streamer.ack(WRAP - 1)  # late: must not count as "ahead"
    loop.publish(3)
    loop.turn()
    loop.publish(4)
    loop.turn()
    assert loop.seqs()[-1] == 2


def test_acked_per_second_counts_drawn_frames_of_the_last_second(loop, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("steinlab.server.streaming.time.monotonic", lambda: now[0])
    for seq in (1, 2, 3):
        loop.publish(seq)
        loop.turn()
        loop.streamer.ack(seq)
        now[0] += 0.4
    assert loop.streamer.acked_per_second == 2
    now[0] += 2
    assert loop.streamer.acked_per_second == 0


def test_pages_that_send_have_equal_shares_of_what_the_loop_manages(monkeypatch):
    now, budget = [100.0], FrameBudget()
    monkeypatch.setattr("steinlab.server.streaming.time.monotonic", lambda: now[0])
    for _ in range(5):
        for page in range(10):
            due = budget.sent(page, waited=0.0)
        now[0] += 0.05
    assert due - (now[0] - 0.05) == pytest.approx(10 / budget.rate)
    now[0] += 2  # all others have gone
    assert budget.sent(0, 0.0) - now[0] == pytest.approx(1 / budget.rate)


@pytest.mark.parametrize("late, most", [(0.1, True), (0.3, False)])
def test_the_rate_falls_where_more_than_one_frame_in_six_is_late(late, most):
    budget, chance = FrameBudget(), np.random.default_rng(0)
    for _ in range(20_000):
        budget.sent(0, 2 * FrameBudget.LATE if chance.random() < late else 0.0)
    assert (budget.rate > 900) == most and (budget.rate < 70) != most


def test_a_frame_is_held_back_until_its_share_is_due_but_not_where_somebody_hurries():
    loop = Loop(budget=SimpleNamespace(sent=lambda page, waited: time.monotonic() + 0.2))
    loop.publish(0)
    loop.turn()
    began = time.monotonic()
    assert not loop.streamer.wait_slot(0.05)
    assert loop.streamer.wait_slot(1) and 0.15 < time.monotonic() - began < 0.4
    loop.publish(1)
    loop.turn()
    loop.streamer.ack(2)
    loop.streamer.hurry()
    assert not loop.streamer.wait_slot(1)  # first the worker looks at its commands
    began = time.monotonic()
    assert loop.streamer.wait_slot(1) and time.monotonic() - began < 0.1
    assert not loop.streamer.wait_slot(0.05)


def test_hurry_wakes_a_worker_that_waits(loop):
    for value in range(2):
        loop.publish(value)
        loop.turn()
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(loop.streamer.wait_slot(10)))
    waiter.start()
    time.sleep(0.05)
    loop.streamer.hurry()
    waiter.join(2)
    assert answers == [False]


def test_the_more_pages_play_the_rarer_each_is_told_what_changes_all_the_time(monkeypatch):
    now, budget = [100.0], FrameBudget()
    monkeypatch.setattr("steinlab.server.streaming.time.monotonic", lambda: now[0])
    assert budget.pages() == 0 and budget.crowding() == 1
    for page in range(24):
        budget.sent(page, 0.0)
    assert budget.pages() == 24 and budget.crowding() == 4.8
    now[0] += 1.1  # they have stopped
    assert budget.pages() == 0 and budget.crowding() == 1
    assert budget.pages(budget.REMEMBERED) == 24  # or are so slow
    now[0] += 4
    budget.sent(24, 0.0)
    assert budget.pages(budget.REMEMBERED) == budget.pages() == 1


def test_what_a_thread_tells_a_page_comes_in_order_and_locked_and_nothing_after_its_end(caplog, monkeypatch):
    if isinstance(current._PATCHED_CURDOCS, list):  # Bokeh 3.9 leaves the document of a callback that fails there
        monkeypatch.setattr(current, "_PATCHED_CURDOCS", [])

    async def told():
        with session_of(Document()) as session:
            document, heard = session.document, []
            later = soon(document)

            def hear(what):
                lock = session._lock  # of Tornado, or of asyncio from Bokeh 3.10 on
                locked = lock.locked() if hasattr(lock, "locked") else not lock._block._value
                heard.append((what, current.curdoc() is document, locked))
                if what == 1:
                    raise RuntimeError("no such thing")

            document.hold()  # as Panel does while it changes something
            with ThreadPoolExecutor(1) as other:
                other.submit(lambda: [later(partial(hear, what)) for what in range(3)])
            end = time.monotonic() + PATIENCE
            while (len(heard) < 3 or "Traceback" not in caplog.text) and time.monotonic() < end:
                await asyncio.sleep(0.01)
            assert heard == [(what, True, True) for what in range(3)]
            assert caplog.text.count("Traceback") == 1 and "no such thing" in caplog.text
            later(partial(hear, 3))  # on its way
            session.destroy()
            later(partial(hear, 4))
            await asyncio.sleep(0.1)
            assert len(heard) == 3 and caplog.text.count("Traceback") == 1

    finished(told())
    soon(Document())(print)  # which no server has
