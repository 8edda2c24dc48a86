"""Whether a posterior may be improper: how its density falls along rays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.contract.target import Target
from stein_core.targets.own.density import in_precision_of, log_densities

FAR = (1e3, 1e6)  # scales from the center, at which the density is compared with that at the center
WEAKEST = 3  # directions of the smallest scores, beside the coordinates
LARGEST = 400  # coordinates, above which no ray is tried
TRIED = 4  # scores for each coordinate, if none are known
LOST = 1e6  # by which a log density that is higher far away says that the center is no place to look from
NAMED = 3  # coordinates of a direction that are named
SMALL = 0.3  # of the largest loading: smaller ones are not named


def in_words(loadings: np.ndarray, names: tuple[str, ...]) -> str:
    """Return a direction (d,) in words: "x1 - 0.8 x2". Coordinates with small loadings are left out."""
    most = np.argsort(-np.abs(loadings), kind="stable")[:NAMED]
    parts = loadings[most] / loadings[most[0]]
    said = ""
    for part, name in zip(parts, (names[j] for j in most)):
        if abs(part) > SMALL:
            factor = f"{abs(part):.1f} " if abs(part) < 0.95 else ""
            said += f" {'-' if part < 0 else '+'} {factor}{name}"
    return said.removeprefix(" + ")


def flat_direction(target: Target, scores: np.ndarray | None = None) -> str:
    """Return along what the density of a target does not fall, in words, or "" if it falls everywhere that was tried.

    Along a ray a density of finite mass falls faster than 1 / distance, but for rare shapes. The rays are the
    coordinates and the directions of the smallest scores, both ways from `center`. Mass that is infinite along no
    straight line is not seen.

    Args:
        target: of at most LARGEST coordinates, else no ray is tried.
        scores: (n, d) at some draws; None: they are computed around the center.
    """
    if target.dim > LARGEST:
        return ""
    center, scale = np.asarray(target.start.center, float), np.asarray(target.start.scale, float)
    if scores is None:
        some = np.random.default_rng(0).standard_normal((TRIED * target.dim, target.dim))
        scores = log_densities(target, center + some * scale)[1]
    known = scores[np.isfinite(scores).all(axis=1)] * scale
    weak = np.linalg.eigh(known.T @ known)[1].T[:WEAKEST]
    rays = np.concatenate([np.eye(target.dim), weak])
    both = np.concatenate([rays, -rays])
    places = np.concatenate([np.zeros((1, target.dim)), *(far * both for far in FAR)])
    with in_precision_of(target):
        at = jnp.asarray(center + scale * places, float)
        found = jax.jit(lambda rows: jax.lax.map(target.log_density, rows, batch_size=50))(at)
    found = np.asarray(found, float)
    if np.nanmax(found) - found[0] > LOST:
        return ""
    with np.errstate(invalid="ignore"):
        near, far = found[1:].reshape(len(FAR), -1)
        falls = np.stack([found[0] - near, found[0] - far, near - far])  # the center may be a poor place
    flat = (falls < np.log([*FAR, FAR[1] / FAR[0]])[:, None]).all(axis=0)  # False for NaN
    return in_words(both[np.argmax(flat)], target.coordinates) if flat.any() else ""


def said(along: str) -> str:
    """Return what follows from a direction along which a density does not fall."""
    return (
        f"The posterior may be improper: along {along} its density does not fall, so it may have no finite mass and no "
        "draws. Give these parameters a prior that falls on both sides, for example a normal one."
    )
