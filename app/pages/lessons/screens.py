"""What the ideas of one lesson show: text, figures and tables, each drawn when it is first on screen."""

from __future__ import annotations

import html
from collections.abc import Callable

import panel as pn
import panel_material_ui as pmui

from steinlab.lesson import dials
from steinlab.lesson.chart import Chart
from steinlab.lesson.host import NotebookHost
from steinlab.lesson.ideas import Idea, idea_at, ideas_of, is_setup, shown_source
from steinlab.lesson.live_stage import LiveStage
from steinlab.lesson.output import Output
from steinlab.lesson.reading import Lesson, Reading, Result, text_html
from steinlab.lesson.stand_in import stand_in
from steinlab.server.background import UI_THROTTLE
from steinlab.server.memory import forget_parts
from steinlab.stage.lecture import Lecture
from steinlab.ui.browser import Arrival
from steinlab.ui.text import BUSY, Text, code_html

WIDE = {"sizing_mode": "stretch_width", "margin": 0}
COLUMN = {"sizing_mode": "stretch_width", "margin": (0, 8), "lesson": True}
FIGURE = {**WIDE, "styles": {"width": "100%", "max-width": "1000px", "margin": "4px auto"}}


class Screens:
    """Read a lesson: run its cells, and show one idea at a time.

    Args:
        later: later(call) calls on the event loop.
        live: whether the page is there; nothing runs before.

    Attributes:
        shown: number of the idea on screen, from 0.
        column: what is on screen.
    """

    def __init__(self, shell, lecture: Lecture, lesson: Lesson, later: Callable, live: bool):
        self.shell, self.lecture, self.lesson, self.later = shell, lecture, lesson, later
        self.shown, self.live, self.closed = 0, live, False
        self.wanted: int | None = None  # an idea that plays as soon as it has a stage
        self.results: dict[int, Result] = {}
        self.blocks: dict[int, pn.viewable.Viewable] = {}  # cell -> its component
        self.arriving: set[int] = set()  # cells whose stand-in the browser does not have yet
        self.screens: dict[int, pn.Column] = {}  # idea -> what it shows
        self.column = pn.Column(**WIDE)
        self.reading = Reading(lesson, NotebookHost(later, app="?", lesson=True), self.on_result)

    @property
    def ideas(self) -> tuple[Idea, ...]:
        """The ideas of the lesson."""
        return ideas_of(self.lesson)

    @property
    def cells(self) -> range:
        """The cells of the idea on screen."""
        return range(self.ideas[self.shown].start, self.ideas[self.shown].stop)

    def close(self):
        """Stop what runs."""
        self.closed = True
        self.reading.close()

    def free(self):
        """Free what is shown, while the page goes on."""
        forget_parts(self.reading, *self.blocks.values(), *self.screens.values())
        for held in (self.results, self.blocks, self.screens):  # their callbacks hold this
            held.clear()

    def in_turn(self, call: Callable[[], None]):
        """Call a slow UI update on the event loop when it is its turn."""
        UI_THROTTLE.run(self.later, call)

    def reveal(self, idea: int):
        """Show one idea, from 0."""
        self.shown = idea
        for other, screen in self.screens.items():
            screen.visible = other == idea
        if idea not in self.screens and self.live:
            self.in_turn(lambda: self.draw(idea))
        elif idea not in self.screens:
            self.draw(idea)
        for index in self.cells:
            self.in_turn(lambda index=index: self.fill(index))  # the text first: an output takes the browser longer
        self.rest()

    def run(self):
        """Run the cells up to the idea on screen, and those of the next one while it is read."""
        self.live = True
        self.reading.run_to(self.ideas[min(self.shown + 1, len(self.ideas) - 1)].stop, self.cells)

    def draw(self, idea: int):
        """Draw an idea that was not on screen before, unless the reader has gone on."""
        if not self.closed and idea == self.shown and idea not in self.screens:
            self.screens[idea] = pn.Column(**WIDE)
            self.column.append(self.screens[idea])
            self.grow(idea, self.ideas[idea].start)

    def grow(self, idea: int, index: int):
        """Add a cell to an idea, then the next. Later, one at a time: each blocks the event loop."""
        while not self.closed and index < self.ideas[idea].stop:
            self.blocks[index] = self.block(idea, index)
            self.screens[idea].append(self.blocks[index])
            self.in_turn(lambda index=index: self.fill(index))
            index += 1
            if self.live:
                return self.in_turn(lambda index=index: self.grow(idea, index))

    def is_figure(self, index: int) -> bool:
        """Whether a cell shows something, so that the text around it may be left to a speaker."""
        cell = self.lesson.cells[index]
        return cell.code and not is_setup(cell)

    def has_stage(self, idea: int) -> bool:
        """Whether something of an idea can be played."""
        cells = self.lesson.cells[self.ideas[idea].start : self.ideas[idea].stop]
        return any(cell.code and cell.source.startswith("stage(") for cell in cells)

    def play(self, idea: int):
        """Play the first stage of an idea, or as soon as it is there."""
        stages = [output for output in self.outputs_of(idea) if isinstance(output, LiveStage)]
        self.wanted = None if stages else idea
        if stages:
            stages[0].session.play(True)

    def block(self, idea: int, index: int) -> pn.viewable.Viewable:
        """Make the component of one cell."""
        cell = self.lesson.cells[index]
        if not cell.code:
            made = Text(
                html=text_html(self.lesson, index, shown_source(self.lesson, index), True, self.has_stage(idea)),
                go=self.shell.go,
                on_run=lambda: self.play(idea),
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

    def on_result(self, index: int, result: Result):
        """Keep the result of a cell that has run, and show it if the cell is on screen."""
        if self.closed:
            return
        self.results[index] = result
        if isinstance(output := result.shown, Output):
            output.darken(self.shell.frame.dark_theme)
            output.enlarge(self.lecture.on, self.shell.height_of_window)
            idea = idea_at(self.lesson, index + 1)
            for control in output.dials.values():
                control.param.watch(lambda event: self.show_dials(idea), "value")
            self.show_dials(idea)
            if idea == self.wanted:
                self.play(idea)
        if isinstance(result.shown, Chart):
            result.shown.stand_in(self.stand_in(index))
        self.in_turn(lambda: self.fill(index))

    def fill(self, index: int):
        """Show the result of a cell that has run, if its idea is on screen."""
        ready = index in self.results and index in self.blocks and index not in self.arriving
        if self.closed or not ready or index not in self.cells:
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

    def rest(self):
        """Let the outputs on screen compute, and no others."""
        for index, output in self.outputs():
            (output.resume if index in self.cells else output.pause)()

    def pause(self):
        """Let no output compute."""
        for _, output in self.outputs():
            output.pause()

    def darken(self, on: bool):
        """Show the outputs in the dark theme, or not."""
        for _, output in self.outputs():
            output.darken(on)

    def enlarge(self, on: bool):
        """Show the outputs with text of twice the size, or not; each fits the window."""
        for _, output in self.outputs():
            output.enlarge(on, self.shell.height_of_window)

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
