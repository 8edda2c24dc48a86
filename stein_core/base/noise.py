"""Normal noise whose first rows and coordinates do not depend on the number drawn."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.random import threefry2x32_p


def normal(key: Array, shape: tuple[int, ...], dim: int) -> Array:
    """Return (*shape, dim) standard normals. The first rows and coordinates are the same for every larger shape.

    The counter of JAX's own generator (threefry) is the pair (row // 2, coordinate).
    """
    count = math.prod(shape)
    # One long axis: a short one would be unrolled, which takes long to compile.
    row, coordinate = (jax.lax.broadcasted_iota(jnp.uint32, (-(-count // 2), dim), axis).reshape(-1) for axis in (0, 1))
    pairs = threefry2x32_p.bind(
        *[jnp.broadcast_to(half, row.shape) for half in jax.random.key_data(key)], row, coordinate
    )
    bits = jnp.stack([half.reshape(-1, dim) for half in pairs], axis=1).reshape(-1, dim)[:count]
    # 23 random bits as the fraction of a float in [1, 2), then to (-1, 1) and through the inverse error function.
    unit = jax.lax.bitcast_convert_type((bits >> 9) | jnp.uint32(0x3F800000), jnp.float32) - 1.0
    least = np.nextafter(np.float32(-1), np.float32(0))
    drawn = np.float32(2**0.5) * jax.lax.erf_inv(jnp.maximum(2.0 * unit - 1.0, least))
    return drawn.reshape(*shape, dim).astype(float)  # float64 has the draws of float32
