"""A posterior, what is known about it, and other coordinates for it: theta = center + L z.

SVGD and SMI are not invariant to coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Callable, NamedTuple

import jax.numpy as jnp
import numpy as np

from stein_core.base.errors import unknown
from stein_core.contract.facts import TargetFacts
from stein_core.contract.functions import Functions
from stein_core.contract.knobs import Knob, Option
from stein_core.contract.known import Start, Truth
from stein_core.contract.registry import Entry
from stein_core.contract.types import Array


@dataclass(frozen=True, eq=False)
class Target:
    """A posterior: a log density on R^d, where to start, and what is known. Two are equal only if they are one object.

    Args:
        log_density: theta (d,) -> scalar, log p(theta, data) on the unconstrained space *with* the log-Jacobian. It
            need not be normalised.
        start: where particles start.
        coordinates: d names.
        constrain: theta (d,) -> dict of named values in the model's own space.
        unconstrain: dict of named values -> theta, the inverse of `constrain`; or None.
        truth: what is known exactly.
        extent: (x0, x1, y0, y1) of the stage in the first two coordinates; None: that of the start.
        log_joint: log_density without the log-Jacobian; None if nothing is constrained, for then they are equal.
        minibatch: (key, joint) -> (theta (d,) -> scalar), an unbiased estimate of log_density, or of log_joint if
            `joint`, from a few rows of the data; or None. A step takes one for all particles and draws.
        functions: what theta means as a function, for regressions and networks; or None.
        log_prior: theta -> scalar, the part of log_density without data; None if the target does not tell them apart.
        blankets: (d, d) booleans, whether j is in the Markov blanket of i; None: it follows from the density.
        data: the arrays that log_density reads, with `remake`: data -> this Target with other arrays. They then are
            arguments of compiled programs, not constants. None: log_density keeps its own.
        knobs: of a Target without a name.
        name: what reports call it, or "".
    """

    log_density: Callable[[Array], Array]
    start: Start
    coordinates: tuple[str, ...]
    constrain: Callable[[Array], dict[str, Array]]
    unconstrain: Callable[[dict[str, Array]], Array] | None = None
    truth: Truth = Truth()
    extent: tuple[float, float, float, float] | None = None
    log_joint: Callable[[Array], Array] | None = None
    minibatch: Callable[[Array, bool], Callable[[Array], Array]] | None = None
    functions: Functions | None = None
    log_prior: Callable[[Array], Array] | None = None
    blankets: Any = None
    data: Any = None
    remake: Callable[..., Target] | None = None
    knobs: tuple[Knob, ...] = ()
    name: str = ""

    def __post_init__(self):
        if self.extent is None:
            object.__setattr__(self, "extent", self.start.extent)

    @cached_property
    def entry(self) -> Entry:
        """Return the registry entry of an unnamed target: a Spec takes a Target as well as a registered name. It has
        the option `coordinates` if its covariance is known, at least roughly."""
        takes_data = None if self.data is None else lambda **options: self.data
        facts = TargetFacts(dims=(self.dim, self.dim), default_dim=self.dim, data=takes_data)
        options = (COORDINATES,) if self.start.root is not None or self.truth.variance is not None else ()

        def make(dim, *, coordinates="raw", **arguments):
            return precondition(self.remake(**arguments) if arguments else self, coordinates)

        return Entry(repr(self), "Own target", make, "", "A target without a name.", self.knobs, facts, options)

    def __repr__(self) -> str:
        names = ", ".join(self.coordinates[:3])
        return f"<Target of {self.dim} coordinates: {names}{', ...' * (self.dim > 3)}>"

    @property
    def dim(self) -> int:
        """Return the number of coordinates of theta."""
        return len(self.start.center)


LARGE = 2000  # coordinates, above which no covariance of them is made
KINDS = ("raw", "scaled", "whitened")
COORDINATES = Option(
    "coordinates",
    "raw",
    choices=KINDS,
    label="coordinates",
    help="raw; scaled: in standard deviations; whitened: uncorrelated too. Forces live in them",
)


class Affine(NamedTuple):
    """The map theta = center + L z.

    Args:
        center: (d,).
        root, inverse: (d, d) L and its inverse; (d,) their diagonals if L is diagonal and large.
        log_volume: log |det L|.
    """

    center: Array
    root: Array
    inverse: Array
    log_volume: Array | float

    def back(self, z):
        """Return theta (..., d) of z (..., d)."""
        return jnp.asarray(self.center, float) + times(z, self.root, jnp)

    def into(self, theta):
        """Return z (..., d) of theta (..., d)."""
        return times(theta - jnp.asarray(self.center, float), self.inverse, jnp)


def times(rows, root, of=np):
    """Return rows (..., d) times L^T, of L (d, d) or of its diagonal (d,)."""
    root = of.asarray(root, float)
    return rows * root if root.ndim == 1 else rows @ root.T


def log_volume(root: np.ndarray) -> float:
    """Return log |det L| of L (d, d) or of its diagonal (d,)."""
    return float(np.sum(np.log(np.abs(root))) if root.ndim == 1 else np.linalg.slogdet(root)[1])


def precondition(target: Target, kind: str) -> Target:
    """Return a target in the coordinates z of theta = center + L z.

    L is the identity for "raw", diag(scale) for "scaled", and a root of the target's covariance for "whitened". The
    covariance is exact if it is known, else that of `target.start.root`, and rough. A kernel compares distances of z,
    and all forces, variances and discrepancies are those of z. `constrain` and functions still return the model's own
    values.

    Args:
        target: what to transform.
        kind: "raw", "scaled" or "whitened".

    Raises:
        UnknownName: another kind.
        ValueError: "whitened" for a target whose covariance is not known, not even roughly.
    """
    if kind not in KINDS:
        raise unknown("coordinates", kind, KINDS)
    if kind == "raw":
        return target
    at, remake = _affine(target, kind), target.remake
    return replace(
        _seen(replace(target, **_numbers(target, at, kind)), target, at),
        remake=remake and (lambda **arguments: precondition(remake(**arguments), kind)),
    )


def movable(target: Target, kind: str) -> Target:
    """Return `precondition(target, kind)` with center and L among its data.

    They are then arguments of compiled programs, so that a program serves other coordinates too: see `Stepper.sharing`.
    """
    at, given = _affine(target, kind), target.data is not None

    def remake(data, **knobs):
        own = {"data": data["own"]} if given else {}
        of = target.remake(**own, **knobs) if own or knobs else target
        return _seen(moved, of, data["affine"])

    moved = replace(
        precondition(target, kind), data={"affine": at} | ({"own": target.data} if given else {}), remake=remake
    )
    return moved


def _affine(target: Target, kind: str) -> Affine:
    """Return the map of coordinates of that kind."""
    root = root_of(target, kind)
    center = np.asarray(target.start.center, float)
    return Affine(center, root, 1 / root if root.ndim == 1 else np.linalg.inv(root), np.float64(log_volume(root)))


def _seen(moved: Target, target: Target, at: Affine) -> Target:
    """Return `moved` with the functions of a target as functions of z. `at` may be traced."""

    def composed(density):
        return density and (lambda z: density(at.back(z)) + at.log_volume)

    def drawn(draw):
        return draw and (lambda key, n: at.into(draw(key, n)))

    minibatch, unconstrain, functions = target.minibatch, target.unconstrain, target.functions
    return replace(
        moved,
        log_density=composed(target.log_density),
        log_joint=composed(target.log_joint),
        log_prior=composed(target.log_prior),
        minibatch=minibatch and (lambda key, joint: composed(minibatch(key, joint))),
        constrain=lambda z: target.constrain(at.back(z)),
        unconstrain=unconstrain and (lambda values: at.into(unconstrain(values))),
        start=replace(moved.start, draw=drawn(target.start.draw)),
        truth=replace(moved.truth, sample=drawn(target.truth.sample)),
        functions=functions
        and functions._replace(
            outputs=lambda z, x: functions.outputs(at.back(z), x),
            log_prior=lambda z: functions.log_prior(at.back(z)) + at.log_volume,
            prior_sample=lambda key, n: at.into(functions.prior_sample(key, n)),
        ),
    )


def _numbers(target: Target, at: Affine, kind: str) -> dict[str, Any]:
    """Return start, truth, names and extent of a target, in coordinates of that kind."""
    truth, covariance = target.truth, target.truth.matrix
    inverse = np.diag(at.inverse) if at.inverse.ndim == 1 and covariance is not None else at.inverse
    covariance = None if covariance is None else inverse @ covariance @ inverse.T
    diagonal = covariance is not None and np.allclose(covariance, np.diag(np.diagonal(covariance)), atol=1e-9)
    size = 4.5 if target.start.note or truth.variance is None else 4.0
    names = target.coordinates if kind == "scaled" else [f"z{i + 1}" for i in range(target.dim)]
    places = {name: getattr(truth, name) for name in ("mean", "reference", "mode_centers")}
    return {
        "start": Start(np.zeros(target.dim), np.ones(target.dim), note=target.start.note),
        "truth": Truth(
            **{k: None if v is None else np.asarray(at.into(np.asarray(v, float))) for k, v in places.items()},
            variance=None if covariance is None else np.diagonal(covariance),
            covariance=None if diagonal else covariance,
            log_normalizer=truth.log_normalizer,
        ),
        "extent": (-size, size, -size, size),
        "coordinates": tuple(f"{name} ({kind})" for name in names),
        "blankets": target.blankets if kind == "scaled" else None,
    }


def in_raw(target: Target, kind: str, z: np.ndarray) -> np.ndarray:
    """Return theta (..., d) of z (..., d), coordinates of `precondition(target, kind)`."""
    center = 0.0 if kind == "raw" else np.asarray(target.start.center, float)
    return center + times(z, root_of(target, kind))


def root_of(target: Target, kind: str) -> np.ndarray:
    """Return L (d, d) of `precondition`, which also says what the arguments are.

    If L is diagonal and above LARGE coordinates, its diagonal (d,) is returned.
    """
    if kind in ("raw", "scaled"):
        exact = None if kind == "raw" else target.truth.matrix
        scale = np.ones(target.dim) if kind == "raw" else np.asarray(target.start.scale, float)
        scale = scale if exact is None else np.sqrt(np.diagonal(exact))
        return scale if target.dim > LARGE else np.diag(scale)
    if (exact := target.truth.matrix) is not None:
        return np.linalg.cholesky(exact)
    if target.start.root is None:
        raise ValueError(
            f"coordinates = 'whitened' needs a covariance, which {target} does not have; allowed: raw, scaled."
        )
    return np.asarray(target.start.root, float)
