"""`steinlab record LINK`: the run of a link as a page that plays it, as a film or as a GIF."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from stein_core import METHODS
from stein_core.base.errors import short, unknown
from steinlab.pages.collapse.page import Collapse
from steinlab.pages.functions.page import FunctionsPage
from steinlab.pages.location import Location
from steinlab.pages.particles import Particles
from steinlab.pages.remedy.page import Remedy
from steinlab.pages.samplers.page import Samplers
from steinlab.pages.wave.page import WavePage
from steinlab.site import sweep
from steinlab.site.film import check_browser, film, gif
from steinlab.site.sweep import Sweep
from steinlab.stage import training_recorder
from steinlab.stage.contract import View
from steinlab.stage.lecture import Lecture
from steinlab.stage.live_page import Live, Look
from steinlab.stage.recorder import again, recorded, replay_of, run_of, usual
from steinlab.stage.setup import MOST_STEPS, Setup
from steinlab.stage.training_page import TrainingPage
from steinlab.stage.training_setup import TrainingSetup
from steinlab.ui import link

KINDS = {".html": None, ".webm": film, ".gif": gif}  # and what makes one of a replay
MOST_FRAMES = 3000
FRAMES = 300  # of a run whose link does not say its steps
THEMES = ("light", "dark")
LIVE = {page.key: page for page in (Particles, Location, Remedy, Samplers)}
TRAINING = {"wave": WavePage, "functions": FunctionsPage}
PAGES = (
    "Particles", "Location and variance", "Variance collapse", "Which remedy", "Samplers", "1-D wave", "Function space",
)  # fmt: skip
AROUND = ("page", "theme", "ui")  # fields of the app, not of a page


@dataclass(frozen=True)
class Wanted:
    """What is recorded. page: whose link it is. dark: the theme. steps: where the run ends, if nobody says so. view:
    what its stage shows, or None if networks train on it. show: names of the marks."""

    page: type[Live] | type[TrainingPage]
    setup: Setup | TrainingSetup
    dark: bool
    steps: int
    view: View | None = None
    show: tuple[str, ...] = ()
    unit = "step"

    def every(self, steps: int) -> int:
        """Return the steps from one frame to the next, if nobody says so."""
        return self.page.speed if self.view else -(-steps // FRAMES)

    def shoot(self, steps: int, every: int, say: Callable[[int], None]) -> tuple[str, int, str]:
        """Run; return the replay, its last step, and a sentence if something has diverged, or ""."""
        return (_run if self.view else _trained)(self, steps, every, say)


def read(text: str, theme: str | None = None, marks: str | None = None) -> Wanted | Sweep:
    """Read a link of a page with a run.

    Args:
        text: its query, or a whole address.
        theme: "light" or "dark"; None is the link's own, or light.
        marks: names with commas between; None are the link's own, or those that the page draws.

    Raises:
        ValueError: it is a link of another page, or something in it is wrong.
    """
    try:
        query = urlsplit(text).query if "?" in text else text
        fields = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=True))
    except ValueError:
        fields = {}
    if not fields:
        raise ValueError(f"LINK {short(text)!r} has no fields; allowed: for example target=banana&methods=svgd,smi.")
    page = fields.get("page", Particles.key)
    if page not in (*LIVE, *TRAINING, Collapse.key):
        raise ValueError(
            f"LINK: page {short(page)!r} has no run that a link repeats; allowed: links of pages {', '.join(PAGES)}."
        )
    theme = theme or fields.get("theme", "light")
    if theme not in THEMES:
        raise unknown("theme", theme, THEMES)
    own = {name: value for name, value in fields.items() if name not in AROUND}
    if page in LIVE:
        return _live(LIVE[page], own, marks, theme == "dark")
    if marks is not None:
        raise ValueError(f"--marks = {short(marks)!r} has nothing to choose; allowed: with a link of particles.")
    return _training(TRAINING[page], own, theme == "dark") if page in TRAINING else sweep.read(own, theme == "dark")


def _live(page: type[Live], fields: dict[str, str], marks: str | None, dark: bool) -> Wanted:
    """Read a link of a page on which particles move."""
    look, plain = page.look_fields(), Look(tuple(page.drawn))
    shown, rest = link.split(look, fields)
    view, run, wrong = page.view_of(rest)
    setup, problems = Setup.from_query(run, page.plain)
    given, unseen = link.read(look, shown, plain)
    if problems := [*wrong, *unseen.values(), *problems]:
        raise ValueError(f"LINK: {' '.join(problems)}")
    if unfit := page.unfit(setup):
        raise ValueError(f"LINK: {unfit}")
    if marks is not None:
        given, wrong = link.read(look, {"show": marks}, plain)
        if wrong:
            raise ValueError(f"--marks: {wrong['show']}")
    return Wanted(page, setup, dark, setup.steps or FRAMES * page.speed, view, given.show)


def _training(page: type[TrainingPage], fields: dict[str, str], dark: bool) -> Wanted:
    """Read a link of a page on which networks train."""
    _, fields, unread = Lecture.of_query(fields)
    setup, problems = page.setups.from_query(fields)
    if problems := [*unread, *problems]:
        raise ValueError(f"LINK: {' '.join(problems)}")
    steps = setup.steps or page.sessions(setup, None, lambda news: None).end
    return Wanted(page, setup, dark, steps)


def record(
    wanted: Wanted | Sweep, out: Path, steps: int, every: int, size: int, say: Callable[[int, str], None]
) -> tuple[int, str]:
    """Write the file of a run.

    Args:
        wanted: of `read`.
        out: the file; its ending says what it is, see KINDS.
        steps: where the run ends.
        every: steps from one frame to the next.
        size: height of a film or GIF, a key of `steinlab.site.film.SIZES`.
        say: say(step, text) is called for each frame, and before a film is made.

    Returns:
        The bytes of the file, and a sentence if the run has diverged, or "".

    Raises:
        ValueError: no browser for a film, too many frames, or a run that diverges at once.
    """
    if not 1 <= steps <= MOST_STEPS:
        raise ValueError(f"--steps = {short(steps)} is out of range; allowed: 1 to {MOST_STEPS}.")
    if every < 1:
        raise ValueError(f"--every = {short(every)} is too small; allowed: 1 or more.")
    if steps > MOST_FRAMES * every:
        frames = -(-steps // every)
        raise ValueError(
            f"--every = {every} makes {frames} frames; allowed: {MOST_FRAMES} at most, with more steps each."
        )
    paint = KINDS[out.suffix]
    if paint:
        check_browser()
    page, clock, lost = wanted.shoot(steps, every, lambda step: say(step, ""))
    if paint:
        say(clock, "painting")
    made = paint(page, size) if paint else page.encode()
    out.write_bytes(made)
    return len(made), lost


def _run(wanted: Wanted, steps: int, every: int, say: Callable[[int], None]) -> tuple[str, int, str]:
    """Return the replay of a run of particles, its last step, and what has diverged, or ""."""
    page, view = wanted.page, wanted.view
    before = run_of(wanted.setup, view)
    run = again(before, view)
    frames, diverged = recorded(run, view, steps, every, say)
    names = " and ".join(METHODS[name].label for name in diverged)
    if len(frames) == 1:
        raise ValueError(f"{names} diverged at the first step; allowed: a smaller method.step_size.")
    scene = view.scene([stepper.spec for stepper in run.steppers], run.knobs)
    scene = {**scene, "backgrounds": usual(before, view, scene["backgrounds"])}
    show = {name: name in wanted.show for name in page.marks}
    made = replay_of(frames, scene, page.marks, show, wanted.dark)
    return made, run.clock, f"{names} diverged at step {run.clock + 1}; the recording ends there." if diverged else ""


def _trained(wanted: Wanted, steps: int, every: int, say: Callable[[int], None]) -> tuple[str, int, str]:
    """Return the replay of a training, its last step, and what has diverged, or ""."""
    page, setup = wanted.page, wanted.setup
    networks = setup.networks()
    sessions = [page.sessions(network, None, lambda news: None, row) for row, network in enumerate(networks)]
    frames, lost = training_recorder.recorded(sessions, steps, every, say)
    stage = page.stages(lambda message: None, dark=wanted.dark)
    page.pose(stage, setup)
    made = training_recorder.replay_of(frames, stage, page.legend_of(setup), wanted.dark)
    return made, steps, " ".join(f"{METHODS[name].label} diverged at step {step + 1}." for name, step in lost.items())
