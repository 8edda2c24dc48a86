"""What the stage draws of a loop: a card, a background, and the panel of each frame."""

from __future__ import annotations

import numpy as np

from steinlab.stage.wire import Panel
from steinlab.watching.feed import Feed
from steinlab.watching.recording import Seen

SHOWN = 4096  # particles that are drawn
ROOM = 0.5  # around the first particles, as a part of their range, if no density is known
READ_OUTS = (  # name, label, help
    (
        "variance",
        "variance",
        "Mean over the coordinates, with 1/(n-1). Of guides it is their mixture's, with 1/n.",
    ),
    (
        "trace",
        "Stein trace",
        "Exact draws have 1. Less shows that the particles are too close to each other.",
    ),
    ("mean_x", "mean across", "Mean of the coordinate that is drawn from left to right."),
    ("sd_x", "sd across", "Standard deviation of that coordinate."),
    ("mean_y", "mean upwards", "Mean of the coordinate that is drawn upwards."),
    ("sd_y", "sd upwards", "Standard deviation of that coordinate."),
)
LARGE = 2  # read-outs


def card_of(about: dict, guides: bool) -> dict:
    """Return the card of a `stage.Stage`. guides: whether particles have sds."""
    kind = "guide" if guides else "point"
    known = about.get("dim") is not None and not guides  # else no Stein trace is computed
    named = [out for out in READ_OUTS if (known or out[0] != "trace") and (about.get("dim") != 1 or "_y" not in out[0])]
    metrics = [
        {"name": name, "label": label, "log": name == "variance", "help": text, "big": i < LARGE,
         "truth": {"variance": about.get("variance"), "trace": 1.0}.get(name)}
        for i, (name, label, text) in enumerate(named)
    ]  # fmt: skip
    return {
        "title": about.get("title") or "Particles",
        "kind": kind,
        "particle": kind,
        "metrics": metrics,
        "accent": about.get("accent"),
        "background": 0,
        "edit": False,
        "note": "",
    }


def background_of(feed: Feed, axes: tuple[int, int]) -> dict:
    """Return the background of a `stage.Stage` for two coordinates. The loop knows the density of the first two."""
    about = feed.about
    shown = [axis for axis in axes if axis < feed.ghosts.shape[1]]
    places = np.zeros((len(feed.ghosts), 2))
    places[:, : len(shown)] = feed.ghosts[:, shown]
    draws = places.ravel().round(3).tolist() if len(places) else None
    if axes == (0, 1) and "background" in about:
        return {**about["background"], "draws": draws}
    first, names = feed.recording.frames[0].particles, feed.recording.coordinates
    if "spans" in about:
        extent = [*about["spans"][axes[0]], *about["spans"][axes[1]]]
    else:
        extent = [end for axis in axes for end in room_of(first[:, axis] if axis < first.shape[1] else np.zeros(1))]
    labels = [names[axis] if axis < len(names) else "" for axis in axes]
    return {
        "extent": extent,
        "equal": False,
        "labels": labels,
        "contours": [],
        "image": None,
        "curve": None,
        "draws": draws,
    }


def room_of(values: np.ndarray) -> tuple[float, float]:
    """Return an interval around values, with some room."""
    low, high = float(values.min()), float(values.max())
    room = ROOM * (high - low) or 1.0
    return low - room, high + room


def panel_of(frame: Seen, axes: tuple[int, int], trace: float | None) -> Panel:
    """Return what moves: the particles in two coordinates, and the read-outs of `READ_OUTS`. trace: the Stein trace;
    None: there is none."""
    particles, scales = frame.particles, frame.scales
    n, d = particles.shape
    drawn = np.linspace(0, n - 1, min(n, SHOWN)).astype(int)
    rows = np.zeros((len(drawn), 9), np.float32)
    for k, axis in enumerate(axes[: min(d, 2)]):
        rows[:, k] = particles[drawn, axis]
        if scales is not None:
            rows[:, 2 + k] = scales[drawn, axis]
    within = 0.0 if scales is None else np.mean(scales**2, axis=0)
    between = particles.var(axis=0, ddof=1 if scales is None and n > 1 else 0)
    variance = between + within
    each = [value for axis in axes[: min(d, 2)] for value in (particles[:, axis].mean(), np.sqrt(variance[axis]))]
    return Panel(frame.step, [variance.mean(), *([] if trace is None else [trace]), *each], rows, scales is not None)
