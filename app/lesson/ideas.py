"""What a lesson shows at a time: an idea, which is a question, a figure, its caption and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from steinlab.lesson.reading import Cell, Lesson


@dataclass(frozen=True)
class Idea:
    """Hold one idea of a lesson.

    Args:
        question: its heading.
        start, stop: its first cell, and the first of the next idea.
        code: the lines of Python that a reader may unfold.
    """

    question: str
    start: int
    stop: int
    code: str

    @property
    def lines(self) -> int:
        """Number of lines of its code."""
        return len(self.code.splitlines())


@lru_cache(maxsize=32)
def ideas_of(lesson: Lesson) -> tuple[Idea, ...]:
    """Divide a lesson: each text that begins with a heading begins an idea. What is before the first belongs to it."""
    starts = [i for i, cell in enumerate(lesson.cells) if not cell.code and cell.source.startswith("#")] or [0]
    starts[0] = 0
    return tuple(_idea(lesson, start, stop) for start, stop in zip(starts, [*starts[1:], len(lesson.cells)]))


def idea_at(lesson: Lesson, count: int) -> int:
    """Return the number, from 0, of the idea that holds the last one of the first `count` cells."""
    found = [i for i, idea in enumerate(ideas_of(lesson)) if idea.start < max(count, 1)]
    return found[-1]


def is_setup(cell: Cell) -> bool:
    """Whether a cell only imports and calls `start()`."""
    return cell.code and "start()" in cell.source.splitlines()


def shown_source(lesson: Lesson, index: int) -> str:
    """Return the Markdown of a cell as the page shows it: the opening has the lesson's question as its heading."""
    opening = f"# {lesson.title}\n\n**{lesson.question}**"
    return (
        lesson.cells[index].source.replace(opening, f"# {lesson.question}")
        if index == 0
        else lesson.cells[index].source
    )


def _idea(lesson: Lesson, start: int, stop: int) -> Idea:
    cells = lesson.cells[start:stop]
    heading = cells[0].source.strip().partition("\n")[0] if start else lesson.question
    code = [cell.source.strip() for cell in cells if cell.code and not (cell.folded or cell.open or is_setup(cell))]
    return Idea(heading.lstrip("# "), start, stop, "\n\n".join(code))
