"""NumPyro models as simulators: truths of the prior or the posterior, data of truths, a density that takes any data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.infer.util import constrain_fn, potential_energy
from numpyro.primitives import Messenger

from stein_core.targets.own.numpyro_models import _flat, _sites, _unconstrained, one_at_a_time
from stein_core.targets.own.recorded import Recorded


class _Whole(Messenger):
    """Draw each observed site in the shape of its data, also if the model states the law of one number alone."""

    def __init__(self, fn: Callable, shapes: Mapping[str, tuple[int, ...]]):
        super().__init__(fn)
        self.shapes = shapes

    def process_message(self, msg):
        if msg["type"] == "sample" and msg["name"] in self.shapes:
            shape, law = self.shapes[msg["name"]], msg["fn"]
            if law.shape() != shape:
                msg["fn"] = law.expand(shape[: len(shape) - law.event_dim])


class Simulator:
    """A model whose observed arguments are replaced by simulated ones.

    Args:
        model: a callable of NumPyro statements.
        arguments, keywords: of the model, with data of the right shape; what an observed site reads is replaced.
        joint: whether `density` takes the given data beside the simulated ones (for truths of the posterior).

    Attributes:
        dim: number of coordinates of theta.
        data: the data that were given.
        density: ((d,) theta, data) -> log density of theta given data; and given `self.data` too if `joint`.
        names: of the scalar values that `values` returns.

    Raises:
        ValueError: a model that `from_numpyro` refuses; a flat prior; no observed site, or one that reads no argument
            as it is.
    """

    def __init__(self, model: Callable, arguments: tuple, keywords: Mapping[str, Any], joint: bool = False):
        self.model, self.given = model, (arguments, dict(keywords))
        with one_at_a_time:
            self.example, self.sites = _sites(model, *self.given)
            self.places, self.observed = self._places()
            leaves = jax.tree.leaves(self.given)
            self.data = [jnp.asarray(leaves[place]) for place in self.places]
            self.alone = Recorded(self._density, (self.example, self.data))  # given the data that it gets alone
            self.density = Recorded(self._joint, (self.example, self.data)) if joint else self.alone
            self.values = Recorded(self._values, self.example)
            words = jax.random.key_data(jax.random.key(0))
            self._simulate = Recorded(self._drawn, words)
            self._simulate_at = Recorded(self._drawn_at, (words, self.example))
            self.prior = Recorded(self._prior, words)
        self.dim = self.example.shape[0]
        shapes = jax.eval_shape(self._values_by_site, self.example)
        self.names = tuple(
            f"{name}{list(i) if i else ''}" for name, one in shapes.items() for i in np.ndindex(*one.shape)
        )

    def _with(self, data):
        leaves, tree = jax.tree.flatten(self.given)
        for place, value in zip(self.places, data):
            leaves[place] = value
        return jax.tree.unflatten(tree, leaves)

    def _density(self, both):
        theta, data = both
        return -potential_energy(self.model, *self._with(data), self.sites.unflatten(theta))

    def _joint(self, both):
        """Return the log density given the data of the model, and simulated ones of the same theta."""
        theta, data = both
        fixed = handlers.substitute(self.model, constrain_fn(self.model, *self.given, self.sites.unflatten(theta)))
        trace = handlers.trace(fixed).get_trace(*self._with(data)[0], **self._with(data)[1])
        likelihood = 0.0
        for name in self.observed:
            site = trace[name]
            each = jnp.sum(site["fn"].log_prob(site["value"]))
            likelihood += each if site["scale"] is None else site["scale"] * each
        return self._density((theta, self.data)) + likelihood

    def _values_by_site(self, theta):
        found = constrain_fn(self.model, *self.given, self.sites.unflatten(theta))
        return {name: found[name] for name in self.sites.shapes}

    def _values(self, theta):
        return _flat(self._values_by_site(theta))

    def _traced(self, words, known=None):
        shapes = {name: one.shape for name, one in zip(self.observed, self.data)}
        free = handlers.substitute(_Whole(handlers.uncondition(self.model), shapes), known or {})
        seeded = handlers.seed(free, jax.random.wrap_key_data(words))
        return handlers.trace(seeded).get_trace(*self.given[0], **self.given[1])

    def _drawn_at(self, both):
        words, theta = both
        return self._drawn(words, constrain_fn(self.model, *self.given, self.sites.unflatten(theta)))

    def _drawn(self, words, known=None):
        trace = self._traced(words, known)
        truths = _flat({name: jnp.asarray(trace[name]["value"]) for name in self.sites.shapes})
        return truths, [trace[name]["value"].astype(one.dtype) for name, one in zip(self.observed, self.data)]

    def _prior(self, words):
        trace = self._traced(words)
        return _flat(_unconstrained({name: trace[name] for name in self.sites.shapes}))

    def _places(self) -> tuple[list[int], list[str]]:
        """Return which leaves of the arguments are data, and the observed sites that read them."""
        seeded = handlers.seed(self.model, jax.random.key(0))
        try:
            trace = handlers.trace(seeded).get_trace(*self.given[0], **self.given[1])
        except NotImplementedError:  # of a distribution that has no `sample`
            raise ValueError(
                "a prior of the model cannot be drawn from, so there are no truths; allowed: proper priors, not flat."
            ) from None
        seen = {name: site["value"] for name, site in trace.items() if site["type"] == "sample" and site["is_observed"]}
        if not seen:
            raise ValueError("the model has no observed site; allowed: a model of data, which are its arguments.")
        leaves, places = jax.tree.leaves(self.given), []
        for name, value in seen.items():
            place = next((i for i, leaf in enumerate(leaves) if leaf is value), None)
            if place is None:
                raise ValueError(
                    f"site {name!r} reads no argument of the model as it is, so simulated data cannot take its place; "
                    "allowed: obs=y, with the argument y."
                )
            places.append(place)
        return places, list(seen)

    def simulate(self, seed: int, n: int, thetas: np.ndarray | None = None) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return n truths (n, values), and the data of each: a list of arrays (n, ...).

        Args:
            seed: of all draws.
            n: number of truths.
            thetas: (n, d) of the truths; None for draws of the prior.
        """
        words = jax.random.key_data(jax.random.split(jax.random.key(seed), n))
        if thetas is None:
            truths, data = jax.jit(jax.vmap(self._simulate))(words)
        else:
            truths, data = jax.jit(jax.vmap(self._simulate_at))((words, jnp.asarray(thetas)))
        return np.asarray(truths), [np.asarray(each) for each in data]

    def starts(self, seed: int, n: int) -> np.ndarray:
        """Return n draws (n, d) of theta from the prior."""
        words = jax.random.key_data(jax.random.split(jax.random.key(seed), n))
        return np.asarray(jax.jit(jax.vmap(self.prior))(words))
