"""The median distance of pairs, found by counting: it needs no sort, and the number of active particles is traced.

Of all pairs it is exact (`Pairs`). Beyond 4,096 rows it is that of a fixed sample of pairs (`Sampled`). The two middle
order statistics are found among the bit patterns of floats, which order as non-negative floats do. `by_limits` suits a
CPU, `by_digits` a GPU.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from stein_core.contract.types import Array

LARGE = 256  # particles from which a pass over the pairs costs more than a second limit
DIGIT = 4  # bits that a pass finds on a GPU
PARTNERS = 64  # others with which a sample of pairs has each particle


class Pairs(NamedTuple):
    """Squared distances between particles.

    Args:
        squared: (n, n); n is 1 or even.
        m: number of active particles, traced: the first m rows.
        p: number of coordinates of a particle.
    """

    squared: Array
    m: Array
    p: Array | int

    def median(self, power: float = 2.0, diagonal: bool = False) -> Array:
        """Return the median of r^power over active pairs i < j, to the power 2/power; 0 if there is no pair.

        Args:
            power: the exponent of r.
            diagonal: take the median over the whole matrix, with its zero diagonal.
        """
        n = self.squared.shape[0]
        m = self.m.astype(jnp.int32)
        if n == 1:
            return jnp.zeros((), self.squared.dtype)
        # Every pair once, in half a matrix: row i holds the pairs (i, j > i) and (n-1-i, j > n-1-i).
        row, column = jnp.arange(n // 2)[:, None], jnp.arange(n)[None, :]
        late = column > row
        folded = jnp.where(late, self.squared[: n // 2], self.squared[::-1, ::-1][: n // 2])
        inside = (jnp.where(late, column, n - 1 - column) < m) & (column != row)
        return middle_of(folded, inside, m * m if diagonal else m * (m - 1), m if diagonal else 0, power)


def middle_of(squared: Array, inside: Array, count: Array, zeros: Array | int, power: float) -> Array:
    """Return the median of r^power, to the power 2/power; 0 if nothing counts.

    Args:
        squared: (rows, n) values of r^2, each of which counts twice.
        inside: (rows, n), which of them count.
        count: how many there are, twice each and with the zeros.
        zeros: how many further values are 0.
        power: the exponent of r.
    """
    real = squared.dtype
    whole = jnp.int64 if real == jnp.float64 else jnp.int32
    largest = jnp.iinfo(whole).max
    bits = jnp.where(inside, jax.lax.bitcast_convert_type(squared, whole), largest)
    low_rank, high_rank = (count - 1) // 2, count // 2  # 0-based, among the entries of the whole matrix

    find = by_limits if jax.default_backend() == "cpu" else by_digits
    low_bits, reached = find(bits, low_rank, zeros)
    above = jnp.min(jnp.where(bits > low_bits, bits, largest))
    high_bits = jnp.where(reached > high_rank, low_bits, above)
    low, high = (jax.lax.bitcast_convert_type(b, real) for b in (low_bits, high_bits))
    middle = 0.5 * (low ** (power / 2) + high ** (power / 2))
    return jnp.where(count > 0, middle ** (2 / power), 0.0)


def by_limits(bits: Array, rank: Array, zeros: Array | int) -> tuple[Array, Array]:
    """Return the order statistic `rank` of entries by bisection or trisection, in 31 passes at most (63 in float64).

    Args:
        bits: (rows, n) bit patterns, each of which counts twice; the largest integer for none.
        rank: 0-based.
        zeros: number of further entries, all 0.

    Returns:
        The bit pattern, and the number of entries that are no larger.
    """
    n, whole, largest = bits.shape[1], bits.dtype, jnp.iinfo(bits.dtype).max
    if n < LARGE:
        cuts = 1
        least = jnp.where(zeros > 0, 0, jnp.maximum(jnp.min(bits), 0))  # a NaN may have a sign, and then negative bits
        ends = least.astype(whole), jnp.max(jnp.where(bits < largest, bits, 0))
    else:  # two limits are counted in one pass, over sixteen streams of memory
        cuts, ends = 2, (jnp.asarray(0, whole), jnp.asarray(largest - 1, whole))
        bits = jnp.pad(bits, ((0, -len(bits) % 16), (0, 0)), constant_values=largest).reshape(16, -1, n)

    def total(entries):
        """Sum one axis after the other, with a barrier between: twice as fast on a CPU as one reduction."""
        while (entries := jnp.sum(entries, axis=0)).ndim:
            entries = jax.lax.optimization_barrier(entries)
        return entries

    def up_to(*limits):
        """Count, for each limit, the entries that are no larger. Two counts share an integer until rows are summed."""
        below = sum(jnp.where(bits <= limit, 1 << 16 * i, 0) for i, limit in enumerate(limits))
        below = jax.lax.optimization_barrier(jnp.sum(below, axis=0))
        counts = [below & 0xFFFF, below >> 16] if len(limits) > 1 else [below]
        return [2 * total(count) + zeros for count in counts]

    def narrow(interval):
        low, high = interval
        limits = [low + (high - low) // (cuts + 1) * (i + 1) for i in range(cuts)]
        enough = [number > rank for number in up_to(*limits)]
        for limit, reached in zip(limits, enough):
            low = jnp.where(reached, low, limit + 1)
        for limit, reached in zip(limits[::-1], enough[::-1]):
            high = jnp.where(reached, limit, high)
        return low, high

    found, _ = jax.lax.while_loop(lambda interval: interval[0] < interval[1], narrow, ends)
    return found, up_to(found)[0]


def by_digits(bits: Array, rank: Array, zeros: Array | int) -> tuple[Array, Array]:
    """Return what `by_limits` does, in a fixed number of passes, each of which finds four bits.

    A GPU waits for the host before each pass of a loop that may end early. On an H100 the 31 passes took 0.4 to 0.6 ms
    for 20 to 512 particles, and these eight 0.04 to 0.06 ms.
    """
    whole = bits.dtype
    found = jnp.zeros((), whole)
    for shift in range(8 * whole.itemsize - DIGIT, -1, -DIGIT):
        first = shift + DIGIT == 8 * whole.itemsize  # which has no bit for the sign
        limits = found + (jnp.arange(1, 2 ** (DIGIT - first), dtype=whole) << shift)
        below = 2 * jnp.sum(bits < limits[:, None, None], axis=(1, 2), dtype=whole) + zeros
        found += jnp.sum(below <= rank, dtype=whole) << shift
    return found, 2 * jnp.sum(bits <= found, dtype=whole) + zeros


class Sampled(NamedTuple):
    """Squared distances of a fixed sample of pairs: each active particle with the same number of others.

    Every particle counts as often as the others do. So the median is nearer to that of all pairs than the median of as
    many random pairs. Of up to 2 `PARTNERS` particles these are all pairs.

    Args:
        squared: (PARTNERS, n) of row i and the row that is some rows further on, round the active rows.
        m: number of active particles, traced: the first m rows.
        p: number of coordinates of a particle.
    """

    squared: Array
    m: Array
    p: Array | int

    @classmethod
    def of(cls, x: Array, m: Array, p: Array | int) -> Sampled:
        """Return the sample of rows x (n, k), of which the first m are active."""
        whole, rows = m.astype(jnp.int32), jnp.arange(len(x))

        def apart(offset):
            there = rows + offset
            return jnp.sum((x - x[jnp.where(there < whole, there, there - whole)]) ** 2, axis=1)

        return cls(jax.lax.map(apart, _offsets(whole)), m, p)

    def median(self, power: float = 2.0, diagonal: bool = False) -> Array:
        """Return what `Pairs.median` does, of the sample. The zeros of the diagonal have their share of it."""
        n, m = self.squared.shape[1], self.m.astype(jnp.int32)
        offset = _offsets(m)[:, None]
        once = jnp.where(2 * offset == m, m // 2, m)  # half-way round, the second half has the pairs of the first again
        inside = (2 * offset <= m) & (jnp.arange(n) < once)
        count = 2 * jnp.sum(inside, dtype=jnp.int32)
        zeros = count // jnp.maximum(m - 1, 1) if diagonal else 0
        return middle_of(self.squared, inside, count + zeros, zeros, power)


def _offsets(m: Array) -> Array:
    """Return by how many rows the particles of a pair are apart, evenly from 1 to m / 2; a larger one is for none."""
    return 1 + jnp.arange(PARTNERS, dtype=m.dtype) * jnp.maximum(m // 2 // PARTNERS, 1)


class Followed(Pairs):
    """Pairs whose median has a gradient: that of the distance of the pair, or pairs, at the median."""

    def median(self, power: float = 2.0, diagonal: bool = False) -> Array:
        """Return the median as `Pairs` has it, differentiable in `squared`."""
        held = jax.lax.stop_gradient(self.squared)
        value = Pairs(held, self.m, self.p).median(power, diagonal)
        row, column = (jax.lax.broadcasted_iota(jnp.int32, held.shape, axis) for axis in (0, 1))
        gap = jnp.where((row < self.m) & (column < self.m) & (row != column), jnp.abs(held - value), jnp.inf)
        nearest = gap <= jnp.min(gap) + 1e-5 * value  # both of two that are as near, whichever way they are rounded
        pair = jnp.sum(jnp.where(nearest, self.squared, 0.0)) / jnp.sum(nearest)
        at = jax.lax.stop_gradient(pair)
        return value * jnp.where(at > 0, pair / jnp.where(at > 0, at, 1.0), 1.0)
