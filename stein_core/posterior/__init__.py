"""Is a posterior right? Checks of a fit or of draws, a verdict, and what to change."""

from stein_core.posterior import checks, companions  # noqa: F401  (importing registers)
from stein_core.posterior.evidence import CHECKS, Evidence, Finding
from stein_core.posterior.report import Report, diagnose
from stein_core.posterior.weighing import Weighed, thin, weigh

__all__ = ["CHECKS", "Evidence", "Finding", "Report", "Weighed", "diagnose", "thin", "weigh"]
