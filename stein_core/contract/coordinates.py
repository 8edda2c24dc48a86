"""Other coordinates for a target: theta = center + L z. SVGD and SMI are not invariant to them."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from stein_core.base.errors import unknown
from stein_core.contract.knobs import Option
from stein_core.contract.types import Target

KINDS = ("raw", "scaled", "whitened")
COORDINATES = Option(
    "coordinates",
    "raw",
    choices=KINDS,
    label="coordinates",
    help="raw; scaled: in standard deviations; whitened: uncorrelated too. Forces live in them",
)


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
    center, root = np.asarray(target.center, float), root_of(target, kind)
    inverse = np.linalg.inv(root)
    log_volume = float(np.linalg.slogdet(root)[1])

    def back(z):
        return jnp.asarray(center, float) + z @ jnp.asarray(root.T, float)

    def into(theta):
        return (theta - jnp.asarray(center, float)) @ jnp.asarray(inverse.T, float)

    def composed(density):
        return density and (lambda z: density(back(z)) + log_volume)

    minibatch, sample, unconstrain, functions = target.minibatch, target.sample, target.unconstrain, target.functions
    start, moved = target.start, lambda points: None if points is None else np.asarray(into(np.asarray(points, float)))
    covariance = _covariance(target)
    covariance = None if covariance is None else inverse @ covariance @ inverse.T
    diagonal = covariance is not None and np.allclose(covariance, np.diag(np.diagonal(covariance)), atol=1e-9)
    size = 4.5 if target.note or target.variance is None else 4.0
    names = target.coordinates if kind == "scaled" else [f"z{i + 1}" for i in range(target.dim)]
    return replace(
        target,
        log_density=composed(target.log_density),
        log_joint=composed(target.log_joint),
        minibatch=minibatch and (lambda key, joint: composed(minibatch(key, joint))),
        center=np.zeros(target.dim),
        scale=np.ones(target.dim),
        extent=(-size, size, -size, size),
        coordinates=tuple(f"{name} ({kind})" for name in names),
        constrain=lambda z: target.constrain(back(z)),
        unconstrain=unconstrain and (lambda values: into(unconstrain(values))),
        sample=sample and (lambda key, n: into(sample(key, n))),
        mean=moved(target.mean),
        start=start and (lambda key, n: into(start(key, n))),
        reference=moved(target.reference),
        mode_centers=moved(target.mode_centers),
        variance=None if covariance is None else np.diagonal(covariance),
        covariance=None if diagonal else covariance,
        log_normalizer=target.log_normalizer,
        root=None,
        modes=(),
        functions=functions
        and functions._replace(
            outputs=lambda z, x: functions.outputs(back(z), x),
            log_prior=lambda z: functions.log_prior(back(z)) + log_volume,
            prior_sample=lambda key, n: into(functions.prior_sample(key, n)),
        ),
        remake=target.remake and (lambda **arguments: precondition(target.remake(**arguments), kind)),
    )


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
