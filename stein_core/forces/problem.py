"""What a method may use: a target, a guide, and the settings of the interaction."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp

from stein_core.base.noise import normal
from stein_core.base.streams import Stream
from stein_core.contract.target import Target
from stein_core.contract.types import Array, Guide


class Problem(NamedTuple):
    """What a method may use: the target, the guide, and the traced settings of the interaction.

    Args:
        target, guide: the posterior, and what a particle stands for.
        optimizer: an optax transformation, made with step_size.
        draws: static number of draws per particle and step.
        m: number of active particles.
        kernel, rule, factor: traced kernel index, bandwidth rule index and bandwidth factor.
        step_size: traced step size.
        start: (key, n) -> initial particles (n, p).
        size: d -> p of the guide.
        mask: (target.dim,) 1 for a coordinate and 0 for padding, or None without padding. Padded coordinates stay at 0
            and feel no force.
        start_normal: mean and sd (target.dim,) of the normal from which `start` draws; None if it draws from another.
        optimize: step size -> an optax transformation like `optimizer`, for a method that has a second one.
        paired: whether normals are drawn in pairs, eps and -eps.
        near: kernel values that sums over many particles may leave out, see `forces.near`; None for exact sums.
        mesh: devices that share the rows of particles, see `base.devices`; None for one device.
    """

    target: Target
    guide: Guide
    optimizer: object
    draws: int
    m: Array
    kernel: Array
    rule: Array
    factor: Array
    step_size: Array
    start: object
    size: Callable[[Any], Any]
    mask: Array | None = None
    start_normal: tuple[Array, Array] | None = None
    optimize: Callable[[Any], Any] | None = None
    paired: bool = False
    mesh: jax.sharding.Mesh | None = None
    near: float | None = None

    @property
    def d(self):
        """Return the dimension of theta without padding; traced if there is padding."""
        return self.target.dim if self.mask is None else jnp.sum(self.mask)

    @property
    def p(self):
        """Return the number of coordinates of a particle without padding; traced if there is padding."""
        return self.size(self.d)

    def normal(self, key: Array, shape: tuple[int, ...]) -> Array:
        """Return (*shape, target.dim) standard normal noise, 0 in padded coordinates."""
        eps = normal(key, shape, self.target.dim)
        return eps if self.mask is None else eps * self.mask

    def draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        """Return the normals that draws of the guide take, (*shape, target.dim + guide.noise).

        If they are paired, the second half along the last axis of `shape` is minus the first; of an odd number the last
        one has no partner.
        """
        if self.paired and shape[-1] > 1:
            half = self._replace(paired=False).draw(key, (*shape[:-1], (shape[-1] + 1) // 2))
            return jnp.concatenate([half, -half], axis=-2)[..., : shape[-1], :]
        eps = self.normal(key, shape)
        if not self.guide.noise:
            return eps
        return jnp.concatenate([eps, normal(jax.random.fold_in(key, Stream.GUIDE), shape, self.guide.noise)], axis=-1)

    def active(self, n: int) -> Array:
        """Return (n,) booleans: True for the first m rows."""
        return jnp.arange(n) < self.m

    def weights(self, n: int) -> Array:
        """Return (n,) weights: 1/m for active rows, 0 for spare ones."""
        return self.active(n) / self.m


class Gradients(NamedTuple):
    """Gradients of guides, with two bounds from the same draws. The bounds are NaN for point masses, which have no
    density.

    Args:
        guide: g (n, p).
        elbo: the mixture ELBO L(rho_m).
        component_elbo: L_up, the mean over the guides of their own ELBOs. L - L_up is the mutual information of theta
            and the guide's number, in [0, log m].
    """

    guide: Array
    elbo: Array
    component_elbo: Array


def log_density_of(target: Target, key: Array, joint: bool = False) -> Callable[[Array], Array]:
    """Return the log density that a step with this key uses: an estimate if the target has mini-batches."""
    if target.minibatch is not None:
        return target.minibatch(jax.random.fold_in(key, Stream.BATCH), joint)
    return target.log_joint if joint and target.log_joint is not None else target.log_density
