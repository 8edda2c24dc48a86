"""The link codec: a page says in a table which fields its link has; what is plain is not written.

A value is a frozen dataclass that checks itself: it raises ValueError for what it refuses. It may have `knobs` and
other mappings of names to values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

from stein_core.base.errors import unknown, whole

Value = TypeVar("Value")


def text_of(value: Any) -> str:
    """Write a value as links do: lists with commas, numbers as short as they read back the same, None as nothing."""
    if isinstance(value, (tuple, list)):
        return ",".join(map(text_of, value))
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def names(text: str) -> tuple[str, ...]:
    """Read names with commas between."""
    return tuple(text.split(","))


def one_of(what: str, allowed: Iterable[str]) -> Callable[[str], str]:
    """Make a reader of one of these names; its message calls it `what`."""

    def parse(text: str) -> str:
        if text not in allowed:
            raise unknown(what, text, allowed)
        return text

    return parse


@dataclass(frozen=True)
class Field:
    """One field of a link.

    Args:
        name: in the link. With a dot it belongs to a mapping of the value: to `knobs`, or to its `attribute`.
        parse: from text to value; raises ValueError with a sentence for the user.
        text: the inverse of `parse`. An empty text is not written.
        attribute: of the value, when the link calls it otherwise.
        default: of a name that the mapping does not mention.
        always: whether it is written when it is plain too.
    """

    name: str
    parse: Callable[[str], Any] = str
    text: Callable[[Any], str] = text_of
    attribute: str = ""
    default: Any = None
    always: bool = False

    def of(self, value: Any) -> Any:
        """Look the field up in a value."""
        if "." in self.name:
            return dict(getattr(value, self.attribute or "knobs")).get(self.name, self.default)
        return getattr(value, self.attribute or self.name)


def whole_number(name: str, **facts: Any) -> Field:
    """Make a field that is a whole number."""
    return Field(name, partial(whole, name), **facts)


def switch(name: str, what: str, words: tuple[str, str], **facts: Any) -> Field:
    """Make a field that is off or on, which the link calls by these two words; its message calls it `what`."""
    parse = one_of(what, words)
    return Field(name, lambda text: parse(text) == words[1], lambda on: words[on], **facts)


def write(fields: Iterable[Field], value: Any, plain: Any) -> str:
    """Write the query of a value: only what differs from `plain`."""
    texts = {f.name: f.text(f.of(value)) for f in fields if f.always or f.of(value) != f.of(plain)}
    return urlencode({name: text for name, text in texts.items() if text}, safe=",;~:")


def read(fields: Iterable[Field], query: Mapping[str, str], plain: Value) -> tuple[Value, dict[str, str]]:
    """Read a query. What it leaves out is `plain`'s, and so is each field that is wrong; all else is kept.

    Returns:
        The value, and by the name of each wrong field a sentence that says why.
    """
    known, found, problems = {f.name: f for f in fields}, {}, {}
    for name, text in query.items():
        try:
            if name not in known:
                raise unknown("field in the link", name, known)
            found[name] = known[name].parse(text)
        except ValueError as error:
            problems[name] = str(error)
    waiting = [f for f in known.values() if f.name in found]
    try:
        return _changed(plain, waiting, found), problems
    except ValueError:  # some field is wrong, or some do not go together
        value, before = plain, None
    while len(waiting) != before:  # a field may fit only after another one
        before, wrong = len(waiting), []
        for field in waiting:
            try:
                value = _changed(value, [field], found)
            except ValueError as error:
                problems[field.name] = str(error)
                wrong.append(field)
            else:
                problems.pop(field.name, None)
        waiting = wrong
    return value, problems


def split(fields: Iterable[Field], query: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Divide a query into what these fields read and the rest."""
    own = {f.name for f in fields}
    return {k: v for k, v in query.items() if k in own}, {k: v for k, v in query.items() if k not in own}


def _changed(value: Value, fields: Iterable[Field], found: Mapping[str, Any]) -> Value:
    change = {f.attribute or f.name: found[f.name] for f in fields if "." not in f.name}
    for f in fields:
        if "." in f.name:
            mapping = f.attribute or "knobs"
            change[mapping] = {**change.get(mapping, dict(getattr(value, mapping))), f.name: found[f.name]}
    return replace(value, **change)
