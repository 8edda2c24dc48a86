"""Is a posterior right? Checks of a fit or of draws, a verdict, and what to change."""

from stein_core.diagnosis import checks, companions  # noqa: F401  (importing registers)
from stein_core.diagnosis.evidence import CHECKS, Evidence, Finding
from stein_core.diagnosis.report import Report, diagnose

__all__ = ["CHECKS", "Evidence", "Finding", "Report", "diagnose"]
