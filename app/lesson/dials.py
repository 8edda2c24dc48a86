"""Numbers in a lesson's text that are sliders too: what they say, and how they move a figure's control."""

from __future__ import annotations

from typing import Any


def stops(control: Any) -> list:
    """Return the values that a control can take, from its lowest to its highest."""
    options = getattr(control, "options", None)
    if options is not None:
        return list(options.values() if isinstance(options, dict) else options)
    count = int(round((control.end - control.start) / control.step))
    return [control.start + i * control.step for i in range(count + 1)]


def read(control: Any) -> dict[str, Any]:
    """Return what the number of a control says: label, value, low, high and text. Choices count from 0."""
    allowed, value = stops(control), control.value
    said = {"label": getattr(control, "label", "") or control.name}
    if isinstance(value, (int, float)):
        return said | {"value": value, "low": allowed[0], "high": allowed[-1], "text": f"{value:.4g}"}
    return said | {"value": allowed.index(value), "low": 0, "high": len(allowed) - 1, "text": str(value)}


def move(control: Any, steps: int, value: float | None = None) -> None:
    """Move a control by so many stops; with a value, from the stop that is nearest to it."""
    allowed = stops(control)
    if isinstance(control.value, (int, float)):
        wanted = control.value if value is None else value
        at = min(range(len(allowed)), key=lambda i: abs(allowed[i] - wanted))
    else:
        at = allowed.index(control.value) if value is None else round(value)
    control.value = allowed[min(max(at + steps, 0), len(allowed) - 1)]
