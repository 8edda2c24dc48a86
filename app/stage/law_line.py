"""A line below a stage: what its methods keep of the variance by their laws."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import panel_material_ui as pmui

from stein_core import in_short
from steinlab.server.background import in_background
from steinlab.stage.setup import Setup


class LawLine:
    """Say what the methods on screen keep. The laws are slow, so a thread computes them.

    Args:
        later: later(call) calls on the event loop.

    Attributes:
        text: the component.
    """

    def __init__(self, later: Callable[[Callable[[], None]], object]):
        self.later, self.wanted = later, None
        self.dims: dict[str, int] = {}
        self.knobs: dict[str, Any] = {}
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
                line.later(lambda: there() and line.text.param.update(object=said, visible=bool(said)))

        dims, values = dict(self.dims), dict(self.knobs)
        in_background(lambda: sentences(dims, values), tell, tell, lambda: there() is not None)


def sentences(dims: Mapping[str, int], knobs: Mapping[str, Any]) -> str:
    """Return what methods keep by their laws.

    Args:
        dims: method -> dimension.
        knobs: those that differ from their defaults, over all methods.
    """
    return " ".join(said for method, dim in dims.items() if (said := in_short(method, dim, knobs)))
