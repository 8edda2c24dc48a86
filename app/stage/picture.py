"""python -m steinlab.stage.picture: write assets/particles.svg, the animation of the front page and the README."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from stein_core import METHODS, Frame, Stepper, compile, target_of
from steinlab.server.folders import ASSETS
from steinlab.stage.scene import density
from steinlab.stage.setup import Setup

FILE = ASSETS / "particles.svg"
SETUP = Setup("banana", ("svgd", "smi"), seed=3, knobs={"method.alpha": 0.05})  # the first preset of page Particles
TITLES = {"svgd": "SVGD moves points", "smi": "SMI moves small bell curves"}
LOOKS = np.unique(np.r_[0:10, np.geomspace(10, 1000, 34)].astype(int))  # steps that are drawn: fewer later
SECONDS, HELD = 10, 0.72  # length of a round, and the share of it after which nothing moves
SIDE, GAP, TOP, FOOT = 300, 20, 30, 30
SHADE = "light-dark(#46566B, #8FA3BD)"  # of a density, as on the stage


def picture() -> str:
    """Return the SVG: a panel for each method over the target's contours."""
    width = len(SETUP.methods) * (SIDE + GAP) - GAP
    panels = "".join(panel(method, i * (SIDE + GAP)) for i, method in enumerate(SETUP.methods))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {SIDE + TOP + FOOT}" role="img" '
        'font-family="sans-serif">'
        "<style>:root { color-scheme: light dark }</style>"
        "<title>SVGD's points shrink to a dot in a banana-shaped posterior; SMI's guides stay along its arms</title>"
        f"{panels}</svg>\n"
    )


def panel(method: str, left: float) -> str:
    """Return the panel of one method.

    Args:
        method: its name.
        left: x coordinate of the panel's left side, in pixels.
    """
    still = density(SETUP.target, 2)
    stepper = compile(SETUP.spec(method, 32))
    frames = recorded(stepper, SETUP.recipe(method, 32).knobs)
    x0, x1, y0, y1 = still["extent"]
    scale = np.array([SIDE / (x1 - x0), SIDE / (y1 - y0)])

    def to_pixels(points):
        return (np.asarray(points) - (x0, y0)) * scale * (1, -1) + (left, TOP + SIDE)

    lines = "".join(f'<path d="{shape(level, to_pixels)}"/>' for level in levels(still))
    shaded = f'style="fill: {SHADE}; stroke: {SHADE}" fill-rule="evenodd" fill-opacity="0.085" stroke-opacity="0.28"'
    where = np.array([to_pixels(frame.locations) for frame in frames]).swapaxes(0, 1)
    sizes = np.array([frame.scales * scale for frame in frames]).swapaxes(0, 1)
    colour = "light-dark({}, {})".format(*METHODS[method].facts.colour)
    points = not stepper.spec.has_density
    marks = "".join(moving(where[i], None if points else sizes[i], colour) for i in range(len(where)))
    clip = f'<clipPath id="{method}"><rect x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}" rx="6"/></clipPath>'
    box = f'x="{left + 0.5}" y="{TOP + 0.5}" width="{SIDE - 1}" height="{SIDE - 1}"'
    frame = f'<rect {box} rx="6" fill="none" stroke="#8888"/>'
    title = f'<text x="{left}" y="18" font-size="15" font-weight="600" style="fill: {colour}">{TITLES[method]}</text>'
    kept = frames[-1].metrics["sample_variance"] / np.mean(target_of(stepper.spec).truth.variance)
    place = f'x="{left}" y="{TOP + SIDE + 21}"'
    said = f'<text {place} font-size="15" fill="currentColor">{100 * kept:.0f} % of the variance left</text>'
    return f'{clip}{title}<g clip-path="url(#{method})"><g {shaded}>{lines}</g>{marks}</g>{frame}{said}'


def levels(still: dict) -> list[list[list[float]]]:
    """Return the lines of each contour of a density."""
    lines = iter(still["contours"])
    return [list(islice(lines, count)) for count in still["levels"]]


def shape(lines: Sequence[Sequence[float]], to_pixels) -> str:
    """Return the path of the region inside the lines of one contour, for the rule `evenodd`."""
    ways = (to_pixels(np.reshape(line, (-1, 2))[::3]) for line in lines)
    return "".join(f"M{' '.join(f'{x:.0f},{y:.0f}' for x, y in way)}z" for way in ways)


def recorded(stepper: Stepper, knobs) -> list[Frame]:
    """Return the frames at the steps LOOKS."""
    state, frames = stepper.reset(SETUP.seed, knobs), []
    for before, step in zip([0, *LOOKS], LOOKS):
        state = stepper.advance(state, knobs, int(step - before)) if step > before else state
        frames.append(stepper.look(state, knobs))
    return frames


def moving(where: np.ndarray, sizes: np.ndarray | None, colour: str) -> str:
    """Return a moving dot, or an ellipse whose size changes too.

    Args:
        where: (k, 2) positions in pixels.
        sizes: (k, 2) radii in pixels, None for a dot.
        colour: its colour.
    """
    if sizes is None:
        path = animated("cx", where[:, 0]) + animated("cy", where[:, 1])
        return f'<circle r="4.5" style="fill: {colour}">{path}</circle>'
    parts = {"cx": where[:, 0], "cy": where[:, 1], "rx": sizes[:, 0], "ry": sizes[:, 1]}
    ellipse = "".join(animated(name, values) for name, values in parts.items())
    rim = 'fill-opacity="0.1" stroke-opacity="0.6" stroke-width="1.5"'
    return f'<ellipse style="fill: {colour}; stroke: {colour}" {rim}>{ellipse}</ellipse>'


def animated(name: str, values: np.ndarray) -> str:
    """Return the animation of one attribute over a round. If a script stops the animation, its end stays."""
    texts = [f"{value:.1f}" for value in (*values, values[-1])]
    times = [f"{t:.3g}" for t in (*np.linspace(0, HELD, len(values)), 1)]
    return (
        f'<animate attributeName="{name}" dur="{SECONDS}s" repeatCount="indefinite" '
        f'values="{";".join(texts)}" keyTimes="{";".join(times)}"/>'
    )


if __name__ == "__main__":
    FILE.write_text(picture())
    print(f"{FILE}: {FILE.stat().st_size / 1e3:.0f} kB")
