"""A run of NUTS on the same posterior, to compare draws with."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from numpyro.infer import MCMC, NUTS

from stein_core.contract.target import Target, in_raw, precondition
from stein_core.targets.own.density import in_precision_of

CHAINS, WARMUP, SAMPLES = 4, 500, 1000


class Chains(np.ndarray):
    """Draws (chains, k, d), and how many of them ended a diverging trajectory; None if they were not counted."""

    diverging: int | None = None


def nuts(
    target: Target,
    seed: int = 0,
    chains: int = CHAINS,
    warmup: int = WARMUP,
    samples: int = SAMPLES,
    gradients: list[int] | None = None,
    depth: int = 10,
) -> Chains:
    """Return draws (chains, samples, d) of NUTS in the target's coordinates, with the number of divergences.

    It runs in whitened coordinates if a rough covariance is known. The chains start from draws of its normal.

    Args:
        target: the posterior.
        seed: of the chains.
        chains, warmup, samples: how many, and steps of each.
        gradients: a list to which the number of gradients is added, those of the warm-up too.
        depth: of a trajectory's tree at most: it has 2^depth - 1 steps.
    """
    kind = "whitened" if target.start.root is not None or target.truth.variance is not None else "scaled"
    with in_precision_of(target):
        z = precondition(target, kind)
        kernel = NUTS(potential_fn=lambda theta: -z.log_density(theta), target_accept_prob=0.9, max_tree_depth=depth)
        sampler = MCMC(
            kernel,
            num_warmup=warmup,
            num_samples=samples,
            num_chains=chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        first, second = jax.random.split(jax.random.key(seed))
        starts = 0.5 * jax.random.normal(first, (chains, target.dim))
        starts = starts if chains > 1 else starts[0]
        if gradients is None:
            sampler.run(second, init_params=starts, extra_fields=("diverging",))
        else:
            sampler.warmup(second, init_params=starts, collect_warmup=True, extra_fields=("num_steps",))
            spent = int(np.sum(sampler.get_extra_fields()["num_steps"]))
            sampler.run(sampler.post_warmup_state.rng_key, extra_fields=("num_steps", "diverging"))
            gradients.append(spent + int(np.sum(sampler.get_extra_fields()["num_steps"])))
        draws = in_raw(target, kind, np.asarray(sampler.get_samples(group_by_chain=True), float)).view(Chains)
        draws.diverging = int(np.sum(sampler.get_extra_fields()["diverging"]))
        return draws


def compared(draws: np.ndarray, reference: np.ndarray, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return a row for each coordinate: mean error in reference sds, and ratio of sds.

    Args:
        draws: (n, d).
        reference: (k, d) or (chains, k, d).
        names: of the coordinates.
    """
    reference = reference.reshape(-1, reference.shape[-1])
    mean, sd = reference.mean(axis=0), reference.std(axis=0, ddof=1)
    errors = (draws.mean(axis=0) - mean) / sd
    ratios = draws.std(axis=0, ddof=1) / sd
    return [
        {"coordinate": name, "mean error": float(error), "sd ratio": float(ratio)}
        for name, error, ratio in zip(names, errors, ratios)
    ]
