"""When a run of a sweep has settled."""

from dataclasses import dataclass

from stein_core.base.errors import short, unknown

FAST, SLOW = 35, 350  # steps of the two moving means (SMI paper, sec. 6)
RULES = ("means", "recursion")
MOST_STEPS = 10**9  # they are counted in 32 bits


@dataclass(frozen=True)
class Stop:
    """Say when a run has settled: its force no longer falls, and it is small beside the attraction.

    Each time the rule fires, the step size is divided by 10. After the last stage the run counts as converged if its
    force is below 1e-4 of its attraction. Otherwise it restarts with the first step size, since it may be near a saddle
    point. Methods with noise in their force (Monte Carlo draws, Langevin) skip that check. The check cannot detect
    unstable fixed points.

    Args:
        rule: "means" fires if the mean force norm over the last 35 steps is not below that over the last 350. It looks
            every 35 steps, from the 350th on (SMI paper, sec. 6). "recursion" is the rule of the published code: two
            discounted averages that are not normalised, and fast > 2 slow. It is kept to compare.
        stages: how often the rule fires in all.
        least: fewest steps of a stage.
        noisy: the same for a noisy method, whose noise hides that it still drifts.
        most: steps after which a run ends as not converged.

    Raises:
        ValueError: names the field, the value and what is allowed.
    """

    rule: str = "means"
    stages: int = 3
    least: int = SLOW
    noisy: int = 2450
    most: int = 60_000

    def __post_init__(self):
        if self.rule not in RULES:
            raise unknown("stop rule", self.rule, RULES)
        if not 1 <= self.stages <= 6:
            raise ValueError(f"stages = {short(self.stages)} is out of range; allowed: 1 to 6.")
        for name in ("least", "noisy", "most"):
            if getattr(self, name) < SLOW:
                raise ValueError(f"{name} = {short(getattr(self, name))} is too small; allowed: {SLOW} or more.")
            if getattr(self, name) > MOST_STEPS:
                raise ValueError(f"{name} = {short(getattr(self, name))} is too large; allowed: at most {MOST_STEPS}.")
