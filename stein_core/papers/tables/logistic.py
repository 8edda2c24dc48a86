"""Targets of the Bayesian logistic regressions of the papers, on data of any two-class set."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from stein_core.contract.known import Start
from stein_core.contract.target import Target
from stein_core.targets.own.rows import from_rows
from stein_core.targets.posteriors import gamma_logistic


def fixed_prior(x: np.ndarray, y: np.ndarray, alpha: float = 1.0) -> Target:
    """Return the posterior of w with p(w) = N(0, I / alpha) and y ~ Bernoulli(logistic(x w)). Ba et al. 2022, app. A.3.

    Args:
        x: (N, D) inputs.
        y: (N,) 0 or 1.
        alpha: precision of the prior.
    """

    def make(data: Any) -> Target:
        inputs, outputs = data

        def log_density(theta):
            logits = inputs @ theta
            likelihood = outputs @ logits - jnp.sum(jax.nn.softplus(logits))
            return likelihood + jnp.sum(norm.logpdf(theta, 0.0, alpha**-0.5))

        dim = x.shape[1]
        return Target(
            log_density=log_density,
            start=Start(np.zeros(dim), np.full(dim, np.sqrt(0.8))),
            extent=(-3.0, 3.0, -3.0, 3.0),
            coordinates=tuple(f"weight {i}" for i in range(dim)),
            constrain=lambda theta: {"weights": theta},
            data=data,
            remake=make,
        )

    return make((np.float32(x), np.float32(y)))


def gamma_prior(x: np.ndarray, y: np.ndarray) -> Target:
    """Return the posterior of (w, log a) with w ~ N(0, 1/a), a ~ Gamma(1, rate 0.01). Gershman et al. 2012.

    Args:
        x: (N, D) inputs, with a column of ones.
        y: (N,) 0 or 1.
    """
    log_prior, log_likelihood, facts = gamma_logistic(x.shape[1])
    return from_rows(log_prior, log_likelihood, (np.float32(x), np.float32(y)), batch=None, **facts)
