"""Many runs of one program at once, each until it has settled.

A batch is a list of recipes that differ only in traced numbers: seed, dimension, particle count, alpha, step size ...
and in methods that stack (fact `stack`: they share state and guide, and XLA merges what their steps have in common).
They run side by side (`jax.vmap`) on one compiled program: dimensions are padded with coordinates that weigh nothing,
particles with spare rows, and a run that has settled waits unchanged for the others. Kernel, rule and other choices are
the same for a whole batch, so that only the chosen one is computed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.machine import takes_turns, turn
from stein_core.contract.knobs import Knob, precision
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import GUIDES, METHODS, TARGETS
from stein_core.contract.spec import Spec, data_of, target_of
from stein_core.contract.types import State
from stein_core.runs.assembly import assemble, registry_version
from stein_core.runs.cache import make_room
from stein_core.runs.diagnostics import DIAGNOSTICS, evaluate
from stein_core.runs.memory import check_memory
from stein_core.runs.runner import is_finite
from stein_core.sweep.stop import FAST, SLOW, Stop

BLOCKS = SLOW // FAST
DIMS = (10, 40, 100, 200, 400, 1000)  # dimensions are padded up to one of these
AT_REST = 1e-4  # of the attraction: a force below that is as good as zero
# A guide with a smaller sd is a point to float32, and its mixture has no density: the run has diverged.
NARROWEST = 1e-6
EVENTS = 30  # most changes of the step size of one run
CHUNK_SECONDS = 0.05  # between two looks at what has settled, and two chances to stop


class BatchRun(NamedTuple):
    """One run of a batch. blocks: force norms, means over 35 steps, the newest last. average: the recursion's fast and
    slow one. stage: how often the step size is divided by 10; since: steps in this stage; events: how often that has
    changed, at the steps and to the stages in `changes`; done: 0 while it runs, else 1 settled, 2 at its last step, 3
    diverged."""

    state: State
    blocks: jax.Array
    average: jax.Array
    stage: jax.Array
    since: jax.Array
    events: jax.Array
    changes: jax.Array
    done: jax.Array


ENDS = ("running", "converged", "steps", "diverged")


def padded_dim(spec: Spec) -> int:
    """Return the dimension that a batch computes for `spec`: the next of 10, 40, 100 ... if the target allows it."""
    return next(d for d in DIMS if d >= spec.dim) if TARGETS[spec.target].facts.pads else spec.dim


def padded_capacity(particles: int) -> int:
    """The capacity that a batch computes for so many particles: 1, or at most a quarter more, and even."""
    if particles == 1:
        return 1
    unit = max(2, 2 ** (particles.bit_length() - 3))
    return -(-particles // unit) * unit


def stacked(spec: Spec) -> tuple[str, ...]:
    """The methods that one program computes with that of `spec`: all with the same fact `stack`, or it alone.

    It is alone if the target has data: a choice between methods would copy them for each run.
    """
    stack = None if TARGETS[spec.target].facts.data else METHODS[spec.method].facts.stack
    return tuple(e.name for e in METHODS.entries() if e.facts.stack == stack) if stack else (spec.method,)


def knobs_of(spec: Spec) -> dict[str, Knob]:
    """The knobs of a spec and of all methods that stack with its own: first those of others, so that its own count."""
    others = [name for name in stacked(spec) if name != spec.method]
    return {k: knob for name in (*others, spec.method) for k, knob in spec.carried_to(method=name).knobs().items()}


def is_fixed(name: str, knob: Knob, spec: Spec) -> bool:
    """Whether a knob is the same for a whole batch: a choice, unless it belongs to one of several methods."""
    return knob.choices is not None and not (name.startswith("method.") and len(stacked(spec)) > 1)


def program_of(recipe: Recipe, stop: Stop) -> tuple:
    """What two recipes must share to run in one batch."""
    spec, knobs = recipe.spec, recipe.spec.knobs()
    values = {k: recipe.knobs.get(k, knob.default) for k, knob in knobs.items()}
    choices = tuple((k, values[k]) for k, knob in knobs.items() if is_fixed(k, knob, spec))
    sizes = tuple((k, size) for k, knob in knobs.items() if (size := np.shape(knob.traced(values[k]))))
    capacity = padded_capacity(min(values["method.particles"], spec.capacity))
    choice = (stacked(spec), spec.guide, spec.optimizer, spec.draws, capacity)
    return (spec.target, padded_dim(spec), spec.options, *choice, choices, sizes, replace(stop, most=SLOW))


def functions_of(program: tuple) -> tuple[Callable, Callable, Callable]:
    """Return what a program computes for one run.

    Args:
        program: of `program_of`.

    Returns:
        start(seed, knobs, d, data), the run; block(run, knobs, d, least, most, data), the run 35 steps later, or itself
        if it has ended; finish(run, knobs, d, data, which), the diagnostics, all of them if `which` is None.
    """
    name, dim, options, methods, guide, optimizer, draws, capacity, choices, _, stop = program
    target_entry = TARGETS[name]
    fields = ("target", "dim", "guide", "optimizer", "draws", "capacity", "options")
    same = dict(zip(fields, (name, dim, guide, optimizer, draws, capacity, options)))
    specs = [Spec.fitting(method=method, **same) for method in methods]
    known, whole = specs[0].knobs(), target_of(specs[0])  # not while it is traced: a NumPyro model is run to build it
    fixed = {k: jnp.asarray(known[k].traced(value), float) for k, value in choices}
    facts = METHODS[methods[0]].facts
    noisy = facts.noisy(dict(choices)) if facts.noisy else GUIDES[guide].facts.has_density
    noisy = noisy or whole.minibatch is not None
    stages = min(stop.stages, facts.stages or stop.stages)

    def build(knobs, d, data):
        mask = (jnp.arange(dim) < d).astype(float) if target_entry.facts.pads else None
        own = {knob.name: {**fixed, **knobs}[f"target.{knob.name}"] for knob in target_entry.knobs}
        target = None if mask is None else target_entry.make(dim, mask, **own)
        each = [assemble(spec, {**fixed, **knobs}, data, target=target, mask=mask) for spec in specs]
        problem, steps = each[0][0], [method.step for _, method in each]

        def step(key, state):
            return jax.lax.switch(knobs["method"], steps, key, state)

        return problem, each[0][1]._replace(step=step)

    def start(seed, knobs, d, data):
        state = build(knobs, d, data)[1].init(jax.random.PRNGKey(seed), capacity)
        zero = jnp.int32(0)
        changes = jnp.zeros((EVENTS, 2), jnp.int32)
        return BatchRun(state, jnp.zeros(BLOCKS), jnp.zeros(2), zero, zero, zero, changes, zero)

    def block(run, knobs, d, least, most, data):
        problem, method = build({**knobs, "method.step_size": knobs["method.step_size"] * 0.1**run.stage}, d, data)
        weights = problem.weights(capacity)

        def step(i, carry):
            state, total, pull, average, fired, fine = carry
            after, forces = method.step(jax.random.fold_in(state.key, state.step), state)
            go = fine & (state.step < most)
            fine = fine & is_finite(after)
            if problem.guide.log_density is not None:
                narrowest = jnp.min(problem.guide.scale(after.particles), axis=1)
                fine = fine & jnp.all((narrowest > NARROWEST) | (weights == 0))
            state = jax.tree.map(lambda a, b: jnp.where(go & fine, a, b), after, state)
            norm, attraction = (
                jnp.sqrt(weights @ jnp.sum(force**2, axis=1))
                for force in (forces.attract + forces.repulse, forces.attract)
            )
            tau = jnp.minimum(run.since + i, jnp.array([FAST, SLOW])).astype(float)
            discount = 0.001 ** (1.0 / jnp.array([FAST, SLOW]))
            average = norm / (tau + 1) + tau / (tau + 1) * discount * average
            fired = fired | (average[0] > 2 * average[1])
            return state, total + norm, pull + attraction, average, fired, fine

        first = (run.state, 0.0, 0.0, run.average, jnp.bool_(False), jnp.bool_(True))
        state, total, pull, average, latched, fine = jax.lax.fori_loop(0, FAST, step, first)
        blocks, since = jnp.append(run.blocks[1:], total / FAST), run.since + FAST
        # Where floats stand still the norm is constant, or 0: that has stopped falling too.
        fast_is_slower = blocks[-1] >= jnp.mean(blocks) * (1 - 1e-6) if stop.rule == "means" else latched
        fires = (since >= (stop.noisy if noisy else stop.least)) & (state.step >= least) & fast_is_slower
        last = fires & (run.stage + 1 >= stages)
        settled = last & (noisy | (total <= AT_REST * pull))
        stage = jnp.where(last, jnp.where(settled, run.stage, 0), run.stage + fires)
        out = (state.step >= most) | (run.events + 1 >= EVENTS)
        done = jnp.where(settled, 1, jnp.where(out, 2, 0))
        events = run.events + (fires & (done == 0))
        changes = run.changes.at[run.events].set(jnp.stack([state.step, stage]))
        after = BatchRun(
            state,
            blocks,
            jnp.where(fires, 0.0, average),
            stage,
            jnp.where(fires, 0, since),
            events,
            jnp.where(events > run.events, changes, run.changes),
            jnp.where(fine, done, 3),
        )
        return jax.tree.map(lambda a, b: jnp.where(run.done > 0, b, a), after, run)

    def finish(run, knobs, d, data, which=None):
        problem, method = build(knobs, d, data)
        key = jax.random.fold_in(run.state.key, run.state.step)
        return evaluate(problem, key, run.state, method.step(key, run.state)[1], which)

    return start, block, finish


@lru_cache(maxsize=16)
def _compiled(program: tuple, entries: tuple, count: int):
    """(start, advance, finish) of a program, compiled for `count` runs. entries: what the names mean now."""
    make_room()
    start, block, finish = functions_of(program)

    def advance(run, knobs, d, least, most, data, blocks):
        one = jax.vmap(block, (0, 0, 0, 0, 0, None))  # all runs read the same data
        return jax.lax.fori_loop(0, blocks, lambda _, run: one(run, knobs, d, least, most, data), run)

    each = (0, 0, 0, None)
    return jax.jit(jax.vmap(start, each)), jax.jit(advance, donate_argnums=0), jax.jit(jax.vmap(finish, each))


def entries_of(spec: Spec) -> tuple:
    """Return what the names in a spec's program mean now: an entry that is registered again makes another program."""
    return tuple(registry_version(spec.carried_to(method=name)) for name in stacked(spec))


def arguments_of(recipes: list[Recipe], stop: Stop) -> tuple:
    """The seeds, knobs and dimensions of recipes of one program, the fewest and the most steps of each, and their
    data."""
    spec, known = recipes[0].spec, knobs_of(recipes[0].spec)
    traced = [name for name, knob in known.items() if not is_fixed(name, knob, spec)]
    values = {k: [known[k].traced(r.knobs.get(k, known[k].default)) for r in recipes] for k in traced}
    facts = [METHODS[recipe.spec.method].facts for recipe in recipes]
    # A schedule has to end first, a chain to forget its start.
    least = [f.least({k: r.knobs.get(k, knob.default) for k, knob in known.items()}) for f, r in zip(facts, recipes)]
    knobs = {k: np.asarray(v, precision()) for k, v in values.items()}
    knobs["method"] = np.int32([stacked(r.spec).index(r.spec.method) for r in recipes])
    d = np.asarray([recipe.spec.dim for recipe in recipes], precision())
    limits = np.int32(least), np.full(len(recipes), facts[0].rounds or stop.most, np.int32)
    return np.uint32([recipe.seed for recipe in recipes]), knobs, d, limits, data_of(spec)


def run_batch(
    recipes: list[Recipe], stop: Stop, report: Callable | None = None, cancelled: Callable[[], bool] = lambda: False
) -> list[dict[str, Any]]:
    """Run recipes of one program until each has settled; their results in order, {} for one that was cancelled.

    A result: metrics (name -> number or None where undefined; every diagnostic, and what the target's fact `measures`
    adds), steps, stopped ("converged", "steps" or "diverged"), changes (of the step size on the way, as in
    Recipe.changes), seconds (its share of what the steps took, their compile
    included). report: called with (index, result) as soon as one is known. Raises ValueError for recipes that do not
    share a program, that have changes of their own, or that together would not fit into memory.
    """
    programs = {program_of(recipe, stop) for recipe in recipes}
    if len(programs) != 1:
        raise ValueError(f"a batch has one program, not {len(programs)}; allowed: recipes with equal `program_of`.")
    if any(recipe.changes for recipe in recipes):
        raise ValueError("changes: a run that was played with cannot be swept; allowed: recipes without changes.")
    spec = recipes[0].spec
    check_memory(spec, len(recipes))
    more = TARGETS[spec.target].facts.measures

    with jax.default_matmul_precision("highest"):
        start, advance, finish = _compiled(programs.pop(), entries_of(spec), len(recipes))
        seeds, knobs, d, limits, data = arguments_of(recipes, stop)
        runs = start(seeds, knobs, d, data)
        results: list[dict[str, Any]] = [{} for _ in recipes]
        spent, blocks = 0.0, 1
        turns = takes_turns(advance.trace(runs, knobs, d, *limits, data, np.int32(blocks)).jaxpr.jaxpr)
        while not all(results) and not cancelled():
            before = time.perf_counter()
            with turn(turns):
                runs = advance(runs, knobs, d, *limits, data, np.int32(blocks))
                done = np.asarray(runs.done)
            blocks = max(1, min(200, int(blocks * CHUNK_SECONDS / (time.perf_counter() - before))))
            spent += time.perf_counter() - before
            fresh = [i for i, result in enumerate(results) if done[i] and not result]
            if fresh:
                particles = np.asarray(runs.state.particles)
                with turn(turns):
                    metrics = np.asarray(finish(runs, knobs, d, data), float)
                events, changes = np.asarray(runs.events), np.asarray(runs.changes)
                steps = np.asarray(runs.state.step)
            for i in fresh:
                step_size = recipes[i].knobs.get("method.step_size", spec.knobs()["method.step_size"].default)
                found = dict(zip(DIAGNOSTICS, metrics[i].tolist()))
                if more:
                    found |= more(replace(recipes[i].spec, capacity=particles.shape[1]), particles[i], recipes[i].knobs)
                results[i] = {
                    "metrics": {k: v if np.isfinite(v) else None for k, v in found.items()},
                    "steps": int(steps[i]),
                    "stopped": ENDS[done[i]],
                    "changes": [
                        [step, "method.step_size", step_size * 0.1**stage]
                        for step, stage in changes[i, : events[i]].tolist()
                    ],
                    "seconds": spent / len(recipes),
                }
                if report:
                    report(i, results[i])
    return results
