"""One method a file. A method is a factory (problem, **options, **knobs) -> Method, and `facts.MethodFacts` describes
it."""

from stein_core.methods import (  # noqa: F401  (importing registers)
    annealed,
    damped,
    ensemble,
    hksivi,
    ksdd,
    ksivi,
    langevin,
    mala,
    map,
    mied,
    mmd,
    resampled,
    sgld,
    sivi,
    sivi_sm,
    smi,
    stochastic,
    svgd,
    uivi,
    vi,
    wgd,
)
