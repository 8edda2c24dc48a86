"""Ten ways to fail: runs that go wrong, each with a sentence that says how, for page Start and for a lecture."""

from __future__ import annotations

from typing import NamedTuple

from steinlab.lesson.playlist import Playlist


class Failure(NamedTuple):
    """Hold one run that goes wrong.

    Args:
        name: what was done.
        sentence: what comes of it.
        query: its link, without the page.
        page: key of its page.
    """

    name: str
    sentence: str
    query: str
    page: str = "particles"

    @property
    def link(self) -> str:
        """The link of the app."""
        return f"?page={self.page}&{self.query}"


FAILURES = (
    Failure(
        "The step is too large",
        "SVGD's points fly away and never come back: out there no kernel reaches another point.",
        "target=gaussian&methods=svgd,smi&optimizer=sgd&method.step_size=8",
    ),
    Failure(
        "The kernel is too narrow",
        "Nobody feels a neighbour, so every point climbs to the top alone. Points that meet there kick each other out.",
        "target=gaussian&methods=svgd,map&method.particles=30&bandwidth.factor=0.05",
    ),
    Failure(
        "The repulsion is too strong",
        "With alpha = 10 the points settle at eight times the variance, and nothing looks wrong.",
        "target=gaussian&methods=svgd,smi&method.alpha=10",
    ),
    Failure(
        "Two modes are lost",
        "All points start on the left, and nearly all stay at the mode that is nearest.",
        "target=three_modes&methods=svgd,langevin&init.shift=-4",
    ),
    Failure(
        "SVGD in 50 dimensions",
        "It converges, and 6 % of the variance is left.",
        "target=gaussian&dim=50&methods=svgd,smi",
    ),
    Failure(
        "NumPyro's softplus, twice",
        "The width of a guide goes through softplus twice, so its density is wrong and the guides are too narrow.",
        "target=gaussian&dim=10&methods=smi&guide.density=twice&method.alpha=1",
    ),
    Failure(
        "One guide on a tilted posterior",
        "A single normal without correlations keeps 36 % of the variance.",
        "target=correlated&methods=vi,smi&method.particles=1",
    ),
    Failure(
        "Units that differ",
        "The log of the noise has a small scale, but one bandwidth serves all coordinates. It shrinks to a sixth.",
        "target=stackloss&methods=svgd",
    ),
    Failure(
        "A kernel for each coordinate",
        "The Stein trace says .95, and the widest direction has lost 99 % of its variance.",
        "target=autoregression&dim=10&methods=svgd,blocks&optimizer=sgd&method.particles=50&method.step_size=0.05",
        "remedy",
    ),
    Failure(
        "A small discrepancy, the wrong weights",
        "KSIVI's discrepancy is nearly zero, and a tenth of the mass is on the wrong side.",
        "target=unbalanced&methods=ksivi&method.particles=64&method.step_size=0.002&method.annealing=1000",
        "samplers",
    ),
)


def lecture() -> str:
    """Return the link of a lecture that shows all of them, one after the other."""
    stops = tuple(f"{one.page}?{one.query}" for one in FAILURES)
    notes = tuple(f"{one.name}. {one.sentence}" for one in FAILURES)
    return f"?page=lecture&{Playlist(stops, notes).to_query(notes=True)}"
