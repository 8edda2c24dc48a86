"""Page "Lessons": the notebooks, one idea a screen."""

from __future__ import annotations

import html
from dataclasses import dataclass

import panel as pn
import panel_material_ui as pmui

from stein_core.base.errors import short
from steinlab.lesson.around import CSS, bars, foot, listing
from steinlab.lesson.ideas import Idea, idea_at
from steinlab.lesson.predictions import scores_html
from steinlab.lesson.reader import Reader
from steinlab.lesson.reading import Lesson, keys_of, lessons
from steinlab.pages.lessons.screens import COLUMN, FIGURE, WIDE, Screens
from steinlab.server.loop import soon
from steinlab.stage.lecture import Lecture
from steinlab.ui import link
from steinlab.ui.text import Text

BAR = {
    "position": "sticky",
    "bottom": "0",
    "z-index": "5",
    "background": "var(--mui-palette-background-paper, Canvas)",
    "border-top": "1px solid var(--mui-palette-line-main)",
}
HELP = "<small><b>→</b> next idea, <b>←</b> the one before, <b>P</b> lecture.</small>"
LARGE = """:host { --lesson-size: 24px; --lesson-head: 40px; --lesson-wide: 1200px; --lesson-formula: 1.25; }
:host(.seen) { --lesson-prose: none; }"""  # of a lecture; with a figure, the text is what the speaker says


@dataclass(frozen=True)
class At:
    """Where a reader is. idea: from 1; None is the first. cell: of an old link, how many cells were on screen."""

    lesson: str
    idea: int | None = None
    cell: int | None = None


def lesson_of(text: str) -> str:
    """Read the key of a lesson: "02" or "2"."""
    key = text.zfill(2)
    if key not in lessons():
        raise ValueError(f"There is no lesson {short(text)!r}; the lessons are {', '.join(lessons())}.")
    return key


LINK = (
    link.Field("lesson", lesson_of, always=True),
    link.whole_number("idea", always=True),
    link.whole_number("cell"),
)


class Lessons:
    """Page "Lessons"; see `steinlab.contents` for the contract of a page."""

    def __init__(self, shell, query: dict[str, str]):
        self.shell, self.later = shell, soon(pn.state.curdoc)
        self.far: dict[str, int] = {}  # lesson -> the most ideas seen
        self.screens: Screens | None = None
        self.begun = False  # nothing runs before the page is there
        talks, query, unread = Lecture.of_query(query)
        self.lecture = Lecture(shell, self.step, self.enlarge, on=talks)
        self.lecture.only += [
            pmui.IconButton(
                icon=f"chevron_{side}",
                on_click=lambda event, by=by: shell.presentation.forth(by),
                visible=False,
                **about,
            )
            for side, by, about in (("left", -1, {"description": "Back"}), ("right", 1, {"description": "Next"}))
        ]
        self.reader = Reader(lambda key: self.step(1 if key == "next" else -1))
        self.contents = Text(html="", go=shell.go, stylesheets=[CSS], margin=(4, 8), sizing_mode="stretch_width")
        self.place, self.foot = Text(html="", **COLUMN), Text(html="", stylesheets=[CSS], **COLUMN)
        self.bars = Text(html="", go=shell.go, stylesheets=[CSS], sizing_mode="stretch_width", margin=(4, 0))
        self.cells = pn.Column(**WIDE)
        act, back = {"width": 112, "margin": (8, 4)}, lambda event: self.step(-1)
        self.back = pmui.Button(label="Back", icon="chevron_left", variant="text", on_click=back, **act)
        self.next = pmui.Button(
            label="Next", end_icon="chevron_right", on_click=lambda event: self.step(1), **{**act, "width": 150}
        )
        self.sidebar = [
            pmui.Typography("Lessons", variant="subtitle2", margin=(4, 18)),
            self.contents,
            Text(html=HELP, margin=(8, 18)),
        ]
        self.body = pn.Column(self.place, self.cells, self.foot, styles={"min-height": "calc(100vh - 140px)"}, **WIDE)
        buttons = pn.Row(self.back, self.bars, self.next, **FIGURE)
        bar = pn.Column(buttons, styles=BAR, **WIDE)
        self.main = [
            pn.Column(
                self.reader,
                pn.Row(pn.Spacer(sizing_mode="stretch_width"), *self.lecture.only, height=0, margin=0),
                self.body,
                bar,
                sizing_mode="stretch_width",
                margin=(12, 8, 0, 8),
            )
        ]
        self.lecture.around += [self.place, self.foot, bar]
        shell.frame.param.watch(lambda event: self.screens.darken(event.new), "dark_theme")
        pn.state.on_session_destroyed(lambda context: self.screens.close())
        self.warning = " ".join(filter(None, [*unread, self.open(query)]))

    # ---- what the shell asks

    def open(self, query: dict[str, str]) -> str:
        """Show the lesson and idea of a link.

        Returns:
            A sentence about what was wrong in the link, or "".
        """
        at, problems = link.read(LINK, Lecture.of_query(query)[1], At(next(iter(lessons()))))
        plain = at.idea is None and at.cell is None
        if self.screens is None or at.lesson != self.lesson.key or plain:
            self.begin(lessons()[at.lesson])
        if not plain:
            self.reveal(idea_at(self.lesson, at.cell) if at.idea is None else at.idea - 1)
        return " ".join(problems.values())

    def show(self):
        self.begun = True
        self.lecture.show()
        self.screens.run()
        if self.warning:
            pn.state.notifications.warning(self.warning)  # it shows text, not markup
            self.warning = ""
        self.screens.rest()

    def hide(self):
        self.lecture.hide()
        self.screens.pause()

    def refresh(self):
        """Do nothing: this page has no readings."""

    def link(self) -> str:
        at = At(self.lesson.key, self.shown + 1)
        return self.lecture.to_query(link.write(LINK, at, at))

    def resized(self):
        """Fit the figures to the window, whose height has changed."""
        self.enlarge(self.lecture.on)

    def enlarge(self, on: bool):
        """Show the question, the figure and the formula alone, with text of twice the size; or all of an idea."""
        self.reader.lecture = on
        self.body.stylesheets = [LARGE] * on
        self.screens.enlarge(on)
        self.tell()

    # ---- the way through a lesson

    @property
    def lesson(self) -> Lesson:
        """The open lesson."""
        return self.screens.lesson

    @property
    def ideas(self) -> tuple[Idea, ...]:
        """The ideas of the open lesson."""
        return self.screens.ideas

    @property
    def shown(self) -> int:
        """The number of the idea on screen, from 0."""
        return self.screens.shown

    def begin(self, lesson: Lesson):
        """Show a lesson from its start."""
        if self.screens:
            self.screens.close()
            self.screens.free()
        self.screens = Screens(self.shell, self.lecture, lesson, self.later, self.begun)
        self.cells[:] = [self.screens.column]
        self.reveal(0)

    def step(self, by: int):
        """Go to the next idea (by = 1) or the one before (by = -1). After the last one, open the next lesson."""
        keys = list(lessons())
        following = keys.index(self.lesson.key) + 1
        if self.shown + by < len(self.ideas):
            self.reveal(self.shown + by)
        elif following < len(keys):
            self.shell.go(f"?page=lessons&lesson={keys[following]}")

    def reveal(self, idea: int):
        """Show one idea. Run the cells up to it, and those of the next one while it is read."""
        idea = min(max(idea, 0), len(self.ideas) - 1)
        self.far[self.lesson.key] = max(idea + 1, self.far.get(self.lesson.key, 0))
        self.screens.reveal(idea)
        self.tell()
        if self.begun:
            self.reader.top()
            self.later(self.screens.run)  # not before the text is on its way

    def tell(self):
        """Update what is around the idea: where it is, its code, the bar below and the list on the left."""
        at, total, number = self.shown + 1, len(self.ideas), int(self.lesson.key)
        last = self.lesson.key == list(lessons())[-1]
        self.place.html = f"<small>Lesson {number}, {html.escape(self.lesson.title)}: idea {at} of {total}</small>"
        self.body.css_classes = ["seen"] * any(map(self.screens.is_figure, self.screens.cells))
        scores = scores_html(keys_of(self.lesson), "Your predictions in this lesson") * (at == total)
        self.foot.html = scores + foot(self.lesson, self.ideas[self.shown])
        self.bars.html = bars(self.lesson.key, self.ideas, self.shown, self.far[self.lesson.key])
        self.back.disabled = at == 1
        self.next.disabled = last and at == total
        self.next.label = "Next lesson" if at == total and not last else "Next"
        self.contents.html = listing(self.lesson.key, self.far)
