"""Kernels and bandwidth rules.

THE convention, stated once: k(x, y) = f(u) with u = |x - y|^2 / (2 sigma^2) and f(0) = 1; sigma is a length. A kernel
of the inner product is f(s) with s = <x, y> / sigma^2. A bandwidth rule returns 2 sigma^2, and the knob
`bandwidth.factor` multiplies sigma.

Written as exp(-r^2 / h), h is 2 sigma^2; `Med` is the median over pairs i < j, `Med0` over the whole distance matrix
with its zero diagonal. A program that holds more than 4,096 particles takes the medians of a fixed sample of pairs, see
`median.Sampled`. Of 8,192 and of 20,000 normal particles they were off by 0.3 % at most.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from stein_core.contract.registry import BANDWIDTHS, KERNELS
from stein_core.contract.types import Array
from stein_core.forces.median import Followed, Pairs, Sampled

# ---------------------------------------------------------------- kernels: f, of u (or of s, said by `argument`)


@KERNELS.register("rbf", label="RBF: exp(-u)", reference="Liu & Wang 2016, sec. 5")
def rbf(u):
    "exp(-u): the Gaussian kernel; far particles do not feel each other."
    return jnp.exp(-u)


@KERNELS.register("imq", label="IMQ: (1+u)^(-1/2)", reference="Gorham & Mackey 2017")
def imq(u):
    "(1 + u)^(-1/2): inverse multiquadric, a heavy tail, so that far particles still interact."
    return jax.lax.rsqrt(1.0 + u)


@KERNELS.register("log_inverse", label="Log-inverse: 1/(1+log(1+u))", reference="Chen et al. 2018 (Stein points)")
def log_inverse(u):
    "1 / (1 + log(1 + u)): the heaviest tail here."
    return 1.0 / (1.0 + jnp.log1p(u))


@KERNELS.register("laplace", label="Laplace: exp(-r/sigma)", reference="closed form")
def laplace(u):
    "exp(-r / sigma) = exp(-sqrt(2u)): not smooth at 0, so the repulsion of close particles does not vanish."
    return jnp.exp(-jnp.sqrt(2.0 * u))


@KERNELS.register("linear", label="Linear: 1 + s", reference="Liu & Wang 2018 (moment matching)", argument="inner")
def linear(s):
    "1 + <x, y> / sigma^2: matches means and covariances; with rule `fixed` and factor 1 it is 1 + <x, y>."
    return 1.0 + s


# ---------------------------------------------------------------- bandwidth rules: 2 sigma^2


@BANDWIDTHS.register("median", label="median distance", reference="Ba et al. 2022, sec. 5.2")
def median(pairs):
    "2 sigma^2 = Med(r^2): the RBF kernel is 1/e at the median pair."
    return pairs.median()


@BANDWIDTHS.register("median_log", label="median, with log n (default)", reference="Liu & Wang 2016, sec. 5")
def median_log(pairs):
    """2 sigma^2 = Med(r^2) / log n: the RBF kernel is 1/n at the median pair, so that all neighbours together
    weigh about as much as the particle itself.

    The paper writes Med(r)^2, which differs where the number of pairs is even; its program has Med0(r^2) / log(n + 1).
    """
    return pairs.median() / jnp.log(jnp.maximum(pairs.m, 2.0))


@BANDWIDTHS.register("numpyro", label="NumPyro's median, with log n", reference="NumPyro 0.22, stein_kernels.RBFKernel")
def numpyro(pairs):
    "2 sigma^2 = Med0(r)^2 / log n: the median includes the zero diagonal, so it is small for few particles."
    return pairs.median(power=1.0, diagonal=True) / jnp.log(jnp.maximum(pairs.m, 2.0))


@BANDWIDTHS.register("liuwang", label="median as in SVGD's code", reference="Liu & Wang 2016, the authors' code")
def liuwang(pairs):
    "2 sigma^2 = Med0(r^2) / log(n + 1): the median includes the zero diagonal, as in the code of the SVGD paper."
    return pairs.median(diagonal=True) / jnp.log(pairs.m + 1.0)


@BANDWIDTHS.register("fixed", label="fixed length: the factor", reference="Ba et al. 2022, Cor. 6")
def fixed(pairs):
    "sigma = bandwidth.factor, in the particles' own unit."
    return jnp.asarray(2.0, pairs.squared.dtype)


@BANDWIDTHS.register("root_dim", label="square root of the dimension", reference="Ba et al. 2022, Prop. 5")
def root_dim(pairs):
    "sigma^2 = p, the number of a particle's coordinates: fixed, and on the scale of distances in high dimensions."
    return 2.0 * jnp.asarray(pairs.p, pairs.squared.dtype)


def bandwidth(rule: Array, factor: Array, squared: Array, m: Array, p: Array | int, follow: bool = False) -> Array:
    """Return sigma, the kernel's length: `factor` times that of the rule.

    One particle has no length of its own, nor have particles with a median below 1e-30: more than half of the pairs
    coincide in float32. Then sigma is `factor` / sqrt(2), NumPyro's h = 1.

    Args:
        rule: traced index of the rule.
        factor: traced bandwidth factor.
        squared: (n, n) squared distances.
        m: number of active particles.
        p: number of their coordinates.
        follow: give sigma a gradient, that of the pair at the median. Otherwise it has none.
    """
    return bandwidth_of(rule, factor, (Followed if follow else Pairs)(squared, m, p))


def bandwidth_of(rule: Array, factor: Array, pairs: Pairs | Sampled) -> Array:
    """Return what `bandwidth` does, for pairs that are made already."""
    twice = BANDWIDTHS.pick(rule, pairs)
    return factor * jnp.sqrt(0.5 * jnp.where(twice > 1e-30, twice, 1.0))
