"""Scene of a stage (density, contours, axes and list of read-outs) and the panels that move on it."""

from __future__ import annotations

import base64
from functools import lru_cache, partial
from typing import Any, Mapping, Sequence

import contourpy
import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import gaussian_kde

from stein_core import DIAGNOSTICS, METHODS, TARGETS, Spec, Target, target_of
from stein_core.contract.spec import Options, data_of, target_at
from steinlab.stage.run import Run
from steinlab.stage.wire import Panel, pack, rows
from steinlab.ui.colours import Look, looks_of

GRID, COARSE = 160, 40  # points of a density along each axis
GHOSTS = 150  # exact draws behind the particles
DRAWS = 2000  # exact draws that a marginal density is estimated from
SAMPLED = {"attract": "target's score", "repulse": "score of the noise", "guides": "σ around each μ(z)"}  # its marks
MASSES = (0.15, 0.4, 0.65, 0.85, 0.95, 0.99)  # share of the visible mass inside each contour


class Cards:
    """A view (see `steinlab.stage.contract.View`) of cards on a `stage.Stage`.

    A subclass has measured, the names of the diagnostics that it reads; scene(specs, knobs), which returns the `scene`
    of `stage.Stage` and is called on a scene thread; and panels(run, metrics), which returns the panels of `wire.pack`
    and is called on the session's worker thread.
    """

    def pack(self, run: Run, metrics: Sequence[Mapping[str, float]], begun: int) -> np.ndarray:
        return pack(self.panels(run, metrics), begun)


class SideBySide(Cards):
    """View of page Particles: a card for each method over the target's density.

    Args:
        metrics: names of the read-outs, the large ones first; by default all that are live.
    """

    def __init__(self, metrics: Sequence[str] | None = None):
        self.metrics = None if metrics is None else tuple(metrics)
        live = tuple(entry.name for entry in DIAGNOSTICS.entries() if entry.facts.live)
        self.measured = live if metrics is None else tuple(name for name in DIAGNOSTICS if name in metrics)

    def scene(self, specs: Sequence[Spec], knobs: Mapping[str, Any] = {}) -> dict:
        looks = looks_of([spec.method for spec in specs])
        cards = [
            card(
                METHODS[spec.method].label,
                read_outs(spec, self.metrics),
                accent=look,
                guides=spec.has_density,
                edit=not METHODS[spec.method].facts.sampler,
                particle="draw" if METHODS[spec.method].facts.sampler else None,
            )
            for look, spec in zip(looks, specs)
        ]
        return {"cards": cards, "backgrounds": [density_of(specs[0], knobs)], "note": target_of(specs[0]).start.note}

    def panels(self, run: Run, metrics: Sequence[Mapping[str, float]]) -> list[Panel]:
        return [
            Panel(
                frame.step,
                [values[one["name"]] for one in read_outs(stepper.spec, self.metrics)],
                rows(frame),
                stepper.spec.has_density,
                noisy=stepper.spec.has_density or target_of(stepper.spec).minibatch is not None,
            )
            for stepper, frame, values in zip(run.steppers, run.frames, metrics)
        ]


LARGE = 3  # read-outs


@lru_cache(maxsize=256)
def read_outs(spec: Spec, names: Sequence[str] | None = None) -> list[dict]:
    """Return the read-outs of a card, as in `stage.Stage`, the large ones first.

    Args:
        spec: what runs. What has no meaning for it is left out.
        names: of the diagnostics; by default all that are live.
    """
    target, facts = target_of(spec), METHODS[spec.method].facts
    there = {
        "density": spec.has_density,
        "kernel": facts.interacts,
        "several": not facts.single,
        "sample": target.truth.sample is not None,
    }
    known = [entry for entry in DIAGNOSTICS.entries() if all(there[need] for need in entry.facts.needs)]
    usable = {entry.name: entry for entry in known}
    if names is None:
        first = ["sample_variance", "force", "mmd" if "mmd" in usable else "mixture_elbo", "stein_trace"]
        names = [*first, *(entry.name for entry in known if entry.facts.live)]
    shown = [usable[name] for name in dict.fromkeys(names) if name in usable]
    exact = {} if target.truth.variance is None else {"sample_variance": float(np.mean(target.truth.variance))}
    exact |= {entry.name: entry.facts.ideal for entry in known if entry.facts.ideal is not None}
    return [
        {
            "name": entry.name,
            "label": entry.label,
            "log": entry.facts.log,
            "help": entry.summary,
            "big": i < LARGE,
            "truth": exact.get(entry.name),
        }
        for i, entry in enumerate(shown)
    ]


def card(
    title: str,
    metrics: Sequence[dict],
    *,
    accent: Look,
    background: int = 0,
    edit: bool = True,
    note: str = "",
    guides: bool = False,
    particle: str | None = None,
) -> dict:
    """Return one of a scene's "cards"; see `stage.Stage`."""
    kind = "guide" if guides else "point"
    return {
        "kind": kind,
        "particle": particle or kind,
        "title": title,
        "metrics": list(metrics),
        "accent": [accent.colour, accent.dark],
        "background": background,
        "edit": edit,
        "note": note,
    }


def density_of(spec: Spec, knobs: Mapping[str, Any] = {}, axes: tuple[int, int] | None = None) -> dict:
    """Return the background of `density` for the target of a spec. knobs: those of other things are ignored."""
    own = {name: value for name, value in spec.options.items() if name.startswith("target.")}
    moved = {name: value for name, value in knobs.items() if name.startswith("target.") and name in spec.knobs()}
    return density(spec.target, spec.dim, Options(own), Options(moved), axes)


@lru_cache(maxsize=64)
def density(
    name: str | Target,
    dim: int,
    options: Options = Options(),
    knobs: Options = Options(),
    axes: tuple[int, int] | None = None,
) -> dict:
    """Return a scene's background for a target.

    Its contours hold 15 to 99 % of the visible mass, and `levels` says how many lines each has. In one dimension it
    has the curve of the density instead. Above two dimensions it is the slice through the target's centre, or a kernel
    estimate of the target's reference draws.
    A target with mini-batches has no slice: its centre is where runs start, and may lie far from its mass.

    Args:
        name: of the target, or the Target.
        dim: its dimension.
        options: of the target by their full names.
        knobs: of the target by their full names, where they differ from the default.
        axes: the two coordinates; then contours are of their marginal density, estimated from exact draws if need be.
            None: the first two, and the slice.
    """
    spec = Spec(name, dim, options=options)
    target = target_at(spec, knobs)
    across, up = axes or (0, 1)
    drawn = draws_of(target) if axes and dim > 2 and not is_product(target, axes) else None
    x0, x1, y0, y1 = target.extent if (across, up) == (0, 1) or drawn is None else extent_of(drawn[:, [across, up]])
    of_rows = TARGETS[name].facts.data is not None
    cells, density = COARSE if of_rows else GRID, _densities(spec, knobs)  # rows of data make a point dear
    x = np.linspace(x0, x1, cells)
    if dim == 1:
        log_p = np.asarray(density(jnp.float32(x[:, None])), float)
        p = np.exp(log_p - log_p.max())
        curve = np.stack([x, p], axis=1).ravel().round(4).tolist()
        labels = [target.coordinates[0], "density / its maximum"]
        still = {"extent": [x0, x1, -0.15, 1.15], "labels": labels, "contours": [], "image": None}
        return {**still, "curve": curve, "area": float(np.trapezoid(p, x)), "draws": ghosts(target)}

    labels = [target.coordinates[across], target.coordinates[up]]
    still = {
        "extent": [x0, x1, y0, y1],
        "equal": target.truth.log_normalizer is not None,  # the coordinates of a posterior have units of their own
        "labels": labels,
        "contours": [],
        "image": None,
        "curve": None,
        "draws": ghosts(target, (across, up)),
    }
    if dim > 2 and axes is None and target.truth.reference is not None:
        drawn = np.asarray(target.truth.reference, float)
    if dim > 2 and drawn is None and target.minibatch is not None:
        labels[0] += f" (no contours in {dim} dimensions)"
        return still
    y = np.linspace(y0, y1, cells)
    points = np.tile(np.float32(target.start.center), (cells * cells, 1))
    points[:, [across, up]] = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    if drawn is not None:
        p = gaussian_kde(drawn[:, [across, up]].T)(points[:, [across, up]].T).reshape(cells, cells)
    else:
        log_p = np.asarray(density(points), float).reshape(cells, cells)
        p = np.exp(log_p - log_p.max())
    ranked = np.sort(p.ravel())[::-1]
    shares = np.cumsum(ranked) / ranked.sum()
    levels = [ranked[np.searchsorted(shares, mass)] for mass in MASSES]
    generator = contourpy.contour_generator(x, y, p)
    lines = [[line.ravel().round(4).tolist() for line in generator.lines(level)] for level in levels]
    shade = np.uint8(255 * np.mean([p >= level for level in levels], axis=0))  # a step darker inside each contour
    if dim > 2 and (axes is None or drawn is not None):
        exact = "exact draws" if target.truth.reference is None else "draws of NUTS"
        labels[0] += f" (contours: {exact})" if drawn is not None else f" (contours: a slice of {dim} dimensions)"
    image = {"width": cells, "height": cells, "data": base64.b64encode(shade.tobytes()).decode()}
    flat, counts = [line for level in lines for line in level], [len(level) for level in lines]
    return {**still, "contours": flat, "levels": counts, "image": image}


def _densities(spec: Spec, knobs: Options):
    values = tuple(np.float32(value) for value in knobs.values())
    return partial(_compiled_densities(spec, tuple(knobs)), values, data_of(spec))


@lru_cache(maxsize=16)
def _compiled_densities(spec: Spec, names: tuple[str, ...]):
    """Return the compiled function (values of the knobs `names`, data, points) -> log densities. No value compiles
    again."""

    def densities(values, data, points):
        log_density = target_at(spec, dict(zip(names, values)), data).log_density
        with jax.default_matmul_precision("highest"):  # as in a run
            if data is None:
                return jax.vmap(log_density)(points)
            return jax.lax.map(log_density, points, batch_size=COARSE)

    return jax.jit(densities)


def is_product(target: Target, axes: tuple[int, int]) -> bool:
    """Return whether the slice through the centre in two coordinates is their marginal density: they do not depend on
    the others, at random places."""
    hessians = jax.vmap(jax.hessian(target.log_density))
    places = np.random.default_rng(0).normal(target.start.center, target.start.scale, (8, target.dim))
    cross = np.delete(np.abs(hessians(jnp.asarray(places, float)))[:, list(axes)], list(axes), axis=2)
    return bool(np.all(cross < 1e-6))


def draws_of(target: Target) -> np.ndarray | None:
    """Return exact draws, or those of long chains, (k, d); None if there are neither."""
    if target.truth.sample is None:
        return None if target.truth.reference is None else np.asarray(target.truth.reference, float)
    return np.asarray(target.truth.sample(jax.random.key(1), DRAWS), float)


def extent_of(draws: np.ndarray) -> tuple[float, float, float, float]:
    """Return (x0, x1, y0, y1) around draws (k, 2)."""
    centre, width = draws.mean(axis=0), 4.0 * draws.std(axis=0)
    return tuple(float(round(centre[k] + side * width[k], 2)) for k in (0, 1) for side in (-1, 1))


def ghosts(target: Target, axes: tuple[int, int] = (0, 1)) -> list[float] | None:
    """Return exact draws of a target in two of its coordinates, flat, or None if it has no sampler."""
    if target.truth.sample is None:
        return None
    places = np.zeros((GHOSTS, 2))
    draws = np.asarray(target.truth.sample(jax.random.key(0), GHOSTS))[:, list(axes)[: target.dim]]
    places[:, : draws.shape[1]] = draws
    return places.ravel().round(3).tolist()
