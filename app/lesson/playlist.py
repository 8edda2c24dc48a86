"""A lecture over several pages: stops of tours and ideas of lessons, one after the other, in one link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote

from stein_core.base.errors import short, unknown, whole
from steinlab.lesson.ideas import ideas_of
from steinlab.lesson.reading import lessons
from steinlab.ui import link

MOST = 40  # stops: their names and notes fit an address
LONGEST = 400  # characters of a note


class Place(NamedTuple):
    """Where a stop leads.

    Args:
        page: key of the page.
        query: fields of its link.
        title: what it is called, "Particles 1: Who keeps the arms?".
        caption: what the audience reads.
        text: what the page itself says about it.
        ask: the question that comes before the caption, or "".
    """

    page: str
    query: dict[str, str]
    title: str
    caption: str = ""
    text: str = ""
    ask: str = ""


def place_of(name: str, pages: Mapping[str, Any]) -> Place:
    """Return where a stop leads.

    Args:
        name: "particles.1" for the first stop of a page's tour, "lessons.4.3" for the third idea of lesson 4, or
            "particles?target=ring" for any other moment of a page.
        pages: key -> entry, see `steinlab.contents`.

    Raises:
        ValueError: with a sentence that says what is wrong and what is allowed.
    """
    if "?" in name:
        key, _, query = name.partition("?")
        if key not in pages:
            raise unknown("page", key, pages)
        return Place(key, dict(parse_qsl(query)), f"{pages[key].label}, as it was")
    key, *numbers = name.split(".")
    if key == "lessons" and len(numbers) == 2:
        return _idea(*numbers)
    tours = {name: entry for name, entry in pages.items() if hasattr(entry.build, "presets")}
    if key not in tours:
        raise unknown("page with a tour", key, [*tours, "lessons"])
    if len(numbers) != 1:
        raise ValueError(f"The stop {short(name)!r} is not of the form {key}.1.")
    stops = tours[key].build.presets
    number = _up_to(f"stop of {key}", numbers[0], len(stops))
    stop = stops[number - 1]
    query = stop["link"] if "link" in stop else stop["setup"].to_query()
    title = f"{tours[key].label} {number}: {stop['name']}"
    return Place(key, dict(parse_qsl(query)), title, stop["caption"], stop["text"], stop.get("ask", ""))


def _idea(lesson: str, idea: str) -> Place:
    key = lesson.zfill(2)
    if key not in lessons():
        raise unknown("lesson", lesson, [str(int(each)) for each in lessons()])
    ideas = ideas_of(lessons()[key])
    number = _up_to(f"idea of lesson {int(key)}", idea, len(ideas))
    heading = ideas[number - 1].question
    return Place("lessons", {"lesson": key, "idea": str(number)}, f"Lesson {int(key)}.{number}: {heading}", heading)


def _up_to(what: str, text: str, most: int) -> int:
    number = whole(what, text)
    if not 1 <= number <= most:
        raise ValueError(f"{what} = {number} is out of range; allowed: 1 to {most}.")
    return number


def offered(pages: Mapping[str, Any]) -> dict[str, str]:
    """Return every stop that can be chosen, title -> name, in the order of the menu."""
    found = {}
    for key, entry in pages.items():
        if key == "lessons":
            names = [f"lessons.{int(k)}.{i}" for k, one in lessons().items() for i in range(1, len(ideas_of(one)) + 1)]
        else:
            names = [f"{key}.{i}" for i in range(1, len(getattr(entry.build, "presets", [])) + 1)]
        found |= {place_of(name, pages).title: name for name in names}
    return found


@dataclass(frozen=True)
class Playlist:
    """Name the stops of a lecture.

    Args:
        play: their names, see `place_of`.
        notes: for the speaker, one a stop; "" or a missing one for what the page says.
        at: the stop that is shown, from 1.
    """

    play: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    at: int = 1

    def __post_init__(self):
        if len(self.play) > MOST:
            raise ValueError(f"The lecture has {len(self.play)} stops; allowed: at most {MOST}.")
        for note in self.notes:
            if len(note) > LONGEST:
                raise ValueError(f"A note has {len(note)} characters; allowed: at most {LONGEST}.")
        object.__setattr__(self, "notes", (*self.notes, *[""] * len(self.play))[: len(self.play)])
        if not 1 <= self.at <= max(1, len(self.play)):
            raise ValueError(f"at = {self.at} is out of range; allowed: 1 to {len(self.play)}.")

    def moved(self, by: int) -> Playlist:
        """Return the lecture `by` stops on; it ends at its ends."""
        return replace(self, at=min(max(self.at + by, 1), len(self.play)))

    def with_stop(self, name: str) -> Playlist:
        """Return the lecture with one more stop at its end."""
        return replace(self, play=(*self.play, name), notes=(*self.notes, ""))

    def without(self, index: int) -> Playlist:
        """Return the lecture without the stop of this index."""
        return replace(self, play=_without(self.play, index), notes=_without(self.notes, index), at=1)

    def lifted(self, index: int) -> Playlist:
        """Return the lecture with the stop of this index one place earlier."""
        return replace(self, play=_lifted(self.play, index), notes=_lifted(self.notes, index))

    def noted(self, index: int, note: str) -> Playlist:
        """Return the lecture with another note for the stop of this index."""
        return replace(self, notes=(*self.notes[:index], note[:LONGEST], *self.notes[index + 1 :]))

    def to_query(self, notes: bool = False, **more: str) -> str:
        """Return its link.

        Args:
            notes: whether the notes are in it; the audience sees the address of the projected window.
            more: further fields.
        """
        shown = self if notes else replace(self, notes=())
        return "&".join([link.write(FIELDS, shown, Playlist()), *(f"{name}={text}" for name, text in more.items())])


def _without(items: tuple, index: int) -> tuple:
    return (*items[:index], *items[index + 1 :])


def _lifted(items: tuple, index: int) -> tuple:
    if index < 1:
        return items
    return (*items[: index - 1], items[index], items[index - 1], *items[index + 1 :])


def _joined(texts: tuple[str, ...]) -> str:
    return "~".join(quote(text, safe=" ?=&.,;:").replace("~", "%7E") for text in texts) if any(texts) else ""


def _parted(text: str) -> tuple[str, ...]:
    return tuple(map(unquote, text.split("~"))) if text else ()


FIELDS = (link.Field("play", _parted, _joined), link.Field("notes", _parted, _joined), link.whole_number("at"))


def read_playlist(query: Mapping[str, str], pages: Mapping[str, Any]) -> tuple[Playlist, dict[str, str], list[str]]:
    """Read the lecture of a link.

    Returns:
        The lecture without the stops that are wrong, the rest of the query, and a sentence about each thing that is.
    """
    own, rest = link.split(FIELDS, query)
    made, problems = link.read(FIELDS, own, Playlist())
    said = [*problems.values()]
    for index in reversed(range(len(made.play))):
        try:
            place_of(made.play[index], pages)
        except ValueError as error:
            said.append(str(error))
            made = made.without(index)
    return made, rest, said
