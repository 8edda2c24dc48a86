"""The pages of the app, in the order of the menu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from steinlab.pages.benchmarks.page import Benchmarks
from steinlab.pages.collapse.page import Collapse
from steinlab.pages.functions.page import FunctionsPage
from steinlab.pages.lecture.page import LecturePage
from steinlab.pages.lessons.page import Lessons
from steinlab.pages.location import Location
from steinlab.pages.notation import Notation
from steinlab.pages.particles import Particles
from steinlab.pages.posterior.page import PosteriorPage
from steinlab.pages.remedy.page import Remedy
from steinlab.pages.samplers.page import Samplers
from steinlab.pages.start import Index
from steinlab.pages.wave.page import WavePage


class Page(Protocol):
    """What a page has. A page is one file or folder in app/pages, and one entry of PAGES.

    Its class is called with (shell, query): `query` has the fields of a link as strings. It may use `shell.frame` (the
    pmui.Page; watch its `dark_theme`), `shell.browser.copy(text)`, `shell.copy_link(link)` and
    `shell.go("?page=key&a=1")`. A page that can show another link of its own also has `open(query)`.

    Attributes:
        sidebar, main: components. If `sidebar` is empty, the page has none.

    It may also have `tour`, a `steinlab.stage.tour.Tour`, and `presets`, its stops, on the class; `lecture`, a
    `steinlab.stage.lecture.Lecture`; `shares`, label -> what the menu "Share" does; and on the class `prepare(query)`,
    which compiles what a link needs.
    """

    sidebar: list[Any]
    main: list[Any]

    def show(self) -> None:
        """Come on screen, the first time too."""

    def hide(self) -> None:
        """Leave the screen: a hidden page does no work."""

    def refresh(self) -> None:
        """Update what changes by itself: called twice a second while the page is shown."""

    def link(self) -> str:
        """Return "a=1&b=2", which repeats what is shown."""


class Entry(NamedTuple):
    """A page of the menu.

    Args:
        label: in the menu.
        build: its class.
        sentence: what one does there, for page Start; "" if the page is not listed there.
        research: whether it is for researchers rather than for a course.
    """

    label: str
    build: Callable[[Any, dict[str, str]], Page]
    sentence: str = ""
    research: bool = False


PAGES = {  # key in the link -> Entry
    "index": Entry("Start", Index),
    "lessons": Entry("Lessons", Lessons),
    "particles": Entry(
        "Particles",
        Particles,
        "Run up to three methods side by side on one posterior, and see the forces on every particle.",
    ),
    "location": Entry(
        "Location and variance",
        Location,
        "See SMI's guides in both of their spaces: where they are, and how wide they are.",
    ),
    "collapse": Entry(
        "Variance collapse",
        Collapse,
        "See how much variance each method keeps as the dimension grows, with exact laws through the points.",
    ),
    "remedy": Entry(
        "Which remedy",
        Remedy,
        "Change SVGD in one place after the other, and see which change keeps the variance and what it costs.",
    ),
    "wave": Entry(
        "1-D wave",
        WavePage,
        "Add and drag data points, and see how the uncertainty band of a Bayesian neural network follows.",
    ),
    "functions": Entry(
        "Function space",
        FunctionsPage,
        "Drag the points at which networks repel as functions, and see where an ensemble doubts.",
    ),
    "samplers": Entry(
        "Samplers",
        Samplers,
        "Train networks that turn noise into draws, and see which errors a small discrepancy misses.",
    ),
    "posterior": Entry(
        "Your posterior",
        PosteriorPage,
        "Fit a posterior or upload draws, see whether they are right, and what a change would do.",
    ),
    "lecture": Entry(
        "Lecture",
        LecturePage,
        "Put stops of several pages and figures of the lessons into one lecture, with notes for yourself.",
    ),
    "benchmarks": Entry(
        "Benchmarks",
        Benchmarks,
        "See the papers' results on real data beside ours, with what differs, and compute a cell again.",
        research=True,
    ),
    "notation": Entry(
        "Notation and references",
        Notation,
        "Look up every symbol with its name in the code, every paper, and each place where we correct one.",
        research=True,
    ),
}
