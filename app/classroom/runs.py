"""A run for every answer: each follower sets one knob, and gets what is left of the variance.

A phone makes its own run, if it can, and sends what that has come to. The server makes the others.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from tornado.ioloop import IOLoop

from stein_core import KERNELS, METHODS, TARGETS, Recipe
from stein_core.sweep.batches import program_of, run_batch
from stein_core.sweep.in_browser import args_of, kind_of, settling
from stein_core.sweep.stop import Stop
from stein_core.web import HELPERS
from steinlab.classroom.room import Room
from steinlab.server.background import Threads
from steinlab.server.errors import note
from steinlab.stage.setup import Setup

log = logging.getLogger(__name__)

KNOBS = {"method.alpha": "alpha", "method.particles": "particles", "dim": "dimension", "kernel.name": "kernel"}
ALPHAS = (0.1, 10.0)
# An axis from the first to the last; or a choice of those that fit, if a target takes multiples of a number only.
DIMS = (1, 2, 4, 6, 10, 20, 50, 100)
PARTICLES = (2, 5, 10, 20, 50, 100)  # each number is a program
CAPACITY = 128  # of every run: all of a class share its program
TOGETHER = 16  # runs in one batch
MOST = Stop(most=3000)
QUANTITY = "sample_variance"
RUNNERS = Threads(1, "class")
PATIENCE = 40.0  # seconds that a phone has for its own run
WORKER = Path(__file__).with_name("own.js")
SCRIPTS: dict[str, bytes] = {}  # name -> what a phone runs, compressed; the newest of them
MOST_SCRIPTS = 64
DIVERGED = "This run diverged."
THERE = "Your own device computed it."


def facts_of(knob: str, base: str) -> dict[str, Any]:
    """Return the facts of a question whose answer is a run.

    Args:
        knob: a name in KNOBS.
        base: the recipe of the runs, as the fields of a link; its first method runs.

    Raises:
        ValueError: the method has no such knob, or the target one dimension only.
    """
    said, setup = KNOBS[knob], Setup.from_query(dict(parse_qsl(base)))[0]
    entry, target, own = METHODS[setup.methods[0]], TARGETS[setup.target], setup.spec(setup.methods[0], CAPACITY)
    pointless = {"method.particles"} if entry.facts.single else set()
    allowed = [name for name in KNOBS if name in own.knobs().keys() - pointless]
    low, high = target.facts.dims
    if low < high and target.facts.dim_of is None:
        allowed.append("dim")
    if knob not in allowed:
        why = f"{target.label} always has dimension {own.dim}" if knob == "dim" else f"{entry.label} has no {said}"
        raise ValueError(f"{why}; allowed: {', '.join(KNOBS[name] for name in allowed)}.")
    axes = {"knob": knob, "label": said, "ylabel": "Variance of the points", "base": base}
    if knob == "kernel.name":
        return {**axes, "choices": tuple(entry.label for entry in KERNELS.entries())[:8]}
    if knob == "method.particles":
        return {**axes, "choices": tuple(map(str, PARTICLES))}
    if knob == "method.alpha":
        return {**axes, "low": ALPHAS[0], "high": ALPHAS[1], "log": True}
    low, high = max(low, DIMS[0]), min(high, DIMS[-1])
    if target.facts.dim_step > 1:
        return {**axes, "choices": tuple(str(d) for d in DIMS if low <= d <= high and d % target.facts.dim_step == 0)}
    return {**axes, "low": low, "high": high, "log": True, "whole": True}


def recipe_of(question, value: float, who: str) -> Recipe:
    """Return the recipe of a follower's own run: the start is the follower's own, too."""
    setup, _ = Setup.from_query(dict(parse_qsl(question.base)))
    setup = replace(setup, seed=zlib.crc32(who.encode()) % 2**31, changes=(), steps=0)
    if question.choices:
        value = tuple(KERNELS)[int(value)] if question.knob == "kernel.name" else int(question.choices[int(value)])
    if question.knob == "dim":
        setup = replace(setup, dim=int(value))
    else:
        setup = replace(setup, knobs={**setup.knobs, question.knob: value})
    return setup.recipe(setup.methods[0], CAPACITY)


def law_of(question) -> list[list[float]]:
    """Return the curve of the law over a question's knob, or [] if there is no law."""
    if question.choices:
        return []
    points = []
    for value in np.geomspace(question.low, question.high, 40):
        recipe = recipe_of(question, round(value) if question.whole else value, "law")
        law = METHODS[recipe.spec.method].facts.law
        if law is None:
            return []
        values = {name: recipe.knobs.get(name, knob.default) for name, knob in recipe.spec.knobs().items()}
        left = float(law(recipe.spec.dim, int(values["method.particles"]), values))
        at = round(value) if question.whole else float(value)
        if math.isfinite(left) and (not points or points[-1][0] != at):
            points.append([at, left])
    return points


def script_of(recipe: Recipe) -> str:
    """Translate the runs of recipes like this one for phones; return the name of the script in SCRIPTS.

    Raises:
        ValueError: there is no translation.
    """
    program = settling(recipe, MOST, QUANTITY)
    text = "\n".join([HELPERS, f"const program = {program};", WORKER.read_text(encoding="utf-8")]).encode()
    name = hashlib.sha256(text).hexdigest()[:16]
    SCRIPTS.pop(name, None)
    SCRIPTS[name] = gzip.compress(text, mtime=0)
    while len(SCRIPTS) > MOST_SCRIPTS:
        SCRIPTS.pop(next(iter(SCRIPTS)))
    return name


class Runs:
    """Make the runs of a class, in the order in which they were asked for, some at a time.

    Args:
        room: whose answers they are.
        later: runs a function on the event loop.

    Attributes:
        waiting: followers whose runs the server makes.
        away: follower -> the value of a run that the follower's own device makes.
        scripts: `kind_of` a recipe -> the name of its script.
    """

    has_threads = True  # see `steinlab.server.memory.dismantle`

    def __init__(self, room: Room, later: Callable[[Callable[[], None]], None]):
        self.room, self.later = room, later
        self.waiting: list[str] = []
        self.away: dict[str, float] = {}
        self.scripts: dict[tuple, str] = {}
        self.busy = False
        room.on_answer, room.on_run = self.add, self.take
        if room.question and room.question.knob:  # what a process before this one has left
            self.waiting = [who for who, one in room.answers.items() if one.result is None]
            self._next()
            self.prepare()

    def add(self, who: str, own: bool = False) -> None:
        """Let the run of an answer that has come be made. On the event loop.

        Args:
            who: the follower.
            own: whether the follower's device offers to make it.
        """
        question = self.room.question
        if not question.knob:
            return
        value = self.room.answers[who].value
        self.away.pop(who, None)
        recipe = recipe_of(question, value, who)
        script = self.scripts.get(kind_of(recipe, MOST)) if own else None
        if script not in SCRIPTS:
            return self._queue(who)
        self.away[who] = value
        self.room.tell_one(who, {"run": {"script": script, **args_of(recipe, MOST), "to": question.id, "of": value}})
        IOLoop.current().call_later(PATIENCE, self.take, who, question.id, value, "running", 0.0)

    def take(self, who: str, number: int, of: float, ended: str, result: float) -> None:
        """Take what a follower's own device says of the run that it was given.

        Args:
            who: the follower.
            number: of the question.
            of: the value that the follower had chosen.
            ended: one of `ENDS`; "running" if the device has given up.
            result: what the run has come to.
        """
        question = self.room.question
        if question is None or question.id != number or self.away.get(who) != of:
            return
        del self.away[who]
        if ended == "running":
            return self._queue(who)
        fine = ended != "diverged" and math.isfinite(result) and result >= 0
        self.room.result(who, number, result if fine else None, THERE if fine else DIVERGED)

    def _queue(self, who: str) -> None:
        if who not in self.waiting:
            self.waiting.append(who)
        self._next()

    def prepare(self) -> None:
        """Translate the programs of the runs, and compile them, while the class thinks."""
        question = self.room.question
        at = range(len(question.choices)) if question.choices else np.geomspace(question.low, question.high, 5)
        wanted = [("first", recipe_of(question, round(v) if question.whole else v, "first")) for v in at]

        def work() -> None:
            try:
                for recipe in {kind_of(recipe, MOST): recipe for _, recipe in wanted}.values():
                    if self.room.question is question:
                        self._translate(recipe)
                for one in {program_of(recipe, MOST): (who, recipe) for who, recipe in wanted}.values():
                    if self.room.question is question:
                        results([one])
            except Exception as error:
                note(log, "a run of a class", error)

        RUNNERS.submit(work)

    def _translate(self, recipe: Recipe) -> None:
        try:
            name = script_of(recipe)
        except ValueError as error:
            return log.info("class: phones cannot make these runs: %s", error)
        self.later(lambda: self.scripts.update({kind_of(recipe, MOST): name}))

    def _next(self) -> None:
        question = self.room.question
        self.waiting = [who for who in self.waiting if question and who in self.room.answers]
        if self.busy or not self.waiting or not question.knob:
            return
        wanted = [(who, self.room.answers[who].value) for who in self.waiting[:TOGETHER]]
        self.waiting, self.busy = self.waiting[TOGETHER:], True

        def work() -> None:
            try:
                found = results([(who, recipe_of(question, value, who)) for who, value in wanted])
            except Exception as error:
                found = {}
                note(log, "a run of a class", error)
            self.later(lambda: self._take(question.id, dict(wanted), found))

        RUNNERS.submit(work)

    def _take(self, number: int, wanted: dict[str, float], found: dict[str, float | None]) -> None:
        self.busy = False
        for who, value in wanted.items():
            now = self.room.answers.get(who)
            if now and now.value == value:
                left = found.get(who)
                self.room.result(who, number, left, "" if left is not None else DIVERGED)
        self._next()


def results(wanted: list[tuple[str, Recipe]]) -> dict[str, float | None]:
    """Run recipes, those of one program together; return what is left of the variance, None if a run diverged."""
    found, groups = {}, {}
    for who, recipe in wanted:
        groups.setdefault(program_of(recipe, MOST), []).append((who, recipe))
    for group in groups.values():
        padded = [*group, *[group[-1]] * (TOGETHER - len(group))]  # one size, so one program
        for (who, _), result in zip(group, run_batch([recipe for _, recipe in padded], MOST)):
            left = result.get("metrics", {}).get(QUANTITY)
            found[who] = left if result.get("stopped") != "diverged" else None
    return found
