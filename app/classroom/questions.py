"""Questions to a class, and answers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from stein_core.base.errors import short

LONGEST, CHOICES, NAME = 200, 8, 30  # characters of a question or a choice, choices, characters of a name
BINS = 20  # of a histogram


@dataclass(frozen=True)
class Question:
    """A question that the whole class gets.

    Args:
        id: its number in this class.
        ask: the question.
        low, high: ends of the axis of a number.
        log: whether that axis is logarithmic.
        whole: whether only whole numbers are taken.
        unit: of the number.
        choices: texts to choose from; then it has no axis.
        knob: name of a knob, "dim" for the dimension; each follower then gets a run with the own value.
        label, ylabel: axes of the results of such runs.
        base: the recipe of those runs, as the fields of a link.
        frozen: whether no more answers are taken.
        revealed: whether the class sees the answers.
        outcome: the number that came out, or the place of the right choice.
        law: points [x, y] of a curve through the results.

    Raises:
        ValueError: naming the argument, its value and what is allowed.
    """

    id: int
    ask: str
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    whole: bool = False
    unit: str = ""
    choices: tuple[str, ...] = ()
    knob: str = ""
    label: str = ""
    ylabel: str = ""
    base: str = ""
    frozen: bool = False
    revealed: bool = False
    outcome: float | int | None = None
    law: tuple = ()

    def __post_init__(self):
        object.__setattr__(self, "choices", tuple(text.strip() for text in self.choices if text.strip()))
        object.__setattr__(self, "law", tuple(map(tuple, self.law)))
        for name, text in [("ask", self.ask), *(("choices", text) for text in self.choices)]:
            if not text.strip() or len(text) > LONGEST:
                raise ValueError(f"{name} = {short(text)!r}; allowed: 1 to {LONGEST} characters.")
        if len(self.choices) == 1 or len(self.choices) > CHOICES:
            raise ValueError(f"choices = {len(self.choices)} texts; allowed: 2 to {CHOICES}.")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"low = {self.low:g}, high = {self.high:g}; allowed: numbers, low below high.")
        if self.log and self.low <= 0:
            raise ValueError(f"low = {self.low:g}; allowed on a logarithmic axis: numbers above 0.")

    def check(self, value: Any) -> float | int:
        """Return an answer that fits.

        Raises:
            ValueError: naming the value and what is allowed.
        """
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if self.choices:
            if not number or value != int(value) or not 0 <= value < len(self.choices):
                raise ValueError(f"answer = {short(value)}; allowed: one of the {len(self.choices)} choices.")
            return int(value)
        if not number or not self.low <= value <= self.high:
            raise ValueError(f"answer = {short(value)}; allowed: {self.low:g} to {self.high:g}.")
        if self.whole and value != int(value):
            raise ValueError(f"answer = {value:g}; allowed: whole numbers.")
        return int(value) if self.whole else float(value)

    def words(self, value: float) -> str | float:
        """Return an answer as a table shows it."""
        return self.choices[value] if self.choices else value

    def shown(self) -> dict[str, Any]:
        """Return what followers get. They do not get the outcome before it is revealed."""
        facts = asdict(self)
        hidden = {} if self.revealed else {"outcome": None, "law": ()}
        return {name: value for name, value in (facts | hidden).items() if name != "base"}

    def kept(self) -> dict[str, Any]:
        """Return the arguments that make it again."""
        return asdict(self)

    def changed(self, **facts: Any) -> Question:
        """Return it with other facts."""
        return replace(self, **facts)


class Answer:
    """What one follower has answered.

    Args:
        who: the follower's own name for the server.
        name: what the follower wants to be called, "" for nothing.
        value: of the answer.

    Attributes:
        result: what the follower's own run has come to; None before.
        said: a sentence about that run.
        hidden: whether the lecturer leaves it out.
    """

    def __init__(self, who: str, name: str, value: float):
        self.who, self.name, self.value = who, name.strip()[:NAME], value
        self.result: float | None = None
        self.said, self.hidden = "", False

    def kept(self) -> list:
        """Return the arguments that make it again."""
        return [self.who, self.name, self.value]


def gathered(question: Question, answers: Iterable[Answer]) -> dict[str, Any]:
    """Return answers as `gather.js` draws them, without those that are hidden.

    Returns:
        count; and "points" [value, result, name] of own runs, "counts" of choices, or "bins" [low, high, count] of
        numbers.
    """
    shown = [one for one in answers if not one.hidden]
    if question.knob:
        points = [[one.value, one.result, one.name] for one in shown if one.result is not None]
        return {"count": len(shown), "points": points}
    if question.choices:
        return {
            "count": len(shown),
            "counts": [sum(one.value == k for one in shown) for k in range(len(question.choices))],
        }
    low, high = (math.log(v) if question.log else v for v in (question.low, question.high))
    wide = min(BINS, int(high - low) + 1) if question.whole and not question.log else BINS
    edges = [low + (high - low) * k / wide for k in range(wide + 1)]
    counts = [0] * wide
    for one in shown:
        at = math.log(one.value) if question.log else one.value
        counts[min(int((at - low) / (high - low) * wide), wide - 1)] += 1
    back = math.exp if question.log else float
    return {"count": len(shown), "bins": [[back(a), back(b), n] for a, b, n in zip(edges, edges[1:], counts)]}


def table(asked: Iterable[tuple[Question, list[Answer]]]) -> str:
    """Return questions and their answers as comma-separated values."""
    text = io.StringIO()
    write = csv.writer(text).writerow
    write(["question", "asked", "name", "answer", "result", "hidden", "outcome"])
    for question, answers in asked:
        for one in answers:
            said = question.words(one.value)
            row = [question.id, question.ask, one.name, said, one.result, one.hidden, question.outcome]
            write([safe(cell) if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()


def safe(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text
