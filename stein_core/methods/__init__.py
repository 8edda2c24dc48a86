"""One method a file. A method is a factory (problem, **knobs) -> Method, registered with the guides it allows
(`guides`, the first is its default) and, where it has but one particle, `single=True`."""

from stein_core.methods import annealed, ensemble, map, smi, svgd, vi  # noqa: F401  (importing registers)
