"""`steinlab record LINK`: a run of page Particles as a page that plays it, as a film or as a GIF."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from stein_core import METHODS
from stein_core.base.errors import short, unknown
from steinlab.pages.particles import Particles
from steinlab.site.film import check_browser, film, gif
from steinlab.stage.live_page import Look
from steinlab.stage.recorder import again, recorded, replay_of, run_of, usual
from steinlab.stage.setup import MOST_STEPS, Setup
from steinlab.ui import link

KINDS = {".html": None, ".webm": film, ".gif": gif}  # and what makes one of a replay
MOST_FRAMES = 3000
THEMES = ("light", "dark")
AROUND = ("page", "theme", "ui")  # fields of the app, not of a page


@dataclass(frozen=True)
class Wanted:
    """What is recorded. show: names of the marks. dark: the theme."""

    setup: Setup
    show: tuple[str, ...]
    dark: bool


def read(text: str, theme: str | None = None, marks: str | None = None) -> Wanted:
    """Read a link of page Particles.

    Args:
        text: its query, or a whole address.
        theme: "light" or "dark"; None is the link's own, or light.
        marks: names with commas between; None are the link's own, or those that the page draws.

    Raises:
        ValueError: it is no link of that page, or something in it is wrong.
    """
    try:
        query = urlsplit(text).query if "?" in text else text
        fields = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=True))
    except ValueError:
        fields = {}
    if not fields:
        raise ValueError(f"LINK {short(text)!r} has no fields; allowed: for example target=banana&methods=svgd,smi.")
    page = fields.get("page", Particles.key)
    if page != Particles.key:
        raise ValueError(f"LINK: page {short(page)!r} cannot be recorded; allowed: links of page Particles.")
    theme = theme or fields.get("theme", "light")
    if theme not in THEMES:
        raise unknown("theme", theme, THEMES)
    look = Particles.look_fields()
    shown, run = link.split(look, {name: value for name, value in fields.items() if name not in AROUND})
    setup, problems = Setup.from_query(run, Particles.plain)
    plain = Look(tuple(Particles.drawn))
    given, unseen = link.read(look, shown, plain)
    if problems := [*unseen.values(), *problems]:
        raise ValueError(f"LINK: {' '.join(problems)}")
    if marks is not None:
        given, wrong = link.read(look, {"show": marks}, plain)
        if wrong:
            raise ValueError(f"--marks: {wrong['show']}")
    return Wanted(setup, given.show, theme == "dark")


def record(
    wanted: Wanted, out: Path, steps: int, every: int, size: int, say: Callable[[int, str], None]
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
    view = Particles.views()
    before = run_of(wanted.setup, view)
    run = again(before, view)
    frames, diverged = recorded(run, view, steps, every, lambda step: say(step, ""))
    names = " and ".join(METHODS[name].label for name in diverged)
    if len(frames) == 1:
        raise ValueError(f"{names} diverged at the first step; allowed: a smaller method.step_size.")
    scene = view.scene([stepper.spec for stepper in run.steppers], run.knobs)
    scene = {**scene, "backgrounds": usual(before, view, scene["backgrounds"])}
    show = {name: name in wanted.show for name in Particles.marks}
    page = replay_of(frames, scene, Particles.marks, show, wanted.dark)
    if paint:
        say(run.clock, "painting")
    made = paint(page, size) if paint else page.encode()
    out.write_bytes(made)
    return len(made), f"{names} diverged at step {run.clock + 1}; {out.name} ends there." if diverged else ""
