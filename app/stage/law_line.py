"""A line below a stage: what its methods keep of the variance by their laws, and which of them are at rest."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import panel_material_ui as pmui

from stein_core import METHODS, in_short
from steinlab.server.background import in_background
from steinlab.stage.setup import Setup


class LawLine:
    """Say what the methods on screen keep, and which are at rest. The laws are slow, so a thread computes them.

    Args:
        later: later(call) calls on the event loop.

    Attributes:
        text: the component.
    """

    def __init__(self, later: Callable[[Callable[[], None]], object]):
        self.later, self.wanted = later, None
        self.dims: dict[str, int] = {}
        self.knobs: dict[str, Any] = {}
        self.laws = self.still = ""
        self.text = pmui.Typography("", variant="body2", visible=False, sizing_mode="stretch_width", margin=(4, 10))

    def show(self, setup: Setup) -> None:
        """Speak of a Setup."""
        self.dims = {method: setup.spec(method, 2).dim for method in setup.methods}
        self.knobs = dict(setup.knobs)
        self.turn({})

    def turn(self, knobs: Mapping[str, Any]) -> None:
        """Speak of other knobs."""
        self.knobs |= knobs
        key = (tuple(self.dims.items()), tuple(sorted(self.knobs.items())))
        if key == self.wanted:
            return
        self.wanted, own = key, weakref.ref(self)

        def there() -> LawLine | None:  # a thread must not keep a page that is closed meanwhile
            line = own()
            return line if line is not None and getattr(line, "wanted", None) == key else None

        def tell(said: str) -> None:
            if line := there():
                line.later(lambda: there() and line.say(laws=said))

        dims, values = dict(self.dims), dict(self.knobs)
        in_background(lambda: sentences(dims, values), tell, tell, lambda: there() is not None)

    def rest(self, since: Mapping[str, int | None]) -> None:
        """Say which methods are at rest.

        Args:
            since: method -> the step from which on, or None.
        """
        known = {METHODS[method].label: step for method, step in since.items() if step is not None}
        self.say(still=" ".join(f"{label} is at rest since step {step:,}." for label, step in known.items()))

    def say(self, **parts: str) -> None:
        """Show other `laws`, or another `still`."""
        vars(self).update(parts)
        said = " ".join(filter(None, [self.laws, self.still]))
        self.text.param.update(object=said, visible=bool(said))


def sentences(dims: Mapping[str, int], knobs: Mapping[str, Any]) -> str:
    """Return what methods keep by their laws.

    Args:
        dims: method -> dimension.
        knobs: those that differ from their defaults, over all methods.
    """
    return " ".join(said for method, dim in dims.items() if (said := in_short(method, dim, knobs)))
