"""One class: what its lecturer shows, who follows, and the question that stands."""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from tornado.ioloop import IOLoop

from steinlab.classroom.questions import Answer, Question, gathered, table
from steinlab.server.channel import framed

RATE = 24.0  # frames a second to every follower
MOST_FOLLOWERS, MOST_ANSWERS = 500, 1000


class Listener(Protocol):
    """A follower's connection."""

    def tell(self, text: str) -> None: ...
    def show(self, frame: bytes, row: int) -> None: ...  # as `framed` makes it


class Room:
    """Hold a class.

    The lecturer's page says what is shown; followers get it as the same bytes. All methods run on the event loop.

    Args:
        code: by which followers find it.
        keep: gets each fact that must outlive the process, as a dict.

    Attributes:
        state: what followers see beside the frames: the properties of a stage, and more.
        followers: who listens, and under which name.
        question: the one that stands, or None.
        answers: who -> Answer, of that question.
        past: the questions before, with their answers.
        number: of the newest question.
        version: grows with every change that the lecturer sees.
        seen: moment of `time.monotonic()` at which the lecturer was last here.
    """

    has_threads = True  # it outlives the pages that lead it, see `steinlab.server.memory.dismantle`

    def __init__(self, code: str, keep: Callable[[dict], None]):
        self.code, self.keep = code, keep
        self.state: dict[str, Any] = {"away": "The lecturer has not begun yet."}
        self.frames: dict[int, bytes] = {}  # row -> the newest one
        self._new: set[int] = set()
        self.followers: dict[Listener, str] = {}
        self.question: Question | None = None
        self.answers: dict[str, Answer] = {}
        self.past: list[tuple[Question, list[Answer]]] = []
        self.version, self.number, self.seen = 0, 0, time.monotonic()
        self.leader: Callable[[], Any] = lambda: None  # the page that leads it, as a weak reference
        self._early: tuple[np.ndarray, int, int] | None = None  # a frame that has overtaken the news of its run
        self.on_answer: Callable[[str, bool], None] | None = None
        self.on_run: Callable[..., None] | None = None  # see `steinlab.classroom.runs.Runs.take`
        self._sent, self._waiting = 0.0, False

    # ---- what the lecturer shows

    def lead(self, leader: Any) -> None:
        """Give the class to a page of its lecturer; the one before is told so with `taken_over`."""
        before, self.leader = self.leader(), weakref.ref(leader)
        if before is not None and before is not leader:
            before.taken_over()

    def abandon(self, leader: Any) -> None:
        """Wait for the lecturer, whose page has ended."""
        if self.leader() is leader:
            self.leader = lambda: None
            self.publish(away="The lecturer is away for a moment.")

    def publish(self, **changes: Any) -> None:
        """Tell all followers what has changed of the state."""
        news = {name: value for name, value in changes.items() if self.state.get(name, self) != value}
        if news:
            self.state.update(news)
            self.tell({"state": news})
        if "starting" in news and self._early is not None:
            early, self._early = self._early, None
            self.take(*early)

    def take(self, frame: np.ndarray, row: int = 0, run: int = 0) -> None:
        """Show a frame: now, or when the rate allows; the newest of a row wins.

        Args:
            frame: float32, as the stage gets it.
            row: which of several pictures it is.
            run: its number; a frame of a run that has not been published yet waits for that.
        """
        if run > self.state.get("starting", 0):
            self._early = frame, row, run
            return
        self.frames[row] = framed(frame.tobytes())
        self._new.add(row)
        wait = self._sent + 1 / RATE - time.monotonic()
        if wait <= 0:
            self._show()
        elif not self._waiting:
            self._waiting = True
            IOLoop.current().call_later(wait, self._show)

    def forget_frames(self) -> None:
        """Show a late follower no frame of what is not shown any more."""
        self.frames, self._new, self._early = {}, set(), None

    def _show(self) -> None:
        self._waiting, self._sent = False, time.monotonic()
        new, self._new = self._new, set()
        for follower in tuple(self.followers):
            for row in new:
                follower.show(self.frames[row], row)

    def tell(self, message: dict) -> None:
        """Send a message to all followers."""
        text = json.dumps(message)
        for follower in tuple(self.followers):
            follower.tell(text)

    # ---- who follows

    def join(self, follower: Listener, who: str) -> bool:
        """Let a follower in, and show what the class sees.

        Args:
            follower: the connection.
            who: the name by which the follower's answer is known.

        Returns:
            False if the class is full.
        """
        if len(self.followers) >= MOST_FOLLOWERS:
            return False
        self.followers[follower] = who
        self.version += 1
        follower.tell(json.dumps({"state": self.state, "question": self.asked(), "mine": self.mine(who)}))
        for row, frame in self.frames.items():
            follower.show(frame, row)
        return True

    def leave(self, follower: Listener) -> None:
        """Forget a connection."""
        self.followers.pop(follower, None)
        self.version += 1

    def mine(self, who: str) -> dict | None:
        """Return what a follower has answered to the question that stands."""
        answer = self.answers.get(who)
        if answer is None:
            return None
        return {
            "id": self.question.id,
            "value": answer.value,
            "result": answer.result,
            "said": answer.said,
        }

    # ---- questions

    def asked(self) -> dict | None:
        """Return the question that stands, as followers see it; with the gathered answers once they are revealed."""
        if self.question is None:
            return None
        shown = self.question.shown()
        return shown | ({"gathered": self.gathered()} if self.question.revealed else {})

    def gathered(self) -> dict:
        """Return the answers that are not hidden, as `gather.js` draws them."""
        return gathered(self.question, self.answers.values())

    def ask(self, facts: Mapping[str, Any]) -> None:
        """Put a question in the place of the one that stands.

        Args:
            facts: of a `Question`, without its number.

        Raises:
            ValueError: if it is no question.
        """
        self._ask(Question(self.number + 1, **facts))
        self.keep({"question": self.question.kept()})
        self._tell_question()

    def close(self) -> None:
        """Take the question away."""
        if self.question:
            self.keep({"closed": self.question.id})
            self._put_past()
            self._tell_question()

    def freeze(self, on: bool) -> None:
        """Take no more answers, or take them again."""
        self._change(frozen=on)

    def reveal(self, on: bool, outcome: float | int | None = None, law: list | None = None) -> None:
        """Show the answers to the class, with the outcome, or take them back.

        Args:
            on: whether they are shown.
            outcome: the number that came out, or the place of the right choice.
            law: points [x, y] of the curve through the results of the class's own runs.
        """
        self._change(revealed=on, outcome=outcome, law=law or self.question and self.question.law)

    def answer(self, who: str, number: int, value: Any, name: str, own: bool = False) -> str:
        """Take an answer, in the place of an earlier one of the same follower.

        Args:
            who: the follower.
            number: of the question.
            value: the answer.
            name: what the follower wants to be called.
            own: whether the follower's device can make a run.

        Returns:
            What is wrong with it, or "".
        """
        question = self.question
        if question is None or number != question.id:
            return "This question is over."
        if question.frozen:
            return "The lecturer takes no more answers."
        if who not in self.answers and len(self.answers) >= MOST_ANSWERS:
            return f"The lecturer has {MOST_ANSWERS:,} answers already."
        try:
            answer = Answer(who, name, question.check(value))
        except ValueError as error:
            return str(error)
        self.keep({"answer": [number, *answer.kept()]})  # before it is confirmed: it outlives the process
        self._answer(answer)
        if self.on_answer:
            self.on_answer(who, own)
        return ""

    def tell_one(self, who: str, message: dict) -> None:
        """Send a message to all pages of one follower."""
        text = json.dumps(message)
        for follower in [one for one, name in self.followers.items() if name == who]:
            follower.tell(text)

    def result(self, who: str, number: int, result: float | None, said: str) -> None:
        """Note what a follower's own run has come to."""
        if self.question and self.question.id == number and who in self.answers:
            self.answers[who].result, self.answers[who].said = result, said
            self.keep({"result": [number, who, result, said]})
            self.version += 1
            self.tell_one(who, {"answered": number, "mine": self.mine(who)})
            if self.question.revealed:
                self._tell_question()

    def hide(self, who: str, on: bool) -> None:
        """Leave an answer out of what the class sees, or show it."""
        if who in self.answers:
            self.answers[who].hidden = on
            self.keep({"hide": [self.question.id, who, on]})
            self.version += 1
            if self.question.revealed:
                self._tell_question()

    def csv(self) -> str:
        """Return all answers to all questions as a table."""
        return table([*self.past, *[(self.question, list(self.answers.values()))] * (self.question is not None)])

    # ---- what a process that died has kept

    def restore(self, fact: dict) -> None:
        """Take a fact that `keep` was given before."""
        (kind, value), *_ = fact.items()
        standing = self.question.id if self.question else 0
        if kind == "question":
            if value["id"] == standing:
                self.question = Question(**value)
            else:
                self._ask(Question(**value))
        elif kind == "closed" and value == standing:
            self._put_past()
        elif kind in ("answer", "result", "hide") and value[0] == standing:
            if kind == "answer":
                self._answer(Answer(*value[1:]))
            elif kind == "result":
                self.answers[value[1]].result, self.answers[value[1]].said = value[2:]
            else:
                self.answers[value[1]].hidden = value[2]

    def _ask(self, question: Question) -> None:
        self._put_past()
        self.question, self.number = question, question.id

    def _put_past(self) -> None:
        if self.question and self.answers:
            self.past.append((self.question, list(self.answers.values())))
        self.question, self.answers = None, {}
        self.version += 1

    def _change(self, **facts: Any) -> None:
        if self.question:
            self.question = self.question.changed(**facts)
            self.keep({"question": self.question.kept()})
            self.version += 1
            self._tell_question()

    def _answer(self, answer: Answer) -> None:
        self.answers[answer.who] = answer
        self.version += 1

    def _tell_question(self) -> None:
        self.tell({"question": self.asked()})
