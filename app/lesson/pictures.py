"""python -m steinlab.lesson.pictures: write assets/lessons_1.svg to 4.svg, a picture for each group of lessons."""

from __future__ import annotations

import json

import numpy as np

from stein_core import METHODS, compile, theory
from stein_core.targets.small_networks import gap_data
from steinlab.server.folders import ASSETS
from steinlab.stage.picture import SETUP, SHADE, levels, shape
from steinlab.stage.scene import density

WIDTH, HEIGHT, EDGE = 240, 110, 6
FILES = tuple(ASSETS / f"lessons_{i}.svg" for i in (1, 2, 3, 4))


class Plot:
    """A small picture in its own units; y points up.

    Args:
        extent: (x0, x1, y0, y1) that the picture shows.
        title: what it shows, for those who cannot see it.
    """

    def __init__(self, extent: tuple[float, float, float, float], title: str):
        x0, x1, y0, y1 = extent
        self.low = np.array([x0, y1])
        self.scale = np.array([(WIDTH - 2 * EDGE) / (x1 - x0), (HEIGHT - 2 * EDGE) / (y0 - y1)])
        self.title, self.parts = title, []

    def pixels(self, points) -> np.ndarray:
        """Return points (k, 2) in pixels."""
        return (np.asarray(points, float) - self.low) * self.scale + EDGE

    def line(self, points, style: str) -> None:
        """Draw a line, or an area if the style has a fill."""
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in self.pixels(points))
        self.parts.append(f'<path d="M{way}" style="fill: none; {style}"/>')

    def dots(self, points, radii, style: str) -> None:
        """Draw dots with radii (k, 2) in pixels."""
        for (x, y), (rx, ry) in zip(self.pixels(points), np.broadcast_to(radii, (len(points), 2))):
            self.parts.append(f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{rx:.1f}" ry="{ry:.1f}" style="{style}"/>')

    def svg(self) -> str:
        """Return the picture."""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        return f"{head}<title>{self.title}</title>{''.join(self.parts)}</svg>\n"


def colour(method: str) -> str:
    """Return the colour of a method in both themes."""
    return "light-dark({}, {})".format(*METHODS[method].facts.colour)


def collapse() -> Plot:
    """Draw the variance of 5 points of SVGD against the dimension: the exact law, under 1."""
    plot = Plot((0, 40, 0, 1.1), "The variance that SVGD keeps falls with the dimension")
    dims = np.arange(4, 41)
    law = [theory.simplex_variance(int(d), 5) for d in dims]
    plot.line([(0, 1), (40, 1)], "stroke: currentColor; stroke-width: 1.5; stroke-dasharray: 5 4")
    plot.line(np.column_stack([dims, law]), f"stroke: {colour('svgd')}; stroke-width: 3")
    return plot


def guides() -> Plot:
    """Draw SMI's guides at rest along the banana."""
    still = density(SETUP.target, 2)
    plot = Plot((-5.5, 5.5, -3, 3.5), "SMI's guides along the arms of a banana")
    for level in levels(still):
        way = shape(level, plot.pixels)
        plot.parts.append(f'<path d="{way}" style="fill: {SHADE}; fill-opacity: 0.085; fill-rule: evenodd"/>')
    stepper, knobs = compile(SETUP.spec("smi", 32)), SETUP.recipe("smi", 32).knobs
    frame = stepper.look(stepper.advance(stepper.reset(SETUP.seed, knobs), knobs, 1000), knobs)
    style = f"fill: {colour('smi')}; fill-opacity: 0.1; stroke: {colour('smi')}; stroke-opacity: 0.6"
    plot.dots(frame.locations, frame.scales * np.abs(plot.scale), style)
    return plot


def width() -> Plot:
    """Draw a posterior and a fit that is too narrow, by the measured ratio of page Your posterior."""
    found = json.loads((ASSETS / "posterior_example.json").read_text(encoding="utf-8"))["few"]["findings"]["width"]
    x = np.linspace(-3.5, 3.5, 80)
    plot = Plot((-3.5, 3.5, 0, 0.5), "A fit that is narrower than its posterior")
    for sd, style in ((1.0, f"fill: {SHADE}; fill-opacity: 0.3"), (found["value"], f"stroke: {colour('svgd')}")):
        bell = np.exp(-0.5 * (x / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        plot.line(np.column_stack([x, bell]), f"{style}; stroke-width: 2.5")
    return plot


def band() -> Plot:
    """Draw the band of a network between two blobs of data, by NUTS."""
    with np.load(ASSETS / "functions_nuts_50.npz", allow_pickle=False) as kept:
        x, values = kept["x"], kept["values"].reshape(-1, len(kept["x"]))
    mean, sd = values.mean(axis=0), values.std(axis=0)
    plot = Plot((x[0], x[-1], -9, 9), "The band of a network is wide where there are no data")
    edge = np.column_stack([np.r_[x, x[::-1]], np.r_[mean + 2 * sd, (mean - 2 * sd)[::-1]]])
    plot.line(np.clip(edge, -9, 9), f"fill: {SHADE}; fill-opacity: 0.3")
    plot.line(np.column_stack([x, mean]), f"stroke: {colour('fsvgd')}; stroke-width: 2")
    plot.dots(np.asarray(gap_data())[::3, :2], (2, 2), "fill: currentColor")
    return plot


if __name__ == "__main__":
    for file, draw in zip(FILES, (collapse, guides, width, band)):
        file.write_text(draw().svg(), encoding="utf-8")
        print(f"{file}: {file.stat().st_size / 1e3:.1f} kB")
