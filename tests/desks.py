"""A session without a browser: a thread, a queue and a fake screen, shared by the tests."""

import time

import pytest

from app.session import Session
from app.setup import Setup

SMALL = {"target": "gaussian", "methods": ("svgd",)}


class Screen:
    """Takes every frame at once, as a fast browser would."""

    def __init__(self):
        self.frames, self.closed = [], False

    def wait_slot(self, timeout):
        return not self.closed

    def hurry(self):
        pass

    def publish(self, frame):
        self.frames.append(frame)

    def close(self):
        self.closed = True


class Desk:
    """A session with what it told."""

    def __init__(self, **fields):
        self.screen, self.news = Screen(), {}
        self.session = Session(Setup(**{**SMALL, **fields}), self.screen, self.news.update)
        self.session.wake()

    def until(self, happened, seconds=60):
        end = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < end, self.news
            time.sleep(0.01)

    @property
    def frame(self):
        return self.session.frames[0]

    def at(self, step):
        self.until(lambda: self.session.frames and self.frame.step >= step)


@pytest.fixture
def desk():
    desks = []

    def made(**fields):
        desks.append(Desk(**fields))
        return desks[-1]

    yield made
    for each in desks:
        each.session.close()
        each.session._thread.join(10)
        assert not each.session._thread.is_alive()
