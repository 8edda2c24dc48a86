"""Flat priors, and targets that must come without a warning: shared by the tests of users' own models."""

import warnings

import numpyro
import numpyro.distributions as dist

from stein_core import from_numpyro
from stein_core.models import ModelWarning

constraints = dist.constraints


def quietly(model, *args, **kwargs):
    """A target that must come without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        return from_numpyro(model, *args, **kwargs)


def flat(name, size=None):
    """A flat prior on the reals."""
    support = constraints.real if size is None else constraints.real_vector
    return numpyro.sample(name, dist.ImproperUniform(support, (), () if size is None else (size,)))


def flat_positive(name):
    return numpyro.sample(name, dist.ImproperUniform(constraints.positive, (), ()))
