"""Stein particle inference in JAX: SVGD, Stein mixture inference and their relatives, behind one contract.

>>> from stein_core import Recipe, Spec, collect
>>> frame = collect(Recipe(Spec("gaussian", dim=50, method="svgd")), steps=100)[-1]
>>> sorted(frame.metrics)[:2]
['attraction', 'bandwidth']
"""

from stein_core.base import moved  # noqa: F401  (old names of modules)

# Importing registers, and the order of registration is that of menus. Guides come before the methods that name them.
# isort: off
from stein_core.forces import guides, optimizers  # noqa: F401
from stein_core import methods  # noqa: F401
from stein_core.targets import mnist, posteriors, waveform, plane, closed_forms, directions, uci  # noqa: F401
from stein_core.targets.own.density import from_density
from stein_core.posterior import Report, Weighed, diagnose, thin, weigh
from stein_core.targets import images, small_networks, wave  # noqa: F401

# isort: on
from stein_core.base.errors import UnknownName
from stein_core.base.machine import cache_folder, device_name, keep_compiled
from stein_core.contract.functions import Functions, Points, Rows
from stein_core.contract.knobs import Knob, Option
from stein_core.contract.known import Start, Truth
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import (
    BANDWIDTHS,
    DIAGNOSTICS,
    FORCE_SCALES,
    GUIDES,
    KERNELS,
    METHODS,
    OPTIMIZERS,
    TARGETS,
)
from stein_core.contract.spec import Spec, capacity_for, target_of
from stein_core.contract.target import Target
from stein_core.contract.types import Forces, Frame, Guide, Method, State
from stein_core.posterior.advice import Advice, advise, in_short
from stein_core.posterior.calibration import Calibration, calibrate
from stein_core.posterior.fit import fit
from stein_core.posterior.fitted import Fit
from stein_core.runs.cache import collect, compile, stream
from stein_core.runs.runner import Stepper
from stein_core.targets.own.numpyro_models import from_numpyro
from stein_core.targets.own.pymc_models import from_pymc
from stein_core.targets.own.rows import from_rows
from stein_core.targets.own.stan_models import from_stan

__all__ = [
    "BANDWIDTHS",
    "DIAGNOSTICS",
    "FORCE_SCALES",
    "GUIDES",
    "KERNELS",
    "METHODS",
    "OPTIMIZERS",
    "TARGETS",
    "Advice",
    "Calibration",
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
    "Start",
    "Truth",
    "UnknownName",
    "Weighed",
    "advise",
    "cache_folder",
    "calibrate",
    "capacity_for",
    "collect",
    "compile",
    "device_name",
    "diagnose",
    "fit",
    "from_density",
    "from_numpyro",
    "from_pymc",
    "from_stan",
    "from_rows",
    "in_short",
    "keep_compiled",
    "stream",
    "target_of",
    "thin",
    "weigh",
]
