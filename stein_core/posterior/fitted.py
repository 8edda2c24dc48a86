"""A fitted posterior: the draws of a run, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.arviz_api import from_groups
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import GUIDES, METHODS, Entry
from stein_core.contract.spec import Options
from stein_core.contract.target import Target
from stein_core.contract.types import Frame
from stein_core.runs.assembly import guide_of, problem_of
from stein_core.runs.cache import alone
from stein_core.runs.force_left import force_left
from stein_core.targets.own.density import in_precision_of, log_densities

DRAWS = 4000  # of a mixture


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """Hold a fitted posterior.

    Args:
        target: the posterior, in its own coordinates theta.
        draws: (n, d) thetas: of the mixture of guides, or the particles of a method of points.
        log_q: (n,) log density of the mixture at the draws, normalised; None for points.
        recipe: of the last round. Its target is the posterior in standardised coordinates z.
        frame: where it ended, in z; None if only its particles are known.
        rest: the force that is left, see `runs.force_left`; None if that says nothing.
        history: round, step, step size and root mean square force of each look.
        rounds: how many runs, in other coordinates or one after the other.
        consistent: whether the fit found the means and spreads that the last coordinates say.
        seconds: that it took.
        note: what is doubtful or special about target and fit, or "".
        gradients: of the log density that were computed: for the start, the rounds, and to judge them.
    """

    target: Target
    draws: np.ndarray
    log_q: np.ndarray | None
    recipe: Recipe
    frame: Frame | None = None
    rest: float | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    rounds: int = 1
    consistent: bool = True
    seconds: float = 0.0
    note: str = ""
    gradients: int = 0

    def __repr__(self) -> str:
        of, method = self.target.name or self.target, METHODS[self.recipe.spec.method].label
        return f"<Fit of {of} by {method}: {len(self.draws):,} draws of {self.target.dim} coordinates>"

    @property
    def values(self) -> dict[str, np.ndarray]:
        """Return the draws as the model's own sites, deterministic ones included: name -> (n, ...)."""
        return values_of(self.target, self.draws)

    def to_arviz(self):
        """Return the draws as ArviZ's InferenceData (1.x: DataTree), with log densities in `sample_stats`."""
        chain = {name: rows[None] for name, rows in self.values.items()}
        stats = {"lp": log_densities(self.target, self.draws)[0][None]}
        if self.log_q is not None:
            stats["log_q"] = self.log_q[None]
        return from_groups({"posterior": chain, "sample_stats": stats})


def values_of(target: Target, draws: np.ndarray) -> dict[str, np.ndarray]:
    """Return draws (n, d) of theta as the model's own sites, deterministic ones included: name -> (n, ...)."""
    with in_precision_of(target):
        return {name: np.asarray(rows) for name, rows in target.constrain(jnp.asarray(draws, float)).items()}


def draws_of(recipe: Recipe, particles: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return draws (n, d) in z, and their log densities (n,) under the mixture; None for points."""
    spec, knobs = recipe.spec, recipe.knobs.traced
    psi = jnp.asarray(particles, float)
    if not spec.has_density:
        return np.asarray(guide_of(spec, knobs).location(psi), float), None
    entry = GUIDES[spec.guide]
    own = {knob.name: knobs[f"guide.{knob.name}"] for knob in entry.knobs}
    z, log_q = _mixture(entry, spec.dim, Options(spec.options_of("guide")))(psi, own, np.uint32(seed))
    return np.asarray(z), np.asarray(log_q)


@lru_cache(maxsize=16)
def _mixture(entry: Entry, dim: int, options: Options) -> Callable:
    """Compile (particles (m, p), knobs of the guide, seed) -> draws (n, d) and their log densities (n,)."""

    def drawn(psi, own, seed):
        guide = entry.make(dim, None, **options, **own)
        which = jnp.arange(DRAWS) % len(psi)  # as many of each guide
        eps = jax.random.normal(jax.random.key(seed), (DRAWS, dim + guide.noise))
        z = jax.vmap(guide.sample)(psi[which], eps)
        return z, jax.nn.logsumexp(guide.log_density(psi, z), axis=1) - jnp.log(len(psi))

    return jax.jit(drawn)


def fit_of(recipe: Recipe, particles: np.ndarray, seed: int = 0, step: int | None = None) -> Fit:
    """Return what a run has reached as a Fit, to diagnose it.

    Args:
        recipe: of the run, with the knobs that it has now.
        particles: (m, p) of its frame.
        seed: of the draws from the mixture.
        step: of its frame. None if it is not known: then nothing is said of the force that is left.

    Raises:
        ValueError: particles of another shape, or that are not finite.
    """
    particles, spec = np.asarray(particles, float), recipe.spec
    with jax.enable_x64():
        problem = problem_of(spec, recipe.knobs.traced)
        size = problem.guide.init(jnp.zeros((1, spec.dim))).shape[1]
        if particles.ndim != 2 or particles.shape[1] != size or not len(particles) or not np.isfinite(particles).all():
            raise ValueError(f"particles have shape {particles.shape}; allowed: (m, {size}), finite numbers.")
        draws, log_q = draws_of(recipe, particles, seed)
    rest = None if step is None else _rest(recipe, particles, step)
    target = replace(problem.target, name=problem.target.name or str(spec.target))
    return Fit(target, draws, log_q, recipe, rest=rest, history=[] if step is None else [{"round": 1, "step": step}])


def _rest(recipe: Recipe, particles: np.ndarray, step: int) -> float | None:
    """Return the force that is left on these particles (m, p) after so many steps of a recipe."""
    counted = "method.particles" in recipe.spec.knobs()
    knobs = {**recipe.knobs, "method.particles": len(particles)} if counted else recipe.knobs
    stepper = alone(recipe.spec)
    state = stepper.reset(recipe.seed, knobs)
    rows = jnp.asarray(particles, state.particles.dtype)
    state = state._replace(step=jnp.int32(step), particles=state.particles.at[: len(rows)].set(rows))
    return force_left(stepper, state, knobs)
