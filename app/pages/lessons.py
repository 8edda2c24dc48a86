"""Page "Lessons": the notebooks, read and run cell by cell."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import panel as pn
import panel_material_ui as pmui
from panel.custom import JSComponent

from app.lesson.host import NotebookHost
from app.lesson.output import Output, prose
from app.lesson.reading import Lesson, Reading, Result, lessons
from app.server.background import TURNS
from app.server.loop import soon
from app.server.messages import CheckedMessages, one_of
from app.ui import link
from app.ui.text import BUSY, Text, code_html, markdown_html
from stein_core.errors import short

WIDE = {"sizing_mode": "stretch_width", "margin": 0}
BUTTON = {"size": "small", "margin": (6, 4)}
BAR = {
    "position": "sticky",
    "bottom": "0",
    "z-index": "5",
    "background": "var(--mui-palette-background-paper, Canvas)",
    "border-top": "1px solid #8884",
}
HELP = "**N** or Shift + Enter: next cell, **P**: previous."


@dataclass(frozen=True)
class At:
    """Where a reader is. cell: how many cells are on screen; None is the lesson's opening."""

    lesson: str
    cell: int | None = None


def lesson_of(text: str) -> str:
    """Read the key of a lesson."""
    if text not in lessons():
        raise ValueError(f"There is no lesson {short(text)!r}; the lessons are {', '.join(lessons())}.")
    return text


LINK = (link.Field("lesson", lesson_of, always=True), link.whole_number("cell", always=True))


class Reader(CheckedMessages, JSComponent):
    """Send the keys of the page, and scroll it. Invisible.

    Args:
        on_key: on_key("next" or "previous") is called on the event loop.
    """

    schemas = ({"key": one_of("next", "previous")},)
    _esm = Path(__file__).parent / "lessons.js"

    def __init__(self, on_key: Callable[[str], None], **params):
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **params})
        self.on_key = on_key

    def show(self, index: int) -> None:
        """Scroll to a cell."""
        self._send_msg({"show": index})

    def handle_message(self, data) -> None:
        self.on_key(data["key"])


class Lessons:
    """Page "Lessons"; see `app.shell` for the contract of a page.

    Attributes:
        shown: number of cells on screen.
    """

    def __init__(self, shell, query: dict[str, str]):
        self.shell, self.later = shell, soon(pn.state.curdoc)
        self.far: dict[str, int] = {}  # lesson -> the most cells seen
        self.reading: Reading | None = None
        self.begun = False  # nothing runs before the page is there
        self.growing: Reading | None = None  # whose cells are being added
        self.results: dict[int, Result] = {}
        self.blocks: list[pn.Column] = []
        self.reader = Reader(lambda key: self.step(1 if key == "next" else -1))
        self.contents = Text(html="", go=shell.go, margin=(4, 8))
        self.cells = pn.Column(**WIDE)
        self.back = pmui.Button(
            label="Back", icon="arrow_back", variant="text", on_click=lambda e: self.step(-1), **BUTTON
        )
        self.next = pmui.Button(
            label="Next", icon="arrow_forward", width=150, on_click=lambda e: self.step(1), **BUTTON
        )
        everything = pmui.Button(
            label="Run all", variant="text", on_click=lambda e: self.reveal(len(self.lesson.cells)), **BUTTON
        )
        restart = pmui.Button(label="Restart", variant="text", on_click=lambda e: self.begin(self.lesson), **BUTTON)
        self.where = pmui.Typography("", variant="body2", margin=(12, 8))
        self.progress = pmui.LinearProgress(value=0, variant="determinate", **WIDE)
        self.sidebar = [
            pmui.Typography("Lessons", variant="subtitle2", margin=(4, 8)),
            self.contents,
            pmui.Typography(HELP, variant="caption", margin=(8, 8)),
        ]
        buttons = pmui.FlexBox(
            self.back, self.next, everything, restart, self.where, sizing_mode="stretch_width", align_items="center"
        )
        self.main = [
            pn.Column(
                self.reader,
                self.cells,
                pn.Column(self.progress, buttons, styles=BAR, **WIDE),
                sizing_mode="stretch_width",
                margin=(4, 12),
            )
        ]
        shell.frame.param.watch(lambda event: [output.darken(event.new) for output in self.outputs()], "dark_theme")
        pn.state.on_session_destroyed(lambda context: self.reading.close())
        self.warning = self.open(query)

    # ---- what the shell asks

    def open(self, query: dict[str, str]) -> str:
        """Show the lesson and cell of a link.

        Returns:
            A sentence about what was wrong in the link, or "".
        """
        at, problems = link.read(LINK, query, At(next(iter(lessons()))))
        if self.reading is None or at.lesson != self.lesson.key or at.cell is None:
            self.begin(lessons()[at.lesson])
        if at.cell is not None:
            self.reveal(at.cell)
        return " ".join(problems.values())

    def show(self):
        if not self.begun and self.shown > self.lesson.opening:  # a link's cell
            self.reader.show(self.shown - 1)
        self.begun = True
        self.reading.run_to(self.shown + 1)
        if self.warning:
            pn.state.notifications.warning(self.warning)  # it shows text, not markup
            self.warning = ""
        for output in self.outputs():
            output.resume()

    def hide(self):
        for output in self.outputs():
            output.pause()

    def refresh(self):
        """Do nothing: this page has no readings."""

    def link(self) -> str:
        at = At(self.lesson.key, self.shown)
        return link.write(LINK, at, at)

    # ---- the way through a lesson

    def in_turn(self, call: Callable[[], None]):
        """Call a slow UI update on the event loop when it is its turn."""
        TURNS.take(self.later, call)

    def begin(self, lesson: Lesson):
        """Show a lesson from its start."""
        if self.reading:
            self.reading.close()
        self.lesson, self.results, self.blocks, self.shown = lesson, {}, [], 0
        self.cells.clear()
        host = NotebookHost(self.later, app="?", lesson=True)
        self.reading = Reading(lesson, host, lambda index, result: self.on_result(host, index, result))
        self.reveal(lesson.opening, scroll=False)

    def step(self, by: int):
        """Show one more cell (by = 1) or hide the last one (by = -1). After the last cell, open the next lesson."""
        keys = list(lessons())
        following = keys.index(self.lesson.key) + 1
        if by > 0 and self.shown == len(self.lesson.cells):
            if following < len(keys):
                self.shell.go(f"?page=lessons&lesson={keys[following]}")
        else:
            self.reveal(self.shown + by)

    def reveal(self, count: int, scroll: bool = True):
        """Show the first `count` cells. Run them, and the next one while they are read."""
        count = min(max(count, self.lesson.opening), len(self.lesson.cells))
        before, self.shown = self.shown, count
        for index in range(min(before, count), min(count, len(self.blocks))):
            self.in_turn(lambda index=index: self.fill(index))  # the text first: an output takes the browser longer
        for index, block in enumerate(self.blocks):
            block.visible = index < count
        if self.growing is not self.reading:
            self.grow(self.reading)
        self.far[self.lesson.key] = max(count, self.far.get(self.lesson.key, 0))
        for index in range(len(self.blocks)):
            if output := self.output(index):
                (output.resume if index < count else output.pause)()
        self.tell(count)
        if scroll and self.begun:
            self.reader.show(min(before, count - 1) if count > before + 1 else count - 1)
        if self.begun:
            self.later(lambda: self.reading.run_to(self.shown + 1))  # not before the text is on its way

    def grow(self, reading: Reading):
        """Add the cells that must be shown. If the reader has begun, add one at a time: each blocks the event loop."""
        if reading is not self.reading:
            return
        self.growing = None
        while len(self.blocks) < self.shown:
            index = len(self.blocks)
            self.blocks.append(self.block(index))
            self.cells.append(self.blocks[index])
            self.in_turn(lambda index=index: self.fill(index))  # the text first, here too
            if self.begun:
                self.growing = reading
                self.in_turn(lambda: self.grow(reading))
                break

    def tell(self, count: int):
        """Update the bar below and the list on the left."""
        total, last = len(self.lesson.cells), self.lesson.key == list(lessons())[-1]
        self.where.object = f"cell {count} of {total}"
        self.progress.value = round(100 * count / total)
        self.back.disabled = count <= self.lesson.opening
        self.next.disabled = last and count == total
        self.next.label = "Next lesson" if count == total and not last else "Next"
        self.contents.html = listing(self.lesson.key, self.far)

    def block(self, index: int) -> pn.Column:
        """Make the component of one cell."""
        cell = self.lesson.cells[index]
        name = f"cell-{index}"
        if not cell.code:
            return pn.Column(prose_of(cell.source, name, self.shell.go), **WIDE)
        code = "" if cell.folded else code_html(cell.source)
        return pn.Column(prose(code, anchor=name), pn.Column(pn.pane.HTML(BUSY, **WIDE), **WIDE), **WIDE)

    def on_result(self, host: NotebookHost, index: int, result: Result):
        """Keep the result of a cell that has run, and show it if the cell is on screen."""
        if self.reading and host is self.reading.host:  # else another lesson is open
            self.results[index] = result
            if output := self.output(index):
                output.darken(self.shell.frame.dark_theme)
            if index < self.shown:
                self.in_turn(lambda: self.fill(index))

    def fill(self, index: int):
        """Show the result of a cell beneath its code, if it has run."""
        if index not in self.results or index >= len(self.blocks):
            return
        result, parts = self.results[index], []
        if result.problem:
            text = f"This cell could not run. {result.problem}"
            parts.append(pmui.Alert(pn.pane.HTML(html.escape(text)), severity="error", margin=(4, 8)))
        if result.text:
            parts.append(prose(f"<pre>{html.escape(result.text)}</pre>"))
        if result.shown is not None:
            parts.append(result.shown)
        self.blocks[index][1][:] = parts

    def outputs(self) -> list[Output]:
        """Return the outputs that are on screen."""
        return [output for index in range(self.shown) if (output := self.output(index))]

    def output(self, index: int) -> Output | None:
        """Return the output of a cell, or None if it has not run or shows none."""
        shown = self.results[index].shown if index in self.results else None
        return shown if isinstance(shown, Output) else None


def prose_of(source: str, anchor: str, go) -> Text:
    """Return the component of a Markdown cell."""
    return Text(html=markdown_html(source), anchor=anchor, go=go, sizing_mode="stretch_width", margin=(4, 8))


def listing(current: str, far: dict[str, int]) -> str:
    """Return the list of lessons as HTML.

    Args:
        current: key of the open lesson.
        far: lesson -> the most cells seen.
    """
    rows = []
    for lesson in lessons().values():
        seen, total = far.get(lesson.key, 0), len(lesson.cells)
        state = "read" if seen == total else f"{lesson.minutes} min"
        here = ' aria-current="page"' if lesson.key == current else ""
        link = f'<a href="?page=lessons&amp;lesson={lesson.key}"{here}>{html.escape(lesson.title)}</a>'
        rows.append(f"<li>{link} <small>{state}</small></li>")
    return f'<ol class="lessons">{"".join(rows)}</ol>'
