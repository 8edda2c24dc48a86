"""The median of the distances of pairs, found by counting: no sort, and the number of active particles is traced."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from stein_core.types import Array

LARGE = 256  # particles from which a pass over the pairs takes longer than what two limits cost more than one


class Pairs(NamedTuple):
    """Squared distances (n, n) between particles, of which the first m (traced) are active; n is 1 or even. p: number
    of coordinates of a particle."""

    squared: Array
    m: Array
    p: Array | int

    def median(self, power: float = 2.0, diagonal: bool = False) -> Array:
        """Median of r^power over active pairs i < j (or over the whole matrix, zeros included), then ^(2/power).

        Exact: the two middle order statistics are found by cutting in two or three the bit patterns of the floats (which
        for non-negative floats order as the numbers do), in at most 31 counting passes instead of a sort. 0 when there is no
        pair.
        """
        n = self.squared.shape[0]
        m = self.m.astype(jnp.int32)
        if n == 1:
            return jnp.float32(0.0)
        # Every pair once, in half a matrix: row i holds the pairs of i with later ones, and of n-1-i with later ones.
        row, column = jnp.arange(n // 2)[:, None], jnp.arange(n)[None, :]
        late = column > row
        folded = jnp.where(late, self.squared[: n // 2], self.squared[::-1, ::-1][: n // 2])
        inside = (jnp.where(late, column, n - 1 - column) < m) & (column != row)
        largest = jnp.iinfo(jnp.int32).max
        bits = jnp.where(inside, jax.lax.bitcast_convert_type(folded, jnp.int32), largest)
        count = m * m if diagonal else m * (m - 1)
        low_rank, high_rank = (count - 1) // 2, count // 2  # 0-based, among the entries of the whole matrix

        if n < LARGE:
            cuts = 1
            least = 0 if diagonal else jnp.maximum(jnp.min(bits), 0)  # a NaN may have a sign, and then negative bits
            ends = jnp.int32(least), jnp.max(jnp.where(inside, bits, 0))
        else:  # two limits are counted in one pass, over sixteen streams of memory
            cuts, ends = 2, (jnp.int32(0), jnp.int32(largest - 1))
            bits = jnp.pad(bits, ((0, -(n // 2) % 16), (0, 0)), constant_values=largest).reshape(16, -1, n)

        def total(entries):
            """One axis after the other, kept apart by a barrier: twice as fast on a CPU as one reduction."""
            while (entries := jnp.sum(entries, axis=0)).ndim:
                entries = jax.lax.optimization_barrier(entries)
            return entries

        def up_to(*limits):
            """For each limit, how many entries are no larger; two counts share an integer until rows are summed."""
            below = sum(jnp.where(bits <= limit, 1 << 16 * i, 0) for i, limit in enumerate(limits))
            below = jax.lax.optimization_barrier(jnp.sum(below, axis=0))
            counts = [below & 0xFFFF, below >> 16] if len(limits) > 1 else [below]
            return [2 * total(count) + (m if diagonal else 0) for count in counts]

        def narrow(interval):
            low, high = interval
            limits = [low + (high - low) // (cuts + 1) * (i + 1) for i in range(cuts)]
            enough = [number > low_rank for number in up_to(*limits)]
            for limit, reached in zip(limits, enough):
                low = jnp.where(reached, low, limit + 1)
            for limit, reached in zip(limits[::-1], enough[::-1]):
                high = jnp.where(reached, limit, high)
            return low, high

        low_bits, _ = jax.lax.while_loop(lambda interval: interval[0] < interval[1], narrow, ends)
        above = jnp.min(jnp.where(bits > low_bits, bits, largest))
        high_bits = jnp.where(up_to(low_bits)[0] > high_rank, low_bits, above)
        low, high = (jax.lax.bitcast_convert_type(b, jnp.float32) for b in (low_bits, high_bits))
        middle = 0.5 * (low ** (power / 2) + high ** (power / 2))
        return jnp.where(count > 0, middle ** (2 / power), 0.0)
