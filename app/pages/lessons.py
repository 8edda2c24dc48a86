"""Page "Lessons": the notebooks, read and run cell by cell."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import panel as pn
import panel_material_ui as pmui
from panel.custom import JSComponent

from app.lesson.host import Place
from app.lesson.output import prose
from app.lesson.reading import Lesson, Reading, Result, lessons
from app.server.background import TURNS
from app.server.loop import soon
from app.server.messages import Heard, one_of
from app.ui.text import BUSY, Text, code_html, markdown_html
from stein_core.errors import short, whole

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


class Reader(Heard, JSComponent):
    """Invisible: the keys of the page, and scrolling. heard(key) gets "next" or "previous" on the event loop."""

    forms = ({"key": one_of("next", "previous")},)
    _esm = Path(__file__).parent / "lessons.js"

    def __init__(self, heard: Callable[[str], None], **params):
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **params})
        self.heard = heard

    def show(self, index: int) -> None:
        """Scroll to a cell."""
        self._send_msg({"show": index})

    def hear(self, data) -> None:
        self.heard(data["key"])


class Lessons:
    """See `app.shell` for the contract of a page. shown: how many cells are on screen."""

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
        """Show the lesson and cell of a link; what was wrong in it."""
        key = query.get("lesson", next(iter(lessons())))
        if key not in lessons():
            key, wrong = (
                next(iter(lessons())),
                f"There is no lesson {short(key)!r}; the lessons are {', '.join(lessons())}.",
            )
        else:
            wrong = ""
        if self.reading is None or key != self.lesson.key or "cell" not in query:
            self.begin(lessons()[key])
        cell = query.get("cell", "")
        if cell:
            try:
                self.reveal(whole("cell", cell))
            except ValueError as error:
                wrong = str(error)
        return wrong

    def show(self):
        if not self.begun and self.shown > self.lesson.opening:  # a link's cell
            self.reader.show(self.shown - 1)
        self.begun = True
        self.reading.run_to(self.shown + 1)
        if self.warning:
            pn.state.notifications.warning(self.warning)  # it shows text, not markup
            self.warning = ""
        for output in self.outputs():
            output.rest(False)

    def hide(self):
        for output in self.outputs():
            output.rest(True)

    def refresh(self):
        """Nothing is read twice a second."""

    def link(self) -> str:
        return f"lesson={self.lesson.key}&cell={self.shown}"

    # ---- the way through a lesson

    def in_turn(self, call: Callable[[], None]):
        """Call it on the event loop soon: it takes a while."""
        TURNS.take(self.later, call)

    def begin(self, lesson: Lesson):
        """A lesson from its start."""
        if self.reading:
            self.reading.close()
        self.lesson, self.results, self.blocks, self.shown = lesson, {}, [], 0
        self.cells.clear()
        place = Place(self.later, app="?", lesson=True)
        self.reading = Reading(lesson, place, lambda index, result: self.told(place, index, result))
        self.reveal(lesson.opening, scroll=False)

    def step(self, by: int):
        """To the next cell, or back by hiding the last one; from the last one to the next lesson."""
        keys = list(lessons())
        following = keys.index(self.lesson.key) + 1
        if by > 0 and self.shown == len(self.lesson.cells):
            if following < len(keys):
                self.shell.go(f"?page=lessons&lesson={keys[following]}")
        else:
            self.reveal(self.shown + by)

    def reveal(self, count: int, scroll: bool = True):
        """Show the first `count` cells; run these and, while they are read, the next one."""
        count = min(max(count, self.lesson.opening), len(self.lesson.cells))
        before, self.shown = self.shown, count
        for index in range(min(before, count), min(count, len(self.blocks))):
            self.in_turn(lambda index=index: self.fill(index))  # the text first: an output takes the browser longer
        for index, block in enumerate(self.blocks):
            block.visible = index < count
        if self.growing is not self.reading:
            self.grow(self.reading)
        self.far[self.lesson.key] = max(count, self.far.get(self.lesson.key, 0))
        for index in range(count):
            self.rest(index, False)
        for index in range(count, len(self.blocks)):
            self.rest(index, True)
        self.tell(count)
        if scroll and self.begun:
            self.reader.show(min(before, count - 1) if count > before + 1 else count - 1)
        if self.begun:
            self.later(lambda: self.reading.run_to(self.shown + 1))  # not before the text is on its way

    def grow(self, reading: Reading):
        """Add the cells that are to be shown. One at a time where someone reads already: all pages wait meanwhile."""
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
        """The bar below and the list on the left."""
        total, last = len(self.lesson.cells), self.lesson.key == list(lessons())[-1]
        self.where.object = f"cell {count} of {total}"
        self.progress.value = round(100 * count / total)
        self.back.disabled = count <= self.lesson.opening
        self.next.disabled = last and count == total
        self.next.label = "Next lesson" if count == total and not last else "Next"
        self.contents.html = listing(self.lesson.key, self.far)

    def block(self, index: int) -> pn.Column:
        """The component of one cell."""
        cell = self.lesson.cells[index]
        name = f"cell-{index}"
        if not cell.code:
            return pn.Column(prose_of(cell.source, name, self.shell.go), **WIDE)
        code = "" if cell.folded else code_html(cell.source)
        return pn.Column(prose(code, anchor=name), pn.Column(pn.pane.HTML(BUSY, **WIDE), **WIDE), **WIDE)

    def told(self, place: Place, index: int, result: Result):
        """A cell has run."""
        if self.reading and place is self.reading.place:  # else the lesson was left meanwhile
            self.results[index] = result
            if result.shown is not None and hasattr(result.shown, "darken"):
                result.shown.darken(self.shell.frame.dark_theme)
            if index < self.shown:
                self.in_turn(lambda: self.fill(index))

    def fill(self, index: int):
        """Put the result of a cell beneath its code, if it has run."""
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

    def outputs(self) -> list:
        """Everything live that is on screen."""
        return [r.shown for i, r in self.results.items() if i < self.shown and hasattr(r.shown, "rest")]

    def rest(self, index: int, on: bool):
        """Let the output of a cell rest, or go on."""
        shown = self.results[index].shown if index in self.results else None
        if hasattr(shown, "rest"):
            shown.rest(on)


def prose_of(source: str, anchor: str, go) -> Text:
    """A Markdown cell."""
    return Text(html=markdown_html(source), anchor=anchor, go=go, sizing_mode="stretch_width", margin=(4, 8))


def listing(current: str, far: dict[str, int]) -> str:
    """The lessons as links, with their time and how far the visitor has come."""
    rows = []
    for lesson in lessons().values():
        seen, total = far.get(lesson.key, 0), len(lesson.cells)
        state = "read" if seen == total else f"{lesson.minutes} min"
        here = ' aria-current="page"' if lesson.key == current else ""
        rows.append(
            f'<li><a href="?page=lessons&amp;lesson={lesson.key}"{here}>{html.escape(lesson.title)}</a> <small>{state}</small></li>'
        )
    return f'<ol class="lessons">{"".join(rows)}</ol>'
