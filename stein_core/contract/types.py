"""The central types, and the notation that code, pages and docs share.

| symbol          | name in code           | meaning                                                        |
|-----------------|------------------------|----------------------------------------------------------------|
| theta           | `theta`, (d,)          | the model's latent variables, unconstrained                    |
| psi_l           | `particles[l]`, (p,)   | particle l: the parameters of one guide; location first        |
| q(theta|psi_l)  | guide                  | what one particle stands for                                   |
| m, n            | `method.particles`     | number of active particles                                     |
| w_l             | `weights[l]`           | 1/m for an active particle, 0 for a spare one                  |
| g_l             | `Gradients.guide[l]`   | m times the gradient of the mixture ELBO (score for points)    |
| k(x, y), sigma  | kernel, bandwidth      | k = f(|x-y|^2 / (2 sigma^2)); sigma is a length                |
| phi_l           | attract + repulse      | the force on particle l                                        |
| gamma           | d / n                  | dimensions for each particle                                   |
| alpha           | `method.alpha`         | weight of the repulsion                                        |
| epsilon         | `method.step_size`     | step size of the optimiser                                     |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Callable, NamedTuple

import jax
import numpy as np

from stein_core.contract.facts import TargetFacts
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import Entry

Array = jax.Array


class Rows(NamedTuple):
    """Rows of a data set. weights: 1 for all the data, N / B for a mini-batch of B of N rows, 0 for a spare row.

    Args:
        x: (B, ...) inputs.
        y: (B, ...) outputs.
        weights: (B,).
    """

    x: Array
    y: Array
    weights: Array


class Points(NamedTuple):
    """Inputs at which functions repel each other, beside those of a mini-batch.

    Args:
        x: (k, ...) inputs.
        weights: (k,) 1, and 0 for a spare input.
        on_rows: 1 if functions also repel at the inputs of the mini-batch, else 0.
    """

    x: Array
    weights: Array
    on_rows: Array


class Functions(NamedTuple):
    """A posterior over functions. For all rows, log_density = log_prior + log_likelihood of their outputs.

    Args:
        outputs: (theta (d,), x (k, ...)) -> (k, c): the mean of a regression (c = 1), or logits.
        log_likelihood: (outputs (B, c), Rows) -> scalar, the weighted sum over the rows.
        log_prior: theta -> scalar.
        rows: key -> Rows of a mini-batch; None -> all rows.
        prior_sample: (key, n) -> theta (n, d).
        prior_covariance: (x (k, ...), y (l, ...)) -> (k, l) of one output under the prior, or None.
        axes: (low, high, name) of each input, the range that a page shows.
        points: key -> Points of a step, where functions repel; None: only at the rows of the mini-batch.
    """

    outputs: Callable[[Array, Array], Array]
    log_likelihood: Callable[[Array, Rows], Array]
    log_prior: Callable[[Array], Array]
    rows: Callable[[Array | None], Rows]
    prior_sample: Callable[[Array, int], Array]
    prior_covariance: Callable[[Array, Array], Array] | None = None
    axes: tuple[tuple[float, float, str], ...] = ()
    points: Callable[[Array], Points] | None = None


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
        root: (d, d) R with R R^T a rough covariance, for `coordinates.precondition`; None if nobody knows one.
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
        from stein_core.contract.coordinates import COORDINATES, precondition  # which needs this module

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


class Guide(NamedTuple):
    """What one particle stands for: a distribution over theta with parameters psi (p,), location first.

    Args:
        init: locations (n, d) -> psi (n, p).
        sample: (psi (p,), eps (d,)) -> theta (d,), differentiable in psi.
        log_density: (psi (n, p), theta (N, d)) -> (N, n) matrix log q(theta_i | psi_j). None for a point mass, which
            has no density.
        location, scale: psi (n, p) -> (n, d); scale is the marginal standard deviation.
        factor: psi (n, p) -> F (n, d, k), if coordinates are correlated: F F^T has the covariances off the diagonal.
        noise: number of standard normals that a draw takes beside d; eps then is (d + noise,).
    """

    init: Callable[[Array], Array]
    sample: Callable[[Array, Array], Array]
    log_density: Callable[[Array, Array], Array] | None
    location: Callable[[Array], Array]
    scale: Callable[[Array], Array]
    factor: Callable[[Array], Array] | None = None
    noise: int = 0


class Forces(NamedTuple):
    """The two parts of the force on every particle, (n, p) each, at the incoming state: phi = attract + repulse."""

    attract: Array
    repulse: Array


class State(NamedTuple):
    """All that the next step needs. memory: whatever the method keeps, an optax state say."""

    step: Array
    key: Array
    particles: Array
    memory: Any


class Method(NamedTuple):
    """An inference method. Both functions are pure and not jitted: the runner compiles them, and `batches` for sweeps.

    Args:
        init: (key, n) -> State.
        step: (key, State) -> (State, Forces at the incoming state).
        per_particle: (function, memory) -> memory, with the function applied to every array that has the particles
            along its first axis. The default says that no array has them.
        extra: (key, State) -> further arrays by name, for a page. Only `Stepper.look` computes them.
        draw: (key, State, n) -> (n, d) fresh draws, of a method with the fact `sampler`.
    """

    init: Callable[[Array, int], State]
    step: Callable[[Array, State], tuple[State, Forces]]
    per_particle: Callable[[Callable, Any], Any] = lambda function, memory: memory
    extra: Callable[[Array, State], dict[str, Array]] | None = None
    draw: Callable[[Array, State, int], Array] | None = None


@dataclass(frozen=True)
class Frame:
    """A plain NumPy snapshot of one state: the active particles only, and all that views may read.

    Args:
        step: steps taken.
        particles: (m, p).
        locations, scales: (m, d) mean and standard deviation of each guide.
        attract, repulse: (m, p) forces at these particles.
        metrics: diagnostic name -> number, NaN if undefined.
        finite: False if the next step would diverge.
        correlation: (m,) of the first two coordinates, of each guide.
        extra: what the method's `extra` returns.
    """

    step: int
    particles: np.ndarray
    locations: np.ndarray
    scales: np.ndarray
    attract: np.ndarray
    repulse: np.ndarray
    metrics: dict[str, float]
    finite: bool = True
    correlation: np.ndarray = field(default_factory=lambda: np.zeros(0))
    extra: dict[str, np.ndarray] = field(default_factory=dict)
