"""What is known about a posterior: where particles start, and what is exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, NamedTuple

import numpy as np

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
class Start:
    """Where particles start, and what the search for that place has found.

    Args:
        center, scale: (d,) rough location and scale of the posterior. Particles start there, and the stage shows that
            region.
        draw: (key, n) -> (n, d) points at which particles start, for a model whose paper says where; None: normal
            around `center`. The knobs of the start scale and shift both.
        root: (d, d) R with R R^T a rough covariance, for `precondition`; None if none is known.
        modes: local maxima, the highest first, if a normal fits there.
        note: what is doubtful about `center` and `scale`, in plain sentences, or "".
        gradients: that the search for it has computed; a second derivative in one direction counts as one.
    """

    center: np.ndarray
    scale: np.ndarray
    draw: Callable[[Array, int], Array] | None = None
    root: np.ndarray | None = None
    modes: tuple[Mode, ...] = ()
    note: str = ""
    gradients: int = 0

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Return (x0, x1, y0, y1), 4.5 scales around the center in the first two coordinates."""
        x, y = (0, 1) if len(self.center) > 1 else (0, 0)
        return tuple(float(self.center[i] + side * 4.5 * self.scale[i]) for i in (x, y) for side in (-1, 1))


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known exactly about a posterior, and draws to compare with.

    Args:
        sample: (key, n) -> (n, d) exact draws, or None.
        mean, variance: exact (d,) moments, or None.
        covariance: the exact (d, d) matrix if coordinates are correlated. None means diagonal, with `variance`.
        log_normalizer: log of the integral of exp(log_density); None without a closed form.
        mode_centers: (k, d) centres of modes that lie apart, or None.
        reference: (k, d) draws of long chains; None if there are none. They are not exact.
    """

    sample: Callable[[Array, int], Array] | None = None
    mean: np.ndarray | None = None
    variance: np.ndarray | None = None
    covariance: np.ndarray | None = None
    log_normalizer: float | None = None
    mode_centers: np.ndarray | None = None
    reference: np.ndarray | None = None

    @property
    def matrix(self) -> np.ndarray | None:
        """Return the exact covariance (d, d), or None."""
        if self.covariance is not None:
            return np.asarray(self.covariance, float)
        return None if self.variance is None else np.diag(np.asarray(self.variance, float))
