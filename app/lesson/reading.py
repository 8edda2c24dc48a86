"""The notebooks that come with the app, and a visitor's way through one of them."""

from __future__ import annotations

import ast
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from panel.viewable import Viewable

from steinlab.lesson.host import NotebookHost, use_host
from steinlab.lesson.output import Output
from steinlab.lesson.predictions import FIELD, Prediction, field_html, read_prediction
from steinlab.server.background import STOPPING, Cancelled, Threads, background_work
from steinlab.server.folders import NOTEBOOKS
from steinlab.ui.text import markdown_html

log = logging.getLogger(__name__)
FOLDER = NOTEBOOKS
RUNNERS = Threads(32, "lesson")  # most of them yield while pages play


@dataclass(frozen=True)
class Cell:
    """Hold one cell of a notebook.

    Args:
        code: whether it is Python to run; else it is Markdown to read.
        folded: whether its code stays hidden, because it gives a solution away.
        open: whether its code is part of the text, as in a lesson about that code.
        predictions: one for each FIELD in its source.
    """

    code: bool
    source: str
    folded: bool = False
    open: bool = False
    predictions: tuple[Prediction, ...] = ()


@dataclass(frozen=True)
class Lesson:
    """Hold one notebook. group: of lessons, on page Start."""

    key: str
    title: str
    minutes: int
    question: str
    cells: tuple[Cell, ...]
    path: Path | None = None
    group: str = ""


@dataclass
class Result:
    """Hold what a cell gave.

    Args:
        shown: the component that it shows, or None.
        text: what it printed, and its last value if that is no component.
        problem: a sentence about what failed, or "".
        printed: the pieces of `text` while the cell runs.
    """

    shown: Viewable | None = None
    text: str = ""
    problem: str = ""
    printed: list[str] = field(default_factory=list)


@lru_cache(maxsize=1)
def lessons() -> dict[str, Lesson]:
    """Return all lessons by key ("01"), in order."""
    found = {}
    for path in sorted(FOLDER.glob("[0-9][0-9]_*.ipynb")):
        lesson = read_lesson(path)
        found[lesson.key] = lesson
    return found


def read_lesson(path: Path) -> Lesson:
    """Read the lesson in a notebook's file."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    facts = notebook["metadata"]["steinlab"]
    cells = tuple(
        Cell(
            cell["cell_type"] == "code",
            "".join(cell["source"]),
            cell["metadata"].get("jupyter", {}).get("source_hidden", False),
            cell["metadata"].get("jupyter", {}).get("source_hidden") is False,
            tuple(map(read_prediction, cell["metadata"].get("steinlab", {}).get("predictions", ()))),
        )
        for cell in notebook["cells"]
    )
    return Lesson(path.name[:2], facts["title"], facts["minutes"], facts["question"], cells, path, facts["group"])


def texts(lesson: Lesson) -> list[str]:
    """Return the HTML of the text before each cell that shows something, and after the last one."""
    found = [""]
    for index, cell in enumerate(lesson.cells):
        if not cell.code:
            found[-1] += text_html(lesson, index, cell.source)
        elif cell.source.rstrip().endswith(".servable()"):
            found.append("")
    return found


def text_html(lesson: Lesson, index: int, source: str, live: bool = False, runs: bool = False) -> str:
    """Return the text of a cell as HTML, with its predictions.

    Args:
        lesson, index: the cell.
        source: its Markdown, as it is shown.
        live: see `markdown_html`.
        runs: whether a prediction starts a figure.
    """
    parts, made = source.split(FIELD), zip(keys_of(lesson, index), lesson.cells[index].predictions)
    fields = [field_html(key, prediction, runs) for key, prediction in made]
    return "".join(markdown_html(part, live=live) + field for part, field in zip(parts, [*fields, ""]))


def keys_of(lesson: Lesson, index: int | None = None) -> list[str]:
    """Return the key of each prediction of a cell, or of the whole lesson: the browser keeps what was said under it."""
    cells = enumerate(lesson.cells) if index is None else [(index, lesson.cells[index])]
    before = sum(len(cell.predictions) for cell in lesson.cells[: index or 0])
    total = sum(len(cell.predictions) for _, cell in cells)
    return [f"{lesson.key}.{before + k + 1}" for k in range(total)]


class Reading:
    """Run one lesson for one visitor: in a namespace of its own, cell after cell, on a thread.

    Args:
        lesson: the lesson.
        host: host of the cells' outputs.
        on_result: on_result(index, result) is called on the event loop when a code cell has run.
    """

    has_threads = True  # see `steinlab.server.memory.dismantle`

    def __init__(self, lesson: Lesson, host: NotebookHost, on_result: Callable[[int, Result], None]):
        self.lesson, self.host, self.on_result = lesson, host, on_result
        self._namespace: dict[str, Any] = {"__name__": "__main__"}
        self._lock = threading.Lock()
        self._next = self._goal = 0  # the next cell to run; the first one not to
        self._early: list[int] = []  # cells that run before it
        self._ran: set[int] = set()
        self._running = self._closed = False

    def run_to(self, count: int, shown: range = range(0)) -> None:
        """Run those of the first `count` cells that have not run yet. Return at once.

        Args:
            count: a number of cells.
            shown: cells on screen. What needs no cell before it runs first.
        """
        with self._lock:
            self._goal = max(self._goal, min(count, len(self.lesson.cells)))
            cells = self.lesson.cells
            self._early = [i for i in shown if cells[i].code and stands_alone(cells[i].source)]
            if self._running or self._closed or self._next >= self._goal:
                return
            self._running = True
        RUNNERS.submit(self._work)

    def close(self) -> None:
        """Run nothing more, and close the outputs of its cells."""
        self._closed = True
        for output in self.host.outputs:
            output.close()
        with self._lock:
            if not self._running:  # what refers to itself: Python then frees it without a search for garbage
                self._namespace.clear()
                self.host.outputs.clear()
                self.on_result = lambda index, result: None

    def _unwanted(self) -> bool:
        return self._closed or STOPPING.is_set()

    def _work(self) -> None:
        while True:
            with self._lock:
                if self._unwanted() or self._next >= self._goal:
                    self._running = False
                    break
                self._early = [i for i in self._early if i not in self._ran and i >= self._next]
                early = bool(self._early)
                index = self._early[0] if early else self._next
            if self.lesson.cells[index].code and index not in self._ran:
                source, names = self.lesson.cells[index].source, self._namespace
                if early:
                    source, names = f"from steinlab.notebook import stage\n{source}", {}
                try:
                    with use_host(self.host), background_work(self._unwanted):
                        result = run(source, names)
                except Cancelled:
                    continue
                self._ran.add(index)
                self.host.later(lambda index=index, result=result: self.on_result(index, result))
                if isinstance(result.shown, Output):  # while the cell before it is read
                    RUNNERS.submit(result.shown.prepare)
                if result.problem:  # what follows would fail too
                    with self._lock:
                        self._goal, self._running = index, False
                    self._ran.discard(index)
                    break
            if not early:
                self._next = index + 1
        if self._closed:  # what the last cell has made
            self.close()


def prepare(lesson: Lesson, start: int, stop: int) -> Callable[[], None]:
    """Compile what the cells from `start` to `stop` show, on the calling thread. Those before only run.

    Returns:
        A call that waits until the figures are drawn. Make it outside of `background_work`: they wait for their turn.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    host = NotebookHost(lambda call: None, lesson=True)
    with use_host(host):
        for index, cell in enumerate(lesson.cells[:stop]):
            shown = run(cell.source, namespace).shown if cell.code else None
            if index >= start and isinstance(shown, Output):
                shown.prepare()

    def settle():
        for output in host.outputs:
            output.settle()
            output.close()

    return settle


def run(source: str, namespace: dict[str, Any]) -> Result:
    """Run one cell's code in `namespace`. Its last expression is what it shows."""
    result = Result()
    namespace["print"] = lambda *values, sep=" ", end="\n", **ignored: result.printed.append(
        sep.join(map(str, values)) + end
    )
    try:
        body, last = parsed(source)
        exec(body, namespace)
        value = eval(last, namespace) if last else None
    except Exception as error:
        log.exception("lesson")
        result.problem = f"{type(error).__name__}: {error}"
    else:
        if isinstance(value, Viewable):
            result.shown = value
        elif value is not None:
            result.printed.append(repr(value))
    result.text = "".join(result.printed).rstrip()
    return result


def stands_alone(source: str) -> bool:
    """Say whether a cell is a stage whose arguments are all written out: it needs no cell before it."""
    if not source.lstrip().startswith("stage("):
        return False
    called = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    return [node.id for node in called] == ["stage"]


@lru_cache(maxsize=256)
def parsed(source: str) -> tuple[Any, Any]:
    """Return the compiled code of a cell, and that of its last expression or None."""
    tree = ast.parse(source)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = compile(ast.Expression(tree.body.pop().value), "<lesson>", "eval")
    return compile(tree, "<lesson>", "exec"), last
