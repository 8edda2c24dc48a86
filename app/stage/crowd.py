"""Many particles on a card: how densely they lie, on a grid, so that a frame has few bytes whatever their number."""

from __future__ import annotations

import numpy as np

MANY = 2000  # particles from which a frame has their density and a sample of them
DRAWN = 1000  # particles of the sample: the first ones, the same from frame to frame
COLUMNS, LINES = 96, 72  # cells of the grid at most
FAR = 1.0  # the grid reaches so many times the width of the middle 98 % beyond it


def density(places: np.ndarray) -> np.ndarray:
    """Count particles in the cells of a grid.

    The sides of a cell are powers of the root of 2, and its corners multiples of them. So the grid stands still while
    the particles move a little.

    Args:
        places: (m, 2) of x and y, in the units of the extent. What is not finite is not counted.

    Returns:
        Its own length, m, the largest count, columns, lines, x and y of the corner, width and height of a cell; then
        the cells line by line, the lowest first, three to a number. A cell is 255 sqrt(count / largest count), rounded
        up.
    """
    m, places = len(places), np.asarray(places)
    if not (finite := np.isfinite(places).all(axis=1)).all():
        places = places[finite]
    x, y = (_cells(places[:, k], most) for k, most in enumerate((COLUMNS, LINES)))
    (columns, x0, dx, across), (lines, y0, dy, up) = x, y
    cells = np.where((across < 0) | (up < 0), columns * lines, up * columns + across)
    counts = np.bincount(cells, minlength=columns * lines)[: columns * lines]
    peak = counts.max(initial=1)
    levels = np.ceil(255 * np.sqrt(counts / peak))
    words = np.pad(levels, (0, -len(levels) % 3)).reshape(-1, 3) @ [1, 256, 65536]
    return np.array([9 + len(words), m, peak, columns, lines, x0, y0, dx, dy, *words], np.float32)


def _cells(values: np.ndarray, most: int) -> tuple[int, float, float, np.ndarray]:
    """Return how many cells one axis has, where they begin, how wide they are, and the cell of each value, or -1."""
    lowest, highest = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    if lowest == highest:  # on a line
        return 1, lowest - 0.5, 1.0, np.zeros(len(values), np.int32)
    low, high = np.quantile(values[:: max(1, len(values) // 10_000)], (0.01, 0.99))
    room = FAR * (high - low)
    low, high = max(float(low - room), lowest), min(float(high + room), highest)
    width = 2.0 ** (np.ceil(2 * np.log2(max(high - low, 1e-12 * abs(high)) / (most - 1))) / 2)
    first = np.floor(low / width)
    count = int(np.floor(high / width) - first) + 1
    at = (values - values.dtype.type(first * width)) * values.dtype.type(1 / width)
    return count, first * width, width, np.where((at >= 0) & (at < count), at, -1).astype(np.int32)
