"""Exact fixed points of SMI with two diagonal normal guides on N(0, I), by quadrature.

The pair splits along one axis: locations +a and -a on it, standard deviation s on it, and across it location 0 and
standard deviation 1, where the target is met exactly. Both guides have the same u, so |psi_1 - psi_2| = 2a, and with

    G(theta) = grad log p(theta) - grad log q_mix(theta) = -theta + (theta - a tanh(a theta / s^2)) / s^2,
    theta = a + s eps,  u = (2a)^2 / (2 sigma^2),  k = f(u)

the force of `stein_core.forces.interaction` vanishes where

    scale:     E[G eps] = 0
    location:  c (1 - f(u)) E[G] = 2 alpha a f'(u) / sigma^2,     c = 1 for force scale `paper`, 2 for `numpyro`.

For every a the first equation has one solution s(a), so both are one equation in a.

Forces that vanish need not hold a run. `stable` says whether all eigenvalues of the force's Jacobian are negative. The
reflections of single axes split the Jacobian into blocks: 4 x 4 for (location, u) of both guides on the axis, and the
same block again for every axis across. So two dimensions stand for all larger ones. The largest alpha that holds, RBF:

    rule            force scale     d = 1     d >= 2
    `median_log`    `paper`         2.136     1.139
    `median`        `paper`         2.544     1.357
    `numpyro`       `paper`         8.010     4.273
    `median_log`    `numpyro`       4.272     2.278
    `numpyro`       `numpyro`       16.02     8.546

In d >= 2 the mode across the axis grows first: one guide narrows on an axis across, the other widens there. Both
locations then go to the centre.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Mapping, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax

from stein_core.contract.registry import BANDWIDTHS, FORCE_SCALES, KERNELS
from stein_core.contract.spec import Spec
from stein_core.forces.kernels import bandwidth
from stein_core.forces.sums import is_inner

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(120)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
ACROSS, WEIGHTS_ACROSS = np.polynomial.hermite_e.hermegauss(12)  # the integrand is a quadratic there, but for NUDGE^2
WEIGHTS_ACROSS = WEIGHTS_ACROSS / WEIGHTS_ACROSS.sum()
SEARCHED = np.geomspace(1e-3, 1e3, 40)  # where a is looked for; alpha is at most 1000, and a^2 grows like it
ROUNDING = 1e-9  # a force below it is none
NUDGE = 1e-3  # of the Jacobian's differences: the kernel is in float32


class FixedPoint(NamedTuple):
    """A fixed point of two guides.

    Args:
        location: a. The guides are at +a and -a on one axis.
        scale: their standard deviation on that axis; across it is 1.
        stable: whether runs that come near stay there, in the spec's dimension.
    """

    location: float
    scale: float
    stable: bool

    @property
    def variance(self) -> float:
        """Return the total variance of the mixture on the axis of the split; the target's is 1."""
        return self.location**2 + self.scale**2


def why_none(spec: Spec, knobs: Mapping[str, Any]) -> str:
    """Return why `two_guides` does not apply, in a few words; empty if it does."""
    known = spec.knobs()
    if spec.method != "smi" or spec.guide != "normal" or spec.options["guide.density"] != "once":
        return "known only for SMI with normal guides"
    if spec.target != "gaussian":
        return "known only for the standard Gaussian"
    if knobs.get("method.particles", known["method.particles"].default) != 2:
        return "known only for two particles"
    if is_inner(KERNELS[knobs.get("kernel.name", known["kernel.name"].default)]):
        return "known only for kernels of the distance"
    return ""


def two_guides(spec: Spec, knobs: Mapping[str, Any]) -> FixedPoint | None:
    """Return the fixed point of `spec` under `knobs`; None if it is not known, and `why_none` says why.

    Without enough repulsion the guides meet: a = 0 and s = 1, ordinary variational inference.
    """
    if why_none(spec, knobs):
        return None
    names = ("kernel.name", "bandwidth.rule", "bandwidth.factor", "method.alpha", "method.force_scale")
    return _solve(spec.dim, *(knobs.get(name, spec.knobs()[name].default) for name in names))


@lru_cache(maxsize=1024)
def _solve(d: int, kernel: str, rule: str, factor: float, alpha: float, force_scale: str) -> FixedPoint:
    strength = float(FORCE_SCALES[force_scale].make(2.0))

    def interaction(square):
        """f and f' / sigma^2 at the squared distance of the two particles."""
        sigma = float(_sigma(BANDWIDTHS.index(rule), factor, square, 2 * d))
        f, slope = (float(v) for v in _profile(KERNELS[kernel].make, square / (2.0 * sigma**2)))
        return f, slope / sigma**2

    def force(a):
        f, slope = interaction(4.0 * a**2)
        gradient, _ = _gradient(a, scale_at(a))
        return strength * (1.0 - f) * gradient - 2.0 * alpha * a * slope - ROUNDING

    def field(psi):
        """Force on psi (2, 2, axes): of two guides the locations and the u. Twice that of `forces`."""
        one, other = psi
        f, slope = interaction(np.sum((one - other) ** 2))
        g, h = _gradients(psi)
        push = alpha * slope * (other - one)
        return np.stack([strength * (g + f * h) + push, strength * (h + f * g) - push])

    outward = [i for i, a in enumerate(SEARCHED) if force(a) > 0]
    if not outward:  # alpha = 0: the forces vanish there, and to first order around it
        return FixedPoint(0.0, 1.0, True)
    a = brentq(force, SEARCHED[outward[-1]], SEARCHED[outward[-1] + 1])
    s = scale_at(a)
    here = np.zeros((2, 2, min(d, 2)))
    here[:, 0, 0], here[:, 1] = (a, -a), np.log(np.e - 1.0)
    here[:, 1, 0] = np.log(np.expm1(s))
    return FixedPoint(a, s, bool(np.linalg.eigvals(_jacobian(field, here)).real.max() < 0))


def _jacobian(field, here: np.ndarray) -> np.ndarray:
    """Return the derivatives (size, size) of a field at `here`, by central differences."""
    steps = NUDGE * np.eye(here.size).reshape(here.size, *here.shape)
    return np.stack([(field(here + h) - field(here - h)).ravel() / (2.0 * NUDGE) for h in steps], axis=1)


def scale_at(a: float) -> float:
    """Return s(a), the standard deviation at which the scales feel no force, for locations +a and -a."""
    return brentq(lambda s: _gradient(a, s)[1], 1e-3, 1.0 + 1e-9)


def _gradient(a: float, s: float) -> tuple[float, float]:
    """Return E[G] and E[G eps] of the guide at +a."""
    theta = a + s * NODES
    g = -theta + (theta - a * np.tanh(a * theta / s**2)) / s**2
    return WEIGHTS @ g, WEIGHTS @ (g * NODES)


def _gradients(psi: np.ndarray) -> np.ndarray:
    """Return g (2, 2, axes) of two guides psi (2, 2, axes) on N(0, I): SMI's pathwise gradient by quadrature.

    The axis of the split comes first, then at most one axis across.
    """
    locations, us = psi[:, 0], psi[:, 1]
    scales = np.logaddexp(0.0, us)
    if psi.shape[2] == 1:
        eps, weights = NODES[:, None], WEIGHTS
    else:
        eps = np.stack(np.meshgrid(NODES, ACROSS, indexing="ij"), axis=-1).reshape(-1, 2)
        weights = np.outer(WEIGHTS, WEIGHTS_ACROSS).ravel()
    theta = locations[:, None] + scales[:, None] * eps  # (2, nodes, axes)
    standard = (theta[:, :, None] - locations) / scales  # (2, nodes, 2, axes): of each node under each guide
    shares = softmax(-0.5 * np.sum(standard**2, axis=-1) - np.sum(np.log(scales), axis=-1), axis=-1)
    g = -theta + np.sum(shares[..., None] * standard / scales, axis=2)
    return np.stack([weights @ g, weights @ (g * eps) * expit(us)], axis=1)


@partial(jax.jit, static_argnums=3)
def _sigma(rule, factor, square, p):
    squared = jnp.array([[0.0, 1.0], [1.0, 0.0]]) * square
    return bandwidth(jnp.asarray(rule), factor, squared, jnp.asarray(2.0), p)


@partial(jax.jit, static_argnums=0)
def _profile(profile, u):
    """Return f(u) and f'(u)."""
    return jax.jvp(profile, (u,), (1.0,))
