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
from stein_core.contract.registry import Entry
from stein_core.contract.types import Array


class Mode(NamedTuple):
    """A local maximum of a density.

    Args:
        place: (d,).
        root: (d, d) R with R R^T the inverse of the curvature there.
        share: its part of the mass of all modes, by Laplace's approximation.
    """

    place: np.ndarray
    root: np.ndarray
    share: float


@dataclass(frozen=True, eq=False)
class Target:
    """A posterior: a log density on R^d, and what is known about it. Two targets are equal only if they are one object.

    Args:
        log_density: theta (d,) -> scalar, log p(theta, data) on the unconstrained space *with* the log-Jacobian. It
            need not be normalised.
        center, scale: (d,) rough location and scale. Particles start there, and the stage shows that region.
        extent: (x0, x1, y0, y1) of the stage in the first two coordinates.
        coordinates: d names.
        constrain: theta (d,) -> dict of named values in the model's own space.
        log_joint: log_density without the log-Jacobian; None if nothing is constrained, for then they are equal.
        sample: (key, n) -> (n, d) exact draws, or None.
        mean, variance: exact (d,) moments, or None.
        covariance: the exact (d, d) matrix if coordinates are correlated. None means diagonal, with `variance`.
        log_normalizer: log of the integral of exp(log_density); None without a closed form.
        functions: what theta means as a function, for regressions and networks; or None.
        minibatch: (key, joint) -> (theta (d,) -> scalar), an unbiased estimate of log_density, or of log_joint if
            `joint`, from a few rows of the data; or None. A step takes one for all particles and draws.
        data: the arrays that log_density reads, with `remake`: data -> this Target with other arrays. They then are
            arguments of compiled programs, not constants. None: log_density keeps its own.
        unconstrain: dict of named values -> theta, the inverse of `constrain`; or None.
        root: (d, d) R with R R^T a rough covariance, for `precondition`; None if none is known.
        start: (key, n) -> (n, d) points at which particles start, for a model whose paper says where; None: normal
            around `center`. The knobs of the start scale and shift both.
        reference: (k, d) draws of long chains, to compare with; None if there are none. They are not exact.
        mode_centers: (k, d) centres of modes that lie apart, or None.
        note: what is doubtful about `center` and `scale`, in plain sentences, or "".
        modes: local maxima that the search for the start has found, the highest first, if a normal fits there.
        name: what reports call it, or "".
    """

    log_density: Callable[[Array], Array]
    center: np.ndarray
    scale: np.ndarray
    extent: tuple[float, float, float, float]
    coordinates: tuple[str, ...]
    constrain: Callable[[Array], dict[str, Array]]
    log_joint: Callable[[Array], Array] | None = None
    sample: Callable[[Array, int], Array] | None = None
    mean: np.ndarray | None = None
    variance: np.ndarray | None = None
    covariance: np.ndarray | None = None
    log_normalizer: float | None = None
    functions: Functions | None = None
    minibatch: Callable[[Array, bool], Callable[[Array], Array]] | None = None
    data: Any = None
    remake: Callable[..., Target] | None = None
    knobs: tuple[Knob, ...] = ()
    unconstrain: Callable[[dict[str, Array]], Array] | None = None
    root: np.ndarray | None = None
    start: Callable[[Array, int], Array] | None = None
    mode_centers: np.ndarray | None = None
    reference: np.ndarray | None = None
    note: str = ""
    modes: tuple[Mode, ...] = ()
    name: str = ""

    @cached_property
    def entry(self) -> Entry:
        """Return the registry entry of an unnamed target: a Spec takes a Target as well as a registered name. It has
        the option `coordinates` if its covariance is known, at least roughly."""
        takes_data = None if self.data is None else lambda **options: self.data
        facts = TargetFacts(dims=(self.dim, self.dim), default_dim=self.dim, data=takes_data)
        options = (COORDINATES,) if self.root is not None or self.variance is not None else ()

        def make(dim, *, coordinates="raw", **arguments):
            return precondition(self.remake(**arguments) if arguments else self, coordinates)

        return Entry(repr(self), "Own target", make, "", "A target without a name.", self.knobs, facts, options)

    def __repr__(self) -> str:
        names = ", ".join(self.coordinates[:3])
        return f"<Target of {self.dim} coordinates: {names}{', ...' * (self.dim > 3)}>"

    @property
    def dim(self) -> int:
        """Return the number of coordinates of theta."""
        return len(self.center)


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
        root, inverse: (d, d) L and its inverse.
        log_volume: log |det L|.
    """

    center: Array
    root: Array
    inverse: Array
    log_volume: Array | float

    def back(self, z):
        """Return theta (..., d) of z (..., d)."""
        return jnp.asarray(self.center, float) + z @ jnp.asarray(self.root.T, float)

    def into(self, theta):
        """Return z (..., d) of theta (..., d)."""
        return (theta - jnp.asarray(self.center, float)) @ jnp.asarray(self.inverse.T, float)


def precondition(target: Target, kind: str) -> Target:
    """Return a target in the coordinates z of theta = center + L z.

    L is the identity for "raw", diag(scale) for "scaled", and a root of the target's covariance for "whitened". The
    covariance is exact if it is known, else that of `target.root`, and rough. A kernel compares distances of z, and all
    forces, variances and discrepancies are those of z. `constrain` and functions still return the model's own values.

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
    at = _affine(target, kind)
    return replace(
        target,
        **_known(target, at, kind),
        **_densities(target, at),
        remake=target.remake and (lambda **arguments: precondition(target.remake(**arguments), kind)),
    )


def movable(target: Target, kind: str) -> Target:
    """Return `precondition(target, kind)` with center and L among its data.

    They are then arguments of compiled programs, so that a program serves other coordinates too: see `Stepper.sharing`.
    """
    at, given = _affine(target, kind), target.data is not None

    def remake(data, **knobs):
        own = {"data": data["own"]} if given else {}
        of = target.remake(**own, **knobs) if own or knobs else target
        return replace(moved, **_densities(of, data["affine"]))

    moved = replace(
        precondition(target, kind), data={"affine": at} | ({"own": target.data} if given else {}), remake=remake
    )
    return moved


def _affine(target: Target, kind: str) -> Affine:
    """Return the map of coordinates of that kind."""
    root = root_of(target, kind)
    return Affine(np.asarray(target.center, float), root, np.linalg.inv(root), np.float64(np.linalg.slogdet(root)[1]))


def _densities(target: Target, at: Affine) -> dict[str, Any]:
    """Return the functions of a target as functions of z. `at` may be traced."""

    def composed(density):
        return density and (lambda z: density(at.back(z)) + at.log_volume)

    minibatch, sample, unconstrain, functions = target.minibatch, target.sample, target.unconstrain, target.functions
    return {
        "log_density": composed(target.log_density),
        "log_joint": composed(target.log_joint),
        "minibatch": minibatch and (lambda key, joint: composed(minibatch(key, joint))),
        "constrain": lambda z: target.constrain(at.back(z)),
        "unconstrain": unconstrain and (lambda values: at.into(unconstrain(values))),
        "sample": sample and (lambda key, n: at.into(sample(key, n))),
        "start": target.start and (lambda key, n: at.into(target.start(key, n))),
        "functions": functions
        and functions._replace(
            outputs=lambda z, x: functions.outputs(at.back(z), x),
            log_prior=lambda z: functions.log_prior(at.back(z)) + at.log_volume,
            prior_sample=lambda key, n: at.into(functions.prior_sample(key, n)),
        ),
    }


def _known(target: Target, at: Affine, kind: str) -> dict[str, Any]:
    """Return what is known of a target, in coordinates of that kind."""
    covariance = _covariance(target)
    covariance = None if covariance is None else at.inverse @ covariance @ at.inverse.T
    diagonal = covariance is not None and np.allclose(covariance, np.diag(np.diagonal(covariance)), atol=1e-9)
    size = 4.5 if target.note or target.variance is None else 4.0
    names = target.coordinates if kind == "scaled" else [f"z{i + 1}" for i in range(target.dim)]
    places = {name: getattr(target, name) for name in ("mean", "reference", "mode_centers")}
    return {
        **{k: None if v is None else np.asarray(at.into(np.asarray(v, float))) for k, v in places.items()},
        "center": np.zeros(target.dim),
        "scale": np.ones(target.dim),
        "extent": (-size, size, -size, size),
        "coordinates": tuple(f"{name} ({kind})" for name in names),
        "variance": None if covariance is None else np.diagonal(covariance),
        "covariance": None if diagonal else covariance,
        "root": None,
        "modes": (),
    }


def in_raw(target: Target, kind: str, z: np.ndarray) -> np.ndarray:
    """Return theta (..., d) of z (..., d), coordinates of `precondition(target, kind)`."""
    center = 0.0 if kind == "raw" else np.asarray(target.center, float)
    return center + z @ root_of(target, kind).T


def _covariance(target: Target) -> np.ndarray | None:
    """Return the exact covariance (d, d), or None."""
    if target.covariance is not None:
        return np.asarray(target.covariance, float)
    return None if target.variance is None else np.diag(np.asarray(target.variance, float))


def root_of(target: Target, kind: str) -> np.ndarray:
    """Return L (d, d) of `precondition`, which also says what the arguments are."""
    if kind == "raw":
        return np.eye(target.dim)
    if kind == "scaled":
        exact = _covariance(target)
        return np.diag(np.asarray(target.scale, float) if exact is None else np.sqrt(np.diagonal(exact)))
    if (exact := _covariance(target)) is not None:
        return np.linalg.cholesky(exact)
    if target.root is None:
        raise ValueError(
            f"coordinates = 'whitened' needs a covariance, which {target} does not have; allowed: raw, scaled."
        )
    return np.asarray(target.root, float)
