"""Frames from a worker thread to one browser: the newest frame wins, few are in flight."""

import threading
import time
from collections import deque
from collections.abc import Callable

import numpy as np

WRAP = 2**24  # float32 counts exactly up to here, and the number travels as float32


class Mailbox:
    """News from a worker thread to the event loop: a call merges a dict into what waits, one delivery takes it all.

    Args:
        schedule: runs a function on the event loop soon, see `steinlab.server.loop.soon`.
        deliver: called there with the merged dict, in order.
    """

    has_threads = True  # see `steinlab.server.memory.dismantle`

    def __init__(self, schedule: Callable[[Callable], None], deliver: Callable[[dict], None]):
        self._schedule, self._deliver = schedule, deliver
        self._lock = threading.Lock()
        self._waiting: dict = {}

    def __call__(self, news: dict) -> None:
        """Any thread."""
        with self._lock:
            first = not self._waiting
            self._waiting |= news
        if first:
            self._schedule(self._flush)

    def _flush(self) -> None:
        with self._lock:
            news, self._waiting = self._waiting, {}
        if news:
            self._deliver(news)


class FrameBudget:
    """How many frames a second a page may send, where the event loop that all pages share cannot send more.

    Each frame says how long it waited for the event loop. `rate` is the total frame rate of all pages. It is lowered
    while more than 1 in 6 frames waits longer than LATE, otherwise raised, and is split evenly among active pages.
    """

    LATE = 0.014  # seconds
    LEAST, MOST = 60.0, 1000.0
    REMEMBERED = 5.0  # seconds

    def __init__(self):
        self.rate = 240.0
        self._last: dict[int, float] = {}  # page -> when it sent its last frame
        self._lock = threading.Lock()

    def sent(self, page: int, waited: float) -> float:
        """A page has sent a frame that waited so long; the moment of time.monotonic() of its next one."""
        now = time.monotonic()
        with self._lock:
            self.rate = min(self.MOST, max(self.LEAST, self.rate * (0.99 if waited > self.LATE else 1.002)))
            self._last[page] = now
            self._last = {one: then for one, then in self._last.items() if then > now - self.REMEMBERED}
            return now + sum(then > now - 1 for then in self._last.values()) / self.rate

    def pages(self, within: float = 1.0) -> int:
        """How many pages have sent a frame within the last second, or so many seconds, at most REMEMBERED."""
        now = time.monotonic()
        with self._lock:
            return sum(then > now - within for then in self._last.values())

    def crowding(self) -> float:
        """How many times rarer each page is told what changes all the time: the more pages play, the rarer."""
        return max(1.0, self.pages() / 5)


FRAME_BUDGET = FrameBudget()


class Streamer:
    """Back-pressure between one worker thread and one browser page.

    send: called on the event loop with a float32 vector whose element 0 is its sequence number.
    schedule: runs a function on the event loop soon, see `steinlab.server.loop.soon`.
    window: how many frames may be under way without an acknowledgement. budget: says how soon the next one may be made.
    """

    has_threads = True  # see `steinlab.server.memory.dismantle`

    def __init__(
        self,
        send: Callable[[np.ndarray], None],
        schedule: Callable[[Callable], None],
        window: int = 2,
        budget: FrameBudget = FRAME_BUDGET,
    ):
        self._send, self._schedule, self._window, self._budget = send, schedule, window, budget
        self._asked = self._next = 0.0  # when the last flush was asked for; when the next frame may be made
        self._hurried = self._eager = False
        self._changed = threading.Condition()
        self._waiting = self._newest = None
        self._sent = self._acked = 0
        self._heard = None
        self._scheduled = self._closed = False
        self._ack_times = deque(maxlen=1000)

    def wait_slot(self, timeout: float) -> bool:
        """Block up to `timeout` seconds until a frame may be produced. False if none may, or after `hurry`."""
        until = time.monotonic() + timeout
        with self._changed:
            while not (self._closed or self._hurried):
                now = time.monotonic()
                if self._free() and (self._eager or now >= self._next):
                    self._eager = False
                    return True
                if now >= until:
                    return False
                self._changed.wait(min(until, self._next if self._free() else until) - now)
            self._hurried = False
            return False

    def hurry(self) -> None:
        """Wake the worker for a command, and let the next frame go at once: what is shown is about to change."""
        with self._changed:
            self._hurried = self._eager = True
            self._changed.notify_all()

    def publish(self, frame: np.ndarray) -> None:
        """Hand over a float32 vector; it replaces a frame that still waits. Any thread."""
        with self._changed:
            if not self._closed:
                self._newest = self._waiting = frame
                self._kick()

    def ack(self, seq: float) -> None:
        """The browser drew frame `seq` (and so is done with all before it)."""
        with self._changed:
            seq = int(seq)
            repeated, self._heard = seq == self._heard, seq
            if repeated and self._in_flight():
                # The browser repeats itself only after a second without frames: what was
                # in flight is lost, and without this the worker would wait for ever.
                self.ready()
            elif (self._sent - seq) % WRAP < self._in_flight():
                self._acked = seq
                self._ack_times.append(time.monotonic())
                self._kick()
                self._changed.notify_all()

    def ready(self) -> None:
        """A page (re)connected: forget what was in flight, send the newest frame again."""
        with self._changed:
            self._acked = self._sent
            self._waiting = self._newest
            self._kick()

    def close(self) -> None:
        """Send nothing more and wake the worker. May be called twice."""
        with self._changed:
            self._closed = True
            self._waiting = self._newest = None
            self._changed.notify_all()

    @property
    def acked_per_second(self) -> int:
        """Frames that reached the screen during the last second."""
        since = time.monotonic() - 1
        with self._changed:
            return sum(t > since for t in self._ack_times)

    def _in_flight(self) -> int:
        return (self._sent - self._acked) % WRAP

    def _free(self) -> bool:
        return self._waiting is None and self._in_flight() < self._window

    def _kick(self) -> None:
        """Ask for a flush if there is something to send. The lock is held."""
        if self._waiting is None or self._scheduled or self._in_flight() >= self._window:
            return
        self._scheduled, self._asked = True, time.monotonic()
        self._schedule(self._flush)

    def _flush(self) -> None:
        with self._changed:
            self._scheduled = False
            if self._waiting is None:  # closed meanwhile
                return
            # A copy, since the same frame may go out again under another number.
            frame, self._waiting = self._waiting.copy(), None
            self._sent = (self._sent + 1) % WRAP
            frame[0] = self._sent
            self._next = self._budget.sent(id(self), time.monotonic() - self._asked)
            # The slot is free again: waiting for the acknowledgement instead would
            # allow one frame in flight and halve the frame rate.
            self._changed.notify_all()
        self._send(frame)
