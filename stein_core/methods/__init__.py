"""One method a file. A method is a factory (problem, **knobs) -> Method, registered with the guides it allows
(`guides`, the first is its default). Other facts, where they apply: `single` (it has one particle), `kernel=False`
(nothing interacts), `optimizers` (its own), `exact` (needs target samples), `check(spec, knobs)`, and for sweeps
`noisy(choices)`, `stages`, `least(knobs)`, `rounds` and `stack` (see `batches`)."""

from stein_core.methods import annealed, damped, ensemble, langevin, map, mmd, resampled, smi, svgd, vi  # noqa: F401  (importing registers)
