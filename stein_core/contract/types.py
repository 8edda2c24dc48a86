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
from typing import Any, Callable, NamedTuple

import jax
import numpy as np

Array = jax.Array


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


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        return f"<Frame at step {self.step:,}: {len(self.particles)} particles>"
