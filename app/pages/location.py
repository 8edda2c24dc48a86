"""Page "Location and variance": SMI's particles in both of their spaces, side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

import numpy as np
import panel_material_ui as pmui
from scipy.special import expit

from stein_core import GUIDES, TARGETS, Frame, Spec, target_of
from stein_core.theory.fixed_points import FixedPoint, two_guides, why_none
from steinlab.stage.live_page import KEYS, PRESETS, Live
from steinlab.stage.programs import FIRST_CAPACITY
from steinlab.stage.run import Run
from steinlab.stage.scene import Cards, card, density_of, read_outs
from steinlab.stage.setup import Setup
from steinlab.stage.wire import Panel, rows
from steinlab.ui import link
from steinlab.ui.colours import look_of

AXES = {"u": (-3.0, 2.0), "sd": (-0.06, 1.5), "variance": (-0.08, 2.0)}  # of the panel of scales: first extents
VIEW = (link.Field("axis", link.one_of("axis in the link", AXES)),)
FAULT = {"guide.density": "twice"}
CARDS = (  # title, method, whether it is the scale card, read-outs
    ("SMI: locations", 0, False, ("between_variance", "mixture_elbo")),
    ("SMI: scales", 0, True, ("within_variance", "components")),
    ("SVGD: locations", 1, False, ("sample_variance", "force")),
)
DIAGONAL_ONLY = "Only a diagonal normal has its scales as coordinates."
HELP = (
    "One particle of SMI is a normal distribution, with a location and a scale in each dimension. Attraction and "
    "repulsion act on both. Compare lengths of arrows within one panel, not across panels."
)
BUG = (
    "Press *Show NumPyro's bug*: NumPyro 0.16 to 0.22 takes softplus of each scale twice when it computes a guide's "
    "density. Both locations then go to the centre and some standard deviations fall to 0; correct SMI splits along "
    "one axis, unless alpha is large."
)


def is_faulty(spec: Spec) -> bool:
    """Return whether a guide's density is that of NumPyro's bug."""
    return FAULT.items() <= spec.options.items()


def has_scales(spec: Spec) -> bool:
    """Return whether a particle is (locations, scales)."""
    return spec.has_density and GUIDES[spec.guide].facts.mean_field


def on_axis(u: np.ndarray, axis: str) -> tuple[np.ndarray, np.ndarray]:
    """Map the unconstrained scale u to the chosen axis.

    Args:
        u: any shape; sd = softplus(u).
        axis: "u", "sd" or "variance".

    Returns:
        The coordinate and its derivative by u, which carries the forces; both in the shape of u.
    """
    sd, slope = np.logaddexp(0.0, u), expit(u)
    return {"u": (u, np.ones_like(u)), "sd": (sd, slope), "variance": (sd**2, 2.0 * sd * slope)}[axis]


def background_of(axis: str) -> int:
    """Return the index of the background of the scales; that of the locations is 0."""
    return 1 + list(AXES).index(axis)


@dataclass(eq=False)
class Spaces(Cards):
    """View of SMI's locations, SMI's scales on the chosen axis, and SVGD's locations; see
    `steinlab.stage.scene.SideBySide`."""

    measured = tuple(dict.fromkeys(name for *_, names in CARDS for name in names))
    axis: str = "sd"
    point: FixedPoint | None = field(default=None, init=False)  # of what was last shown
    why_none: str = field(default="", init=False)

    def scene(self, specs: Sequence[Spec], knobs: Mapping[str, Any] = {}) -> dict:
        here = density_of(specs[0], knobs)
        cards = [
            card(
                title,
                read_outs(specs[method], names),
                accent=look_of(("smi", "svgd")[method]),
                edit=not scales,
                guides=specs[method].has_density,
                background=background_of(self.axis) if scales else 0,
                note=DIAGONAL_ONLY if scales and not has_scales(specs[0]) else "",
            )
            for title, method, scales, names in CARDS
        ]
        coordinates = target_of(specs[0]).coordinates[:2]
        scales = [
            {
                "extent": [*extent, *extent],
                "equal": True,
                "labels": [f"{axis} of {name}" for name in coordinates],
                "contours": [],
                "image": None,
                "curve": None,
                "draws": None,
            }
            for axis, extent in AXES.items()
        ]
        return {"cards": cards, "backgrounds": [here, *scales]}

    def panels(self, run: Run, metrics: Sequence[Mapping[str, float]]) -> list[Panel]:
        (smi, svgd), spec, axis = run.frames, run.steppers[0].spec, self.axis
        knobs = {name: value for name, value in run.knobs.items() if name in spec.knobs()}
        self.point, self.why_none = two_guides(spec, knobs), why_none(spec, knobs)
        noisy = spec.has_density
        scales = rows_of_scales(smi, axis) if has_scales(spec) else np.empty((0, 9))
        if is_faulty(spec):  # its density is not that of its draws
            metrics = [{**metrics[0], "components": np.nan, "mixture_elbo": np.nan}, metrics[1]]
        specs = [stepper.spec for stepper in run.steppers]
        first, second, third = (
            [metrics[method][one["name"]] for one in read_outs(specs[method], names)] for _, method, _, names in CARDS
        )
        return [
            Panel(smi.step, first, rows(smi), noisy, 0, locations_of(self.point, spec.dim), noisy),
            Panel(smi.step, second, scales, False, background_of(axis), scales_of(self.point, axis, spec.dim), True),
            Panel(svgd.step, third, rows(svgd), False),
        ]


def rows_of_scales(frame: Frame, axis: str) -> np.ndarray:
    """Return what the panel of scales draws of a frame.

    Returns:
        (m, 9) as in `steinlab.stage.wire.Panel`: the scale coordinates of the first two dimensions, and the forces on u
        pushed forward to them.
    """
    d = frame.locations.shape[1]
    shown = slice(d, d + min(d, 2))
    value, slope = on_axis(frame.particles[:, shown], axis)
    table = np.zeros((len(value), 4, 2), np.float32)
    parts = value, np.zeros_like(value), slope * frame.attract[:, shown], slope * frame.repulse[:, shown]
    for k, part in enumerate(parts):
        table[:, k, : part.shape[1]] = part
    return np.column_stack([table.reshape(-1, 8), np.zeros(len(table))])


def locations_of(point: FixedPoint | None, dim: int) -> np.ndarray:
    """Return the fixed points (k, 2) in the space of locations. The pair may also split along an axis that is not
    shown."""
    if point is None:
        return np.empty((0, 2))
    a = point.location
    unseen = [(0, 0)] * (dim > 2)
    return np.array([(a, 0), (-a, 0), (0, a), (0, -a), *unseen] if a > 0 else [(0, 0)])


def scales_of(point: FixedPoint | None, axis: str, dim: int) -> np.ndarray:
    """Return the fixed points (k, 2) in the space of scales."""
    if point is None:
        return np.empty((0, 2))
    unseen = [(1.0, 1.0)] * (dim > 2)
    sd = np.array([(point.scale, 1.0), (1.0, point.scale), *unseen] if point.location > 0 else [(1.0, 1.0)])
    return on_axis(np.log(np.expm1(sd)), axis)[0]


class Location(Live):
    """Page "Location and variance"; see `steinlab.contents` for the contract of a page."""

    key = "location"
    plain = Setup("gaussian", ("smi", "svgd"), draws=100, knobs={"method.particles": 2, "guide.width": 0.5})
    presets, views = PRESETS["location"], Spaces
    marks = {
        "attract": "attraction",
        "repulse": "repulsion",
        "sum": "sum",
        "guides": "guides",
        "fixed": "exact fixed points",
        "trails": "trails",
    }
    drawn = ["attract", "repulse", "guides", "fixed"]

    def __init__(self, shell, query: dict[str, str]):
        self.view, query, problems = self.view_of(query)
        super().__init__(shell, query, self.view, problems)
        self.choices.target.options = {e.label: e.name for e in TARGETS.listed() if e.facts.dims[1] > 1}
        self.axis = pmui.Select(
            label="Scales as",
            options=list(AXES),
            value=self.view.axis,
            size="small",
            width=120,
            margin=(6, 8),
        )
        self.axis.param.watch(self.on_axis_chosen, "value")
        self.fault = pmui.Toggle(label="Show NumPyro's bug", icon="bug_report", size="small", margin=(2, 8))
        self.fault.param.watch(lambda event: self.chosen(guide=None, options=FAULT if event.new else {}), "value")
        text = {"variant": "body2", "sizing_mode": "stretch_width", "margin": (2, 8)}
        self.components = pmui.Typography("–", variant="h5", margin=(2, 8))
        self.meaning, self.variances, self.exact = (pmui.Typography("", **text) for _ in range(3))
        self.sidebar = self.choices.groups
        column = {"sizing_mode": "stretch_width", "min_width": 300, "margin": (4, 8)}
        foot = [
            pmui.FlexBox(
                pmui.Column(self.components, self.meaning, self.variances, self.exact, **column),
                pmui.Column(self.fault, pmui.Typography(BUG, **text), **column),
                sizing_mode="stretch_width",
            ),
            pmui.FlexBox(self.exports, self.reading, align_items="center", sizing_mode="stretch_width"),
            pmui.Typography(f"{HELP} {KEYS}", variant="caption", sizing_mode="stretch_width", margin=(4, 10)),
        ]
        self.lecture.around += [*self.warnings, *foot, self.axis]
        top = self.top(self.axis)
        self.main = [
            pmui.Column(
                *self.warnings,
                *top,
                self.stage,
                self.transport.row,
                self.read_outs,
                self.law.text,
                *foot,
                sizing_mode="stretch_width",
                margin=(4, 12),
            )
        ]
        self.quietly(self.show_setup, self.session.linked())

    @classmethod
    def view_of(cls, query: dict[str, str]) -> tuple[Spaces, dict[str, str], list[str]]:
        of_view, rest = link.split(VIEW, query)
        view, problems = link.read(VIEW, of_view, Spaces())
        return view, rest, [*problems.values()]

    @classmethod
    def unfit(cls, setup: Setup) -> str:
        if setup.methods != cls.plain.methods:
            return "This page always shows SMI and SVGD; the run in the link was ignored."
        if setup.spec("smi", FIRST_CAPACITY).dim < 2:
            return "This page needs two dimensions or more; the run in the link was ignored."
        return ""

    def open(self, query: dict[str, str]):
        super().open(link.split(VIEW, query)[1])

    def show_setup(self, setup: Setup):
        super().show_setup(setup)
        self.choices.dim.start = max(2, self.choices.dim.start)
        self.fault.value = is_faulty(setup.spec("smi", FIRST_CAPACITY))

    def refresh(self):
        super().refresh()
        if not (self.session.metrics and self.session.frames):  # a new choice compiles
            self.components.object = "–"
            for text in (self.meaning, self.variances, self.exact):
                text.object = ""
            return
        smi, count = self.session.metrics[0], len(self.session.frames[0].locations)
        setup, point = self.session.linked(), self.view.point
        known = np.isfinite(smi["components"]) and not is_faulty(setup.spec("smi", FIRST_CAPACITY))
        self.components.object = "Effective components" if known else "No effective components"
        self.meaning.object = (
            f"Their number, exp(L − L_up), is 1 if all guides are alike and {count} if none overlap."
            if known
            else "Point masses have no effective number."
            if not setup.spec("smi", FIRST_CAPACITY).has_density
            else "The bug's density is not that of its draws, so there is no effective number and no ELBO."
        )
        exact = target_of(setup.spec("smi", FIRST_CAPACITY)).truth.variance
        truth = "not known in closed form" if exact is None else f"{np.mean(exact):.4g}"
        self.variances.object = (
            f"Variance, mean over the dimensions = within guides + between guides; the target's is {truth}."
        )
        if point is None:
            self.exact.object = f"The exact fixed point is {self.view.why_none}."
        elif point.location == 0:
            self.exact.object = "Exact fixed point: both guides are the target itself."
        else:
            self.exact.object = (
                f"Exact fixed point: locations ±{point.location:.4f}, sd {point.scale:.4f} and variance "
                f"{point.variance:.4f} on one axis; 0, 1 and 1 across."
                + " Runs leave it: with so much repulsion one guide narrows and the other widens."
                * (not point.stable)
            )

    def on_axis_chosen(self, event):
        self.view.axis = event.new
        self.session.redraw()

    def link_of(self, setup: Setup) -> str:
        of_view = link.write(VIEW, self.view, Spaces())
        return super().link_of(setup) + f"&{of_view}" * bool(of_view)
