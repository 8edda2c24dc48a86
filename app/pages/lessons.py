"""Page "Lessons": the notebooks, one idea a screen."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

import panel as pn
import panel_material_ui as pmui

from app.lesson import dials
from app.lesson.around import CSS, bars, foot, listing
from app.lesson.chart import Chart
from app.lesson.host import NotebookHost
from app.lesson.ideas import Idea, idea_at, ideas_of, is_setup, shown_source
from app.lesson.output import Output
from app.lesson.reader import Reader
from app.lesson.reading import Lesson, Reading, Result, lessons
from app.lesson.stand_in import stand_in
from app.server.background import UI_THROTTLE
from app.server.loop import soon
from app.server.memory import forget_parts
from app.stage.lecture import Lecture
from app.ui import link
from app.ui.browser import Arrival
from app.ui.text import BUSY, Text, code_html, markdown_html
from stein_core.base.errors import short

WIDE = {"sizing_mode": "stretch_width", "margin": 0}
COLUMN = {"sizing_mode": "stretch_width", "margin": (0, 8), "lesson": True}
FIGURE = {**WIDE, "styles": {"width": "100%", "max-width": "1000px", "margin": "4px auto"}}
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
    """Page "Lessons"; see `app.contents` for the contract of a page.

    Attributes:
        shown: number of the idea on screen, from 0.
    """

    def __init__(self, shell, query: dict[str, str]):
        self.shell, self.later = shell, soon(pn.state.curdoc)
        self.far: dict[str, int] = {}  # lesson -> the most ideas seen
        self.reading: Reading | None = None
        self.begun = False  # nothing runs before the page is there
        self.results: dict[int, Result] = {}
        self.blocks: dict[int, pn.viewable.Viewable] = {}  # cell -> its component
        self.arriving: set[int] = set()  # cells whose stand-in the browser does not have yet
        self.screens: dict[int, pn.Column] = {}  # idea -> what it shows
        talks, query, unread = Lecture.of_query(query)
        self.lecture = Lecture(shell, self.step, self.enlarge, on=talks)
        self.lecture.only += [
            pmui.IconButton(
                icon=f"chevron_{side}", on_click=lambda event, by=by: shell.forth(by), visible=False, **about
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
        shell.frame.param.watch(lambda event: [output.darken(event.new) for _, output in self.outputs()], "dark_theme")
        pn.state.on_session_destroyed(lambda context: self.reading.close())
        self.warning = " ".join(filter(None, [*unread, self.open(query)]))

    # ---- what the shell asks

    def open(self, query: dict[str, str]) -> str:
        """Show the lesson and idea of a link.

        Returns:
            A sentence about what was wrong in the link, or "".
        """
        at, problems = link.read(LINK, Lecture.of_query(query)[1], At(next(iter(lessons()))))
        plain = at.idea is None and at.cell is None
        if self.reading is None or at.lesson != self.lesson.key or plain:
            self.begin(lessons()[at.lesson])
        if not plain:
            self.reveal(idea_at(self.lesson, at.cell) if at.idea is None else at.idea - 1)
        return " ".join(problems.values())

    def show(self):
        self.begun = True
        self.lecture.show()
        self.reading.run_to(self.ahead())
        if self.warning:
            pn.state.notifications.warning(self.warning)  # it shows text, not markup
            self.warning = ""
        self.rest()

    def hide(self):
        self.lecture.hide()
        for _, output in self.outputs():
            output.pause()

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
        for _, output in self.outputs():
            output.enlarge(on, self.shell.height_of_window)
        self.tell()

    # ---- the way through a lesson

    @property
    def ideas(self) -> tuple[Idea, ...]:
        """The ideas of the open lesson."""
        return ideas_of(self.lesson)

    def in_turn(self, call: Callable[[], None]):
        """Call a slow UI update on the event loop when it is its turn."""
        UI_THROTTLE.run(self.later, call)

    def begin(self, lesson: Lesson):
        """Show a lesson from its start."""
        if self.reading:
            self.reading.close()
            forget_parts(self.reading, *self.blocks.values(), *self.screens.values())
        self.lesson, self.results, self.blocks, self.screens, self.shown = lesson, {}, {}, {}, 0
        self.arriving = set()
        self.cells.clear()
        host = NotebookHost(self.later, app="?", lesson=True)
        self.reading = Reading(lesson, host, lambda index, result: self.on_result(host, index, result))
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
        self.shown = idea = min(max(idea, 0), len(self.ideas) - 1)
        self.far[self.lesson.key] = max(idea + 1, self.far.get(self.lesson.key, 0))
        for other, screen in self.screens.items():
            screen.visible = other == idea
        reading = self.reading
        if idea not in self.screens and self.begun:
            self.in_turn(lambda: self.draw(reading, idea))
        elif idea not in self.screens:
            self.draw(reading, idea)
        for index in range(self.ideas[idea].start, self.ideas[idea].stop):
            self.in_turn(lambda index=index: self.fill(index))  # the text first: an output takes the browser longer
        self.rest()
        self.tell()
        if self.begun:
            self.reader.top()
            self.later(lambda: self.reading.run_to(self.ahead()))  # not before the text is on its way

    def ahead(self) -> int:
        """Return how many cells shall run: to the end of the next idea."""
        return self.ideas[min(self.shown + 1, len(self.ideas) - 1)].stop

    def draw(self, reading: Reading, idea: int):
        """Draw an idea that was not on screen before, unless the reader has gone on."""
        if reading is self.reading and idea == self.shown and idea not in self.screens:
            self.screens[idea] = pn.Column(**WIDE)
            self.cells.append(self.screens[idea])
            self.grow(reading, idea, self.ideas[idea].start)

    def grow(self, reading: Reading, idea: int, index: int):
        """Add a cell to an idea, then the next. Later, one at a time: each blocks the event loop."""
        while reading is self.reading and index < self.ideas[idea].stop:
            self.blocks[index] = self.block(idea, index)
            self.screens[idea].append(self.blocks[index])
            self.in_turn(lambda index=index: self.fill(index))
            index += 1
            if self.begun:
                return self.in_turn(lambda index=index: self.grow(reading, idea, index))

    def rest(self):
        """Let the outputs on screen compute, and no others."""
        idea = self.ideas[self.shown]
        for index, output in self.outputs():
            (output.resume if idea.start <= index < idea.stop else output.pause)()

    def tell(self):
        """Update what is around the idea: where it is, its code, the bar below and the list on the left."""
        at, total, number, idea = self.shown + 1, len(self.ideas), int(self.lesson.key), self.ideas[self.shown]
        last = self.lesson.key == list(lessons())[-1]
        self.place.html = f"<small>Lesson {number}, {html.escape(self.lesson.title)}: idea {at} of {total}</small>"
        self.body.css_classes = ["seen"] * any(self.is_figure(i) for i in range(idea.start, idea.stop))
        self.foot.html = foot(self.lesson, self.ideas[self.shown])
        self.bars.html = bars(self.lesson.key, self.ideas, self.shown, self.far[self.lesson.key])
        self.back.disabled = at == 1
        self.next.disabled = last and at == total
        self.next.label = "Next lesson" if at == total and not last else "Next"
        self.contents.html = listing(self.lesson.key, self.far)

    def is_figure(self, index: int) -> bool:
        """Whether a cell shows something, so that the text around it may be left to a speaker."""
        cell = self.lesson.cells[index]
        return cell.code and not is_setup(cell)

    def block(self, idea: int, index: int) -> pn.viewable.Viewable:
        """Make the component of one cell."""
        cell = self.lesson.cells[index]
        if not cell.code:
            made = Text(
                html=markdown_html(shown_source(self.lesson, index), live=True),
                go=self.shell.go,
                on_dial=lambda *move: self.on_dial(idea, *move),
                on_light=lambda force: [output.light(force) for output in self.outputs_of(idea)],
                **COLUMN,
            )
            made.dials = self.dials_of(idea)
            return made
        busy = [pn.pane.HTML(BUSY, **WIDE)] * (not is_setup(cell))
        code = [Text(html=code_html(cell.source), **COLUMN)] * cell.open
        meanwhile = self.stand_in(index)
        if meanwhile:  # Bokeh fails if a figure leaves before the browser has drawn it
            self.arriving.add(index)
            meanwhile.append(Arrival(lambda: self.arrived(index)))
        return pn.Column(*code, pn.Column(*busy, *meanwhile, **FIGURE), **WIDE)

    def arrived(self, index: int):
        """The browser has the stand-in of a cell: its output may take its place."""
        self.arriving.discard(index)
        self.in_turn(lambda: self.fill(index))

    def stand_in(self, index: int) -> list:
        """Return what a cell shows until it has run; nothing in a lecture, whose text is larger."""
        if self.lecture.on:
            return []
        return stand_in(self.lesson, index, self.shell.frame.dark_theme, self.shell.height_of_window)

    def on_result(self, host: NotebookHost, index: int, result: Result):
        """Keep the result of a cell that has run, and show it if the cell is on screen."""
        if self.reading and host is self.reading.host:  # else another lesson is open
            self.results[index] = result
            if isinstance(output := result.shown, Output):
                output.darken(self.shell.frame.dark_theme)
                output.enlarge(self.lecture.on, self.shell.height_of_window)
                idea = idea_at(self.lesson, index + 1)
                for control in output.dials.values():
                    control.param.watch(lambda event: self.show_dials(idea), "value")
                self.show_dials(idea)
            if isinstance(result.shown, Chart):
                result.shown.stand_in(self.stand_in(index))
            self.in_turn(lambda: self.fill(index))

    def fill(self, index: int):
        """Show the result of a cell that has run, if its idea is on screen."""
        idea = self.ideas[self.shown]
        if (
            index in self.arriving
            or index not in self.results
            or index not in self.blocks
            or not idea.start <= index < idea.stop
        ):
            return
        result, parts = self.results[index], []
        if result.problem:
            text = f"This cell could not run. {result.problem}"
            parts.append(pmui.Alert(pn.pane.HTML(html.escape(text)), severity="error", margin=(4, 8)))
        if result.text:
            parts.append(Text(html=f"<pre>{html.escape(result.text)}</pre>", **COLUMN))
        if result.shown is not None:
            parts.append(result.shown)
        self.blocks[index][-1][:] = parts

    # ---- what an idea's text and its figures share

    def outputs(self) -> list[tuple[int, Output]]:
        """Return the outputs of the lesson, each with its cell."""
        return [(i, result.shown) for i, result in self.results.items() if isinstance(result.shown, Output)]

    def outputs_of(self, idea: int) -> list[Output]:
        """Return the outputs of an idea."""
        return [output for index, output in self.outputs() if self.ideas[idea].start <= index < self.ideas[idea].stop]

    def dials_of(self, idea: int) -> dict[str, dict]:
        """Return what the numbers in an idea's text say."""
        outputs = reversed(self.outputs_of(idea))  # of two of one name, the first counts
        return {name: dials.read(control) for output in outputs for name, control in output.dials.items()}

    def show_dials(self, idea: int):
        """Update the numbers in an idea's text."""
        for index in range(self.ideas[idea].start, self.ideas[idea].stop):
            made = self.blocks.get(index)
            if isinstance(made, Text) and "data-dial" in made.html:
                made.dials = self.dials_of(idea)

    def on_dial(self, idea: int, name: str, steps: int, value: float | None):
        """Move a control by a number in the text."""
        for output in self.outputs_of(idea):
            if name in output.dials:
                return dials.move(output.dials[name], steps, value)
