"""One method a file. A method is a factory (problem, **knobs) -> Method, and `facts.MethodFacts` describes it."""

from stein_core.methods import annealed, damped, ensemble, langevin, map, mmd, resampled, smi, svgd, vi  # noqa: F401  (importing registers)
