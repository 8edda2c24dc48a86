"""A session without a browser (a thread, a queue and a fake screen) and a target with a cliff, shared by the tests."""

import time

import jax.numpy as jnp
import numpy as np
import pytest
from checks import PATIENCE

from stein_core import TARGETS
from stein_core.contract.known import Start
from stein_core.contract.target import Target
from steinlab.stage.scene import SideBySide
from steinlab.stage.session import Session
from steinlab.stage.setup import CAPACITY, CrowdSetup, Setup

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

    def __init__(self, most=CAPACITY, view=SideBySide(), **fields):
        self.screen, self.news = Screen(), {}
        setup = (CrowdSetup if most > CAPACITY else Setup)(**{**SMALL, **fields})
        self.session = Session(setup, self.screen, self.news.update, view, most=most)
        self.session.wake()

    def until(self, happened, seconds=PATIENCE):
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

    def made(*about, **fields):
        desks.append(Desk(*about, **fields))
        return desks[-1]

    yield made
    for each in desks:
        each.session.close()
        each.session._thread.join(10)
        assert not each.session._thread.is_alive()


@pytest.fixture
def cliff():
    """A slope whose score is no number beyond theta_0 = 3."""
    TARGETS.register("cliff", label="Cliff", reference="made up", dims=(1, 1), default_dim=1)(_cliff)
    yield
    del TARGETS._entries["cliff"]


def _cliff(dim):
    "Not a number beyond 3."

    def log_density(theta):
        return 2.0 * theta[0] + 1e-30 * jnp.sqrt(3.0 - theta[0])

    return Target(log_density, Start(np.zeros(1), np.ones(1)), ("x",), lambda theta: {"x": theta})
