"""Stein particle inference in JAX: SVGD, Stein mixture inference and their relatives, behind one contract.

>>> from stein_core import Recipe, Spec, collect
>>> frame = collect(Recipe(Spec("gaussian", dim=50, method="svgd")), steps=100)[-1]
>>> sorted(frame.metrics)[:2]
['attraction', 'bandwidth']
"""

import sys

from stein_core import (  # noqa: F401  (importing registers)
    guides,
    methods,
    mnist,
    optimizers,
    posteriors,
    sampler_posteriors,
    sampler_targets,
    targets,
    uci,
)
from stein_core.density import from_density
from stein_core.diagnosis import Report, diagnose
from stein_core.errors import UnknownName
from stein_core.experiments import bands, images, network_data, wave  # noqa: F401  (importing registers)
from stein_core.fitted import Fit
from stein_core.fitting import fit
from stein_core.knobs import Knob, Option
from stein_core.machine import cache_folder, device_name, keep_compiled
from stein_core.models import from_numpyro
from stein_core.recipe import Recipe
from stein_core.registry import BANDWIDTHS, DIAGNOSTICS, FORCE_SCALES, GUIDES, KERNELS, METHODS, OPTIMIZERS, TARGETS
from stein_core.rows import from_rows
from stein_core.runner import Stepper
from stein_core.spec import Spec, capacity_for, target_of
from stein_core.steppers import collect, compile, stream
from stein_core.types import Forces, Frame, Functions, Guide, Method, Points, Rows, State, Target

# Scripts that earlier versions exported import these two from here.
sys.modules |= {"stein_core.bands": bands, "stein_core.wave": wave}

__all__ = [
    "BANDWIDTHS",
    "DIAGNOSTICS",
    "FORCE_SCALES",
    "GUIDES",
    "KERNELS",
    "METHODS",
    "OPTIMIZERS",
    "TARGETS",
    "Fit",
    "Forces",
    "Frame",
    "Functions",
    "Guide",
    "Knob",
    "Option",
    "Method",
    "Points",
    "Recipe",
    "Report",
    "Rows",
    "Spec",
    "State",
    "Stepper",
    "Target",
    "UnknownName",
    "cache_folder",
    "capacity_for",
    "collect",
    "compile",
    "device_name",
    "diagnose",
    "fit",
    "from_density",
    "from_numpyro",
    "from_rows",
    "keep_compiled",
    "stream",
    "target_of",
]
