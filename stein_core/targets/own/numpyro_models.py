"""Targets from NumPyro models: `from_numpyro` makes a Target of any model with continuous latent sites."""

import threading
import warnings
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.distributions.transforms import ExpTransform, IdentityTransform, IndependentTransform
from numpyro.infer.initialization import init_to_sample, init_to_uniform
from numpyro.infer.util import constrain_fn, log_density, potential_energy, unconstrain_fn
from numpyro.primitives import Messenger

from stein_core.base.errors import not_finite, short
from stein_core.contract.target import Target
from stein_core.targets.own.recorded import Recorded, unique
from stein_core.targets.own.starts import find_start

one_at_a_time = threading.Lock()


class ModelWarning(UserWarning):
    """A model was accepted, but its author may have meant something else."""


def from_numpyro(model, *args, seed: int = 0, kwargs: dict | None = None, **keywords) -> Target:
    """Make a Target of a NumPyro model: its log density, with the log-Jacobian.

    theta is the model's latent sites, in alphabetical order, each mapped by `biject_to(support)` and flattened. Flat
    priors (`ImproperUniform`) and every continuous support that NUTS can sample are allowed.
    `center` and `scale` say where to start. They are the mode and the standard deviations of Laplace's approximation,
    found in float64 from several starts. If that is far from the density, they are the mean and the standard deviations
    of a short run of NUTS, and `note` says so. `constrain` also returns the deterministic sites, and takes one theta
    (d,) or many (n, d). Large arrays of the model are arguments of compiled programs.

    Args:
        model: a callable of NumPyro statements.
        args, keywords: of the model.
        seed: of the starts, and of NUTS.
        kwargs: further keyword arguments of the model, which may be called "seed" or "kwargs".

    Warns:
        ModelWarning: a start that is not the mode, or was found in float32; a model without an observed site.

    Raises:
        ValueError: no latent site; one that is discrete, a Delta or on a support without a map to the reals; a
            subsampled plate; a call for random numbers; a density that is finite at no point that was tried.
    """
    # New names for the same numbers: JAX 0.10 remembers the precision in which it last met an array.
    args, named = jax.tree.map(_renamed, (args, {**keywords, **(kwargs or {})}))
    target, sites = _from_numpyro(model, args, named, seed)
    if not sites.observed:
        shapes = ", ".join(f"{name} {shape}" if shape else name for name, shape in sites.shapes.items())
        text = f"model {_name(model)!r} has no observed site; what it infers: {shapes}. Is a data argument missing?"
        warnings.warn(text, ModelWarning, stacklevel=2)
    if target.start.note:
        warnings.warn(f"model {_name(model)!r}: {target.start.note}", ModelWarning, stacklevel=2)
    return target


def target_without_data(model) -> Target:
    """Return the Target of a NumPyro model that has no observed site on purpose: no warning says so."""
    return _from_numpyro(model, (), {}, seed=0)[0]


def numpyro_density(model, example: tuple):
    """Return the log density of a NumPyro model with real-valued latents as a function (theta, *args).

    Its operations are recorded once. The arguments may be traced.

    Args:
        model: a callable of NumPyro statements.
        example: arguments of the same shapes and dtypes as those to come.

    Returns:
        A function of theta, the sites in alphabetical order and flattened, and of the model's arguments.
    """
    unflatten = None

    def draw():
        nonlocal unflatten
        trace = handlers.trace(handlers.seed(model, jax.random.key(0))).get_trace(*example)
        theta, unflatten = ravel_pytree(
            {k: v["value"] for k, v in sorted(trace.items()) if v["type"] == "sample" and not v["is_observed"]}
        )
        return theta

    with one_at_a_time:
        start = jax.eval_shape(draw)  # only its shape: JAX would keep a program for each operation
        with jax.default_matmul_precision("highest"):
            run = Recorded(lambda both: -potential_energy(model, both[1], {}, unflatten(both[0])), (start, example))
    return lambda theta, *args: run((theta, args))


class _Sites(NamedTuple):
    """A model's latent sites by name.

    Args:
        shapes: of the unconstrained values.
        maps: type of the map from the unconstrained values. It is that of one element if a site is mapped element by
            element.
        observed: whether there is data.
    """

    shapes: dict[str, tuple[int, ...]]
    maps: dict[str, type]
    observed: bool

    def unflatten(self, theta):
        """Return theta (d,) as a dict of unconstrained values."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])
        parts = jnp.split(theta, ends[:-1])
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def coordinates(self) -> tuple[str, ...]:
        """Return the names of theta's entries."""
        prefixes = {IdentityTransform: "", ExpTransform: "log "}
        return tuple(
            f"{prefixes.get(self.maps[name], 'unconstrained ')}{name}{list(i) if i else ''}"
            for name, shape in self.shapes.items()
            for i in np.ndindex(*shape)
        )


class _NoRandomNumbers(Messenger):
    """Refuses a model that asks for a key: its density would not be a fixed function."""

    def process_message(self, msg):
        if msg["type"] == "prng_key" and msg["value"] is None:
            raise ValueError(
                f"model {_name(self.fn)!r} asks for random numbers (`numpyro.prng_key`, or a parameter that starts at "
                "random); allowed: models whose density is a fixed function of the latent sites."
            )


def _name(model) -> str:
    return getattr(model, "__name__", type(model).__name__)


def _from_numpyro(model, args, kwargs, seed) -> tuple[Target, _Sites]:
    with one_at_a_time:
        example, sites = _sites(model, args, kwargs)

        def constrain(theta):
            return constrain_fn(model, args, kwargs, sites.unflatten(theta), return_deterministic=True)

        def joint(theta):
            values = constrain_fn(model, args, kwargs, sites.unflatten(theta))
            return log_density(model, args, kwargs, {name: values[name] for name in sites.shapes})[0]

        def unconstrain(values):
            found = unconstrain_fn(model, args, kwargs, values)
            return _flat({name: found[name] for name in sites.shapes})

        unconstrained = _density(model, args, kwargs, sites, example)
        constrain, joint = Recorded(constrain, example), Recorded(joint, example)
        values = jax.eval_shape(constrain, example)
        unconstrain = Recorded(unconstrain, {name: values[name] for name in sites.shapes})
        doubt = ""
        try:
            with jax.enable_x64():
                exact, draw = _for_the_search(model, *jax.tree.map(_in_float64, (args, kwargs)), sites, seed)
        except TypeError as error:  # for example a scan whose carry is float32
            reason = short(str(error).partition("\n")[0].rstrip(".:"))
            doubt = f"The start was sought in float32, since the model does not run in float64: {reason}."
            exact, draw = _for_the_search(model, args, kwargs, sites, seed)
    with jax.enable_x64(not doubt):
        try:
            start = find_start(exact, draw(), seed)
        except ValueError as error:
            raise ValueError(f"{error} {not_finite(model, args, kwargs)}".strip()) from None
    arrays, places = unique([*unconstrained.arrays, *joint.arrays])
    own, others = places[: len(unconstrained.arrays)], places[len(unconstrained.arrays) :]

    def remake(data):
        """The Target that reads these arrays instead of the model's own."""
        return replace(
            target,
            log_density=lambda theta: unconstrained(theta, [data[i] for i in own]),
            log_joint=target.log_joint and (lambda theta: joint(theta, [data[i] for i in others])),
        )

    target = Target(
        log_density=unconstrained,
        log_joint=None if set(sites.maps.values()) == {IdentityTransform} else joint,
        constrain=lambda theta: constrain(theta) if theta.ndim == 1 else jax.vmap(constrain)(theta),
        unconstrain=lambda values: unconstrain({name: jnp.asarray(values[name], float) for name in sites.shapes}),
        start=replace(start, note=" ".join(text for text in (start.note, doubt) if text)),
        coordinates=sites.coordinates(),
        data=arrays or None,
        remake=remake,
        name=_name(model),
    )
    return target, sites


def _latent(model, args, kwargs, key, strategy):
    """Return the latent sites, drawn by NumPyro's `strategy`, in alphabetical order, and the whole trace."""
    seeded = handlers.seed(_NoRandomNumbers(model), key)
    trace = handlers.trace(handlers.substitute(seeded, substitute_fn=strategy)).get_trace(*args, **kwargs)
    return {k: v for k, v in sorted(trace.items()) if v["type"] == "sample" and not v["is_observed"]}, trace


def _unconstrained(latent):
    """Return unconstrained values of latent sites that have been drawn."""
    return {name: _bare(biject_to(site["fn"].support)).inv(site["value"]) for name, site in latent.items()}


def _sites(model, args, kwargs):
    """Return shape and dtype of theta, and the model's sites.

    Raises:
        ValueError: a model that is not supported.
    """
    sites, name = None, _name(model)

    def uniform(site):
        try:
            return init_to_uniform(site)
        except NotImplementedError:
            text = f"site {site['name']!r} of {name!r} has support {site['fn'].support}, without a map to the reals"
            raise ValueError(f"{text}; allowed: supports for which NumPyro's `biject_to` has one.") from None

    def draw(key):
        nonlocal sites
        latent, trace = _latent(model, args, kwargs, key, uniform)
        for plate in (site for site in trace.values() if site["type"] == "plate"):
            size, rows = plate["args"]
            if rows not in (None, size):
                text = f"plate {plate['name']!r} of {name!r} takes {rows} of its {size} rows at random"
                raise ValueError(f"{text}; allowed: plates without subsample_size, that is all the data at once.")
        if not latent:
            raise ValueError(f"model {name!r} has no latent site: there is nothing to infer.")
        for site, fact in latent.items():
            if fact["fn"].support.is_discrete:
                raise ValueError(f"site {site!r} of {name!r} is discrete; allowed: continuous latents only.")
            if isinstance(fact["fn"], dist.Delta):
                raise ValueError(f"site {site!r} of {name!r} is a Delta; allowed: `numpyro.deterministic` instead.")
        values = _unconstrained(latent)
        sites = _Sites(
            shapes={k: jnp.shape(v) for k, v in values.items()},
            maps={k: type(_bare(biject_to(v["fn"].support))) for k, v in latent.items()},
            observed=any(v["type"] == "sample" and v["is_observed"] for v in trace.values()),
        )
        return _flat(values)

    theta = jax.eval_shape(draw, jax.random.key(0))  # computes nothing: JAX would keep a program for each operation
    return theta, sites


def _flat(values):
    return jnp.concatenate([jnp.ravel(value) for value in values.values()])


def _density(model, args, kwargs, sites, example):
    """Return the log density of theta with the log-Jacobian, in the precision of `example`."""
    return Recorded(lambda theta: -potential_energy(model, args, kwargs, sites.unflatten(theta)), example)


def _for_the_search(model, args, kwargs, sites, seed):
    """Return the log density, and a function that draws theta (4, d) from the prior, in JAX's present precision.

    Raises:
        TypeError: the model mixes precisions.
    """
    theta = jax.ShapeDtypeStruct((len(sites.coordinates()),), jnp.result_type(float))
    density = _density(model, args, kwargs, sites, theta)
    jax.eval_shape(jax.grad(density), theta)

    def draw(key):
        return _flat(_unconstrained(_latent(model, args, kwargs, key, init_to_sample())[0]))

    keys = jax.random.split(jax.random.key(seed), 4)
    try:
        # It runs once, so compile time dominates.
        draws = jax.jit(Recorded(jax.vmap(draw), keys), compiler_options={"xla_backend_optimization_level": 0})
    except NotImplementedError:  # a distribution that NumPyro cannot draw from
        return density, lambda: np.zeros((0, *theta.shape), theta.dtype)
    return density, lambda: np.asarray(draws(keys), theta.dtype)


def _in_float64(value):
    """Return data as a new float64 array: a scan takes no data of another precision than its carry."""
    is_real = isinstance(value, jax.Array | np.ndarray) and value.dtype in (np.float32, np.float64)
    return np.array(value, np.float64) if is_real else value


def _renamed(value):
    return value.view() if type(value) is np.ndarray else value


def _bare(transform):
    """Return the transform of one element, if a whole site is transformed element by element."""
    while isinstance(transform, IndependentTransform):
        transform = transform.base_transform
    return transform
