"""When a run is at rest: its means and spreads stand still, and no steady force is left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from stein_core.contract.registry import METHODS
from stein_core.contract.spec import Spec, target_of
from stein_core.contract.types import Frame

MOVED = 0.01  # sds that a mean may move, and share by which an sd may change, between the halves of a window
SHAKEN = 0.02  # the same with noise: with 0.01 guides are called at rest up to twenty times too late
STEADY = 0.1  # of the attraction: a mean force that is larger goes on to move the particles
NOISY = 0.25  # the same for guides and mini-batches: STEADY would take six times as many looks to be sure
SURE = 2.0  # standard errors of what is left of the square of a mean force
WINDOW = 0.25  # of the steps since the start, or since the last change: the latest ones
LEAST = 500  # steps, before which nothing is at rest
FIRST = 0.1  # of the first attraction, which counts beside the present one: that of MAP vanishes at rest
BLOCKS, FEWEST = 64, 4  # of looks: most that are kept, and fewest in a half of a window
SOME = 200  # particles whose forces are kept


class Block(NamedTuple):
    """Hold means over some looks.

    Args:
        step: of the last one.
        count: of the looks.
        mean, log_sd: (d,) of all particles or guides together.
        force: (k, p) of up to SOME particles.
        square: of the force, summed over its entries.
        pull: the same of the attraction.
    """

    step: int
    count: int
    mean: np.ndarray
    log_sd: np.ndarray
    force: np.ndarray
    square: float
    pull: float


class Rest:
    """Say whether a run is at rest, from the frames that are looked at.

    The window is the last quarter of the run. A run is at rest if three things hold between and over its halves. No
    mean moves by more than 1 % of an sd. No sd changes by more than 1 %. And the mean force is below a tenth of the
    attraction. With a noisy force the limits are 2 %, 2 % and a quarter. Noise cancels in means over many looks, so
    guides rest too. What moves as slowly as the root of the steps looks still: `bench rest` counts how often.

    A method with random moves never comes to rest, and `add` says None of it.

    Args:
        spec: of the run.

    Attributes:
        since: the step from which on the run is known to be at rest, or None.
    """

    def __init__(self, spec: Spec):
        self.spec = spec
        self.noisy = spec.has_density or target_of(spec).minibatch is not None
        self._begin(None)

    def _begin(self, key: Any) -> None:
        self.key, self.blocks, self.many, self.since = key, [], 1, None
        self.first = (0, 0.0)

    def ends(self, knobs: Mapping[str, Any]) -> bool:
        """Return whether the method can come to rest with these knobs: no chain, and no random moves."""
        facts = METHODS[self.spec.method].facts
        return not (facts.sampler or (facts.noisy and facts.noisy(knobs)))

    def add(self, frame: Frame, knobs: Mapping[str, Any], changes: int = 0) -> bool | None:
        """Look at one more frame.

        Args:
            frame: with a later step than the last one; else the watch begins anew, as it does after a change.
            knobs: that the run has now.
            changes: number of edits, for example of particles that were dragged.

        Returns:
            Whether the run is at rest; None if its method never is.
        """
        if not self.ends(knobs):
            return None
        key = (dict(knobs), changes, frame.particles.shape)
        if key != self.key or (self.blocks and frame.step < self.blocks[-1].step):
            self._begin(key)
        if self.blocks and frame.step == self.blocks[-1].step:
            return self.since is not None
        new = _look(frame)
        if not self.blocks:
            self.first = (frame.step, new.pull)
        if self.blocks and self.blocks[-1].count < self.many:
            self.blocks[-1] = _together(self.blocks[-1], new)
        else:
            self.blocks.append(new)
        if len(self.blocks) > BLOCKS:
            self.blocks = [_together(*pair) for pair in zip(self.blocks[::2], self.blocks[1::2])] + self.blocks[BLOCKS:]
            self.many *= 2
        still = self._still()
        self.since = (self.since or frame.step) if still else None
        return still

    def _still(self) -> bool:
        end, begin = self.blocks[-1].step, self.first[0]
        if end - begin < LEAST:
            return False
        window = [block for block in self.blocks if block.step > end - WINDOW * (end - begin)]
        if len(window) < 2 * FEWEST:
            return False
        early, late = (_all(half) for half in (window[: len(window) // 2], window[len(window) // 2 :]))
        moved = np.abs(late.mean - early.mean) / np.exp(late.log_sd)
        grown = np.abs(late.log_sd - early.log_sd)
        if not max(moved.max(), grown.max()) < (SHAKEN if self.noisy else MOVED):
            return False
        whole = _together(early, late)
        steady = float(np.sum(whole.force**2))
        limit = (NOISY if self.noisy else STEADY) ** 2 * (whole.pull + FIRST**2 * self.first[1])
        # The square of a mean has its variance on top. The entries of one particle have errors of their own.
        error = self.noisy * max(whole.square - steady, 0.0) / whole.count
        return bool(steady + error * (SURE * math.sqrt(2 / whole.force.shape[1]) - 1) < limit)


def _look(frame: Frame) -> Block:
    """Return the Block of one frame."""
    every = -(-len(frame.attract) // SOME)
    attract = np.asarray(frame.attract[::every], float)
    force = attract + frame.repulse[::every]
    spread = frame.locations.var(axis=0) + np.mean(np.asarray(frame.scales, float) ** 2, axis=0)
    log_sd = 0.5 * np.log(np.maximum(spread, np.finfo(float).tiny))
    return Block(
        frame.step,
        1,
        frame.locations.mean(axis=0),
        log_sd,
        force,
        float(np.sum(force**2)),
        float(np.sum(attract**2)),
    )


def _together(one: Block, other: Block) -> Block:
    """Return the means over the looks of two blocks, one after the other."""
    count = one.count + other.count
    share = other.count / count
    means = [a + share * (b - a) for a, b in zip(one[2:], other[2:])]
    return Block(other.step, count, *means)


def _all(blocks: list[Block]) -> Block:
    """Return the means over the looks of some blocks."""
    found = blocks[0]
    for block in blocks[1:]:
        found = _together(found, block)
    return found
