"""JAX programs as JavaScript: a step of a method runs in a browser without a server."""

from stein_core.web import arrays, control, elementwise, indexing, linear, random  # noqa: F401  (they register)
from stein_core.web.programs import program_of
from stein_core.web.translate import HELPERS, OPERATIONS, function_of

__all__ = ["HELPERS", "OPERATIONS", "function_of", "program_of"]
