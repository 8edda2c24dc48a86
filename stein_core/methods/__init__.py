"""One method a file. A method is a factory (problem, **options, **knobs) -> Method, and `facts.MethodFacts` describes
it."""

from stein_core.methods import (  # noqa: F401  (importing registers)
    annealed,
    damped,
    ensemble,
    fsvgd,
    fw,
    hybrid,
    langevin,
    map,
    mmd,
    noisy_adam,
    psgld,
    resampled,
    sgld,
    smi,
    stochastic,
    svgd,
    vi,
    wgd,
)
