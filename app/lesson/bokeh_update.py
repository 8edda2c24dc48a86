"""Update a Bokeh figure in place, so that nothing flickers: a new drawing of equal structure gives its values to the
old figure."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from bokeh.core.property.descriptors import PropertyDescriptor
from bokeh.core.property.readonly import Readonly
from bokeh.model import Model
from bokeh.models import ColumnDataSource, DataRange1d

OWN = ("name", "tags", "subscribed_events", "js_event_callbacks", "js_property_callbacks", "syncable")

_own: WeakKeyDictionary[Model, set[str]] = WeakKeyDictionary()  # what drawings have set of a model


class _Differs(Exception):
    """Raised when two models differ in structure."""


def remember(drawn: Model) -> None:
    """Remember which values a new figure sets, before a page's theme adds its own."""
    for model in drawn.references():
        _own[model] = set(model.properties_with_values(include_defaults=False))


def take_over(old: Model, new: Model) -> bool:
    """Give `old` the values that a drawing has set. All else is a matter of the page's theme.

    Args:
        old: a figure that `remember` knows.
        new: another one.

    Returns:
        False, with nothing changed, if the two differ in structure.
    """
    changes: list[tuple[Model, str, Any]] = []
    try:
        _compare(old, new, {}, changes)
    except _Differs:
        return False
    for model, name, value in changes:
        setattr(model, name, value)
        _own[model].add(name)
    return True


def _compare(old: Any, new: Any, seen: dict, changes: list) -> None:
    """Collect the differing values of two models in `changes`, or raise _Differs."""
    if type(old) is not type(new):
        raise _Differs
    if new in seen:
        if seen[new] is not old:
            raise _Differs
        return
    seen[new] = old
    own = _own[old] | _own[new]
    for name in _names(new):
        before, after = getattr(old, name), getattr(new, name)
        if isinstance(new, ColumnDataSource) and name == "data":
            if not _same(dict(before), dict(after)):
                changes.append((old, name, dict(after)))
            continue
        pairs = list(_models(before, after))
        for one, other in pairs:
            _compare(one, other, seen, changes)
        if not pairs and name in own and not _same(before, after):
            changes.append((old, name, after))


def _names(model: Model) -> list[str]:
    skipped = {*OWN, *(("start", "end") if isinstance(model, DataRange1d) else ())}  # the browser computes those
    return [
        name for name in model.properties() if name not in skipped and not isinstance(_property(model, name), Readonly)
    ]


def _property(model: Model, name: str):
    descriptor = model.lookup(name)
    return descriptor.property if isinstance(descriptor, PropertyDescriptor) else None


def _models(before: Any, after: Any):
    """Yield the pairs of models in two values, or raise _Differs."""
    if isinstance(before, Model) or isinstance(after, Model):
        yield before, after
    elif isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)):
        if any(isinstance(item, (Model, tuple)) for item in (*before, *after)) and len(before) != len(after):
            raise _Differs
        for one, other in zip(before, after):
            if isinstance(one, (Model, tuple)):
                yield from _models(one, other)
    elif isinstance(after, dict) and any(isinstance(value, Model) for value in after.values()):
        if not isinstance(before, dict) or before.keys() != after.keys():
            raise _Differs
        for key in after:
            yield before[key], after[key]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    try:
        return np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a == b)
    except (TypeError, ValueError):
        return a is b
