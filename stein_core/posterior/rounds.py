"""The rounds of a fit: a run with step sizes that fall, and what it has reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import METHODS
from stein_core.contract.spec import Spec
from stein_core.contract.target import Target
from stein_core.contract.types import Frame, State
from stein_core.posterior.fitted import draws_of
from stein_core.posterior.lean import LeanStepper

POINT_SIZES = ((0.1, 500), (0.03, 500), (0.01, 500), (0.003, 500))  # Adam's step sizes in sds, and steps of each
GUIDE_SIZES = ((0.05, 200), (0.03, 200), (0.01, 100))
UNSCALED = 16  # coordinates, above which steps of full normals are shorter: their entries grow with the square
DRAWS = 40  # of all guides together in a step; in pairs, so at least 2 of each
LONGER = 2.5  # times the steps of a round that goes on with the last one
LOOKS = 20  # in a round
AT_REST = 0.005  # force that is left, as a share of the attraction, at which a run of points ends
WIDE = {"guide.width": 0.7, "init.spread": 0.7}  # of guides at the start: together about as wide as the posterior


class Diverged(Exception):
    """A run has particles that are not finite."""


@dataclass
class Rounds:
    """What all rounds of a fit share.

    Args:
        spec: of a target.
        chosen: knobs.
        seed: of the run.
        steps: of a round, or None.
        tell: is called with the steps that are done, and all.
        history: of all looks.
        stepper: with the programs, after the first round.
        done, all: steps that are done, and all that are known to come.
        count: of the rounds.
        gradients: that were spent.
        scorer: the program of `scores`, after the first round.
    """

    spec: Callable[[Target], Spec]
    chosen: dict[str, Any]
    seed: int
    steps: int | None
    tell: Callable[[int, int], None]
    history: list[dict[str, Any]] = field(default_factory=list)
    stepper: LeanStepper | None = None
    done: int = 0
    all: int = 0
    count: int = 0
    gradients: int = 0
    scorer: Callable | None = None

    def scores(self, target: Target, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log densities (n,) and scores (n, d) of draws z (n, d) of a round, whose target this is: one program
        for all rounds."""
        self.gradients += len(z)

        def slopes(rows, data):
            density = (target if data is None else target.remake(data)).log_density
            return jax.lax.map(jax.value_and_grad(density), rows, batch_size=500)

        self.scorer = self.scorer or jax.jit(slopes)
        values, scores = self.scorer(jnp.asarray(z), target.data)
        return np.asarray(values, float), np.asarray(scores, float)


class Round(NamedTuple):
    """What a round has reached: where its run ended, and draws z (n, d) with their log densities."""

    stepper: LeanStepper
    recipe: Recipe
    frame: Frame
    state: State
    knobs: Mapping[str, Any]
    z: np.ndarray
    log_q: np.ndarray | None


def spec_of(method: str, guide: str | None, particles: int, target: Target) -> Spec:
    """Return the spec of a round: as many draws of each guide as DRAWS allows, and no spare rows."""
    count = 1 if METHODS[method].facts.single else particles
    draws = max(2, DRAWS // count // 2 * 2)
    return Spec(target, method=method, guide=guide, draws=draws, capacity=particles + particles % 2 * (particles > 1))


def _schedule(spec: Spec, steps: int | None, longer: bool) -> list[tuple[float, int]]:
    """Return step sizes, and how many steps of each: of guides or points, in so many steps altogether."""
    sizes = GUIDE_SIZES if spec.has_density else POINT_SIZES
    shorter = min(1.0, math.sqrt(UNSCALED / spec.dim)) if spec.guide == "full" else 1.0
    usual = sum(many for _, many in sizes)
    total = int((steps or usual) * (LONGER if longer else 1))
    ends = np.cumsum([0, *(many for _, many in sizes)]) * total // usual
    return [(size * shorter, int(many)) for (size, _), many in zip(sizes, np.diff(ends))]


def run_round(rounds: Rounds, target: Target, state: State | None) -> Round:
    """Run one round.

    Args:
        rounds: of the fit.
        target: in the coordinates of the round.
        state: the end of the last round, with which this one goes on; None begins anew.
    """
    spec = rounds.spec(target)
    schedule = _schedule(spec, rounds.steps, state is not None)
    ends = np.cumsum([many for _, many in schedule]).tolist()
    changes = [(end - many, "method.step_size", size) for (size, many), end in zip(schedule, ends)]
    own = {name: value for name, value in rounds.chosen.items() if name in spec.knobs() or name not in WIDE}
    recipe = Recipe(spec, own, rounds.seed, tuple(changes))
    rounds.stepper = rounds.stepper or LeanStepper(spec, recipe.knobs)
    stepper = rounds.stepper.sharing(spec)
    now, rounds.count = dict(recipe.knobs), rounds.count + 1
    state = stepper.reset(recipe.seed, recipe.knobs) if state is None else state
    first = int(state.step)
    before, rounds.all = rounds.done, rounds.done + ends[-1]
    piece = max(1, ends[-1] // LOOKS)
    for begin in range(0, ends[-1], piece):
        while changes and changes[0][0] <= begin:
            state, now = stepper.change(state, now, *changes.pop(0)[1:])
        goal = min(begin + piece, ends[-1])
        state = stepper.advance(state, now, goal - begin)
        frame = stepper.look(state, now, False)
        force = float(np.sqrt(np.mean((frame.attract + frame.repulse) ** 2)))
        rounds.history.append(
            {"round": rounds.count, "step": goal, "step_size": now["method.step_size"], "force": force}
        )
        if not frame.finite or int(state.step) < first + goal:
            raise Diverged(f"the run diverged at step {int(state.step)}.")
        rounds.done = before + goal
        rounds.gradients += (goal - begin) * stepper.gradients
        rounds.tell(rounds.done, rounds.all)
        if not spec.has_density and _still(stepper, frame, now, force):
            break
    return Round(stepper, recipe, frame, state, now, *draws_of(recipe, frame.particles, rounds.seed))


def _still(stepper: LeanStepper, frame: Frame, knobs: Mapping[str, Any], force: float) -> bool:
    """Return whether points are at rest: hardly any force is left beside the attraction of one step."""
    noisy = METHODS[stepper.spec.method].facts.noisy
    if stepper.target.minibatch is not None or (noisy and noisy(knobs)) or not frame.repulse.any():
        return False
    return force < AT_REST * float(np.sqrt(np.mean(frame.attract**2)))
