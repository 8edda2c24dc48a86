"""Compile programs before a visitor asks for them."""

from __future__ import annotations

import logging
import time
from functools import partial

from stein_core import compile
from steinlab.lesson import reading
from steinlab.lesson.ideas import ideas_of
from steinlab.pages.particles import Particles
from steinlab.pages.wave import session as wave_session
from steinlab.server.visitors import VISITORS
from steinlab.stage import session
from steinlab.stage.programs import FIRST_CAPACITY
from steinlab.stage.scene import SideBySide

log = logging.getLogger(__name__)


def compile_particles() -> None:
    """Compile the programs of the first stop of page Particles."""
    try:
        setup, view = Particles.stops()[0], SideBySide()
        specs = [setup.spec(method, FIRST_CAPACITY) for method in setup.methods]
        for prepare in (*[partial(compile, spec, measure=view.measured) for spec in specs], partial(view.scene, specs)):
            # Visitors' programs come first.
            while session.COMPILERS.busy or wave_session.COMPILERS.busy or VISITORS.arriving:
                time.sleep(0.2)
            prepare()
    except Exception:  # the first visitor's session meets it again and shows it
        log.exception("warm-up")


def compile_first_lesson() -> None:
    """Compile the programs of the first figure of lesson 1."""
    lesson = next(iter(reading.lessons().values()))
    first = ideas_of(lesson)[0]
    reading.prepare(lesson, first.start, first.stop)()
