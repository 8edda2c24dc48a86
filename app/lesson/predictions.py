"""Predictions that a reader enters before a run: read from a notebook's metadata, shown as fields."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FIELD = '<input type="text" size="50">'
"""The line of a notebook's Markdown where a field is. Jupyter shows a plain one, which `notebook.start` enables."""


@dataclass(frozen=True)
class Prediction:
    """Hold one prediction.

    Args:
        ask: the question.
        because: a sentence that says why it comes out so.
        answer: the outcome: a number, or which of the choices, from 0.
        choices: the possible answers; empty for a number.
        low, high: ends of the axis of a number.
        right: the least and the largest number that count as right.
        log: whether the axis is logarithmic.
        whole: whether it is a whole number.
        unit: what is counted, for example "dimensions".
        check: Python that says, at the end of the notebook, whether the choice is true, or what the number is.
    """

    ask: str
    because: str
    answer: float
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1.0
    right: tuple[float, float] = (0.0, 0.0)
    log: bool = False
    whole: bool = False
    unit: str = ""
    check: str = ""

    def field(self) -> dict[str, Any]:
        """Return what the script of a page reads."""
        shared = {"ask": self.ask, "because": self.because, "answer": self.answer}
        if self.choices:
            return shared | {"choices": self.choices}
        axis = {"low": self.low, "high": self.high, "right": self.right, "log": self.log, "whole": self.whole}
        return shared | axis | {"unit": self.unit}


def read_prediction(facts: Mapping[str, Any]) -> Prediction:
    """Return the prediction of an entry of a notebook's metadata.

    Raises:
        ValueError: an answer that is none of the choices, or not on the axis, or not among the right ones.
    """
    made = Prediction(**{**facts, **{name: tuple(facts[name]) for name in ("choices", "right") if name in facts}})
    if made.choices:
        if made.answer not in range(len(made.choices)):
            raise ValueError(f"answer = {made.answer}; allowed: 0 to {len(made.choices) - 1}, one of the choices.")
    elif not made.low <= made.right[0] <= made.answer <= made.right[1] <= made.high:
        raise ValueError(f"answer = {made.answer}; it must lie in right = {made.right}, and that within low and high.")
    return made


def field_html(key: str, prediction: Prediction, runs: bool) -> str:
    """Return the element that `predict.js` turns into a field.

    Args:
        key: under which the browser keeps what the reader said.
        prediction: what is asked.
        runs: whether something begins to run when the reader has said it.
    """
    facts = html.escape(json.dumps(prediction.field(), ensure_ascii=False))
    return f'<div class="predict" data-key="{key}" data-predict="{facts}"{" data-runs" * runs}></div>'


def scores_html(keys: Sequence[str], words: str) -> str:
    """Return the element in which `predict.js` counts the predictions that were right."""
    return (
        f'<p class="scores" data-words="{html.escape(words)}" data-scores="{html.escape(json.dumps(list(keys)))}"></p>'
    )
