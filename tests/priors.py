"""Flat priors, and targets that must come without a warning: shared by the tests of users' own models."""

import warnings

from stein_core import from_numpyro
from stein_core.targets.own.numpyro_models import ModelWarning


def quietly(model, *args, **kwargs):
    """A target that must come without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        return from_numpyro(model, *args, **kwargs)
