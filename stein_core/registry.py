"""Registries: the only lists of what exists.

Everything a user can choose (target, method, guide, kernel, bandwidth rule, optimiser, diagnostic) is a factory
function decorated with its registry. Selects, sliders, command line choices, contract tests and the reference page
are all read from here, so that a new entry is one decorated function and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Callable, Iterator

from stein_core.errors import unknown
from stein_core.facts import DiagnosticFacts, Facts, GuideFacts, KernelFacts, MethodFacts, TargetFacts
from stein_core.knobs import Knob


@dataclass(frozen=True, eq=False)
class Entry:
    """One registered factory: `make(**settings, **knobs)`; `knobs` may be traced when the runner calls it."""

    name: str
    label: str
    make: Callable
    reference: str
    summary: str
    knobs: tuple[Knob, ...] = ()
    facts: Facts = Facts()


class Registry:
    """An ordered name -> Entry map that is filled by decorating factories. facts: what its entries may say, see `facts`.

    >>> KERNELS = Registry("kernel", KernelFacts)
    >>> @KERNELS.register("rbf", label="RBF", reference="Liu & Wang 2016")
    ... def rbf(u):
    ...     "exp(-u)."
    """

    def __init__(self, kind: str, facts: type[Facts] = Facts):
        self.kind, self._facts = kind, facts
        self._entries: dict[str, Entry] = {}

    def register(self, name: str, *, label: str, reference: str, knobs: tuple[Knob, ...] = (), **facts):
        """Decorate a factory. Its docstring's first line is the summary that pages and `list` show; registering a
        name again replaces it (a notebook cell is run more than once).

        Raises UnknownName for a fact that this registry does not have, ValueError for one that is missing.
        """
        known = {each.name: each for each in fields(self._facts)}
        for fact in facts:
            if fact not in known:
                raise unknown(f"fact of {self.kind} {name!r}:", fact, known)
        try:
            said = self._facts(**facts)
        except TypeError as error:
            raise ValueError(f"{self.kind} {name!r}: {error}.") from None

        def decorate(make):
            if not make.__doc__:
                raise ValueError(f"{self.kind} {name!r} has no docstring; its first line is what users read.")
            summary = " ".join(make.__doc__.strip().split("\n\n")[0].split())
            self._entries[name] = Entry(name, label, make, reference, summary, tuple(knobs), said)
            return make

        return decorate

    def __getitem__(self, name: Any) -> Entry:
        """The entry of a name. What has an entry of its own, as a Target has, stands for itself."""
        if isinstance(own := getattr(name, "entry", None), Entry):
            return own
        if name not in self:
            raise unknown(self.kind, name, [entry.name for entry in self.listed()])
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name) -> bool:
        return isinstance(name, str) and name in self._entries

    def index(self, name: str) -> int:
        """The position of `name`: what a traced choice knob carries."""
        return list(self._entries).index(self[name].name)

    def entries(self) -> list[Entry]:
        """All of them, in the order in which they came."""
        return list(self._entries.values())

    def listed(self) -> list[Entry]:
        """The entries that pages offer to everybody: all but those with the fact `listed=False`."""
        return [entry for entry in self._entries.values() if entry.facts.listed]


TARGETS = Registry("target", TargetFacts)
METHODS = Registry("method", MethodFacts)
GUIDES = Registry("guide", GuideFacts)
KERNELS = Registry("kernel", KernelFacts)
BANDWIDTHS = Registry("bandwidth rule")
OPTIMIZERS = Registry("optimizer")
FORCE_SCALES = Registry("force scale")
DIAGNOSTICS = Registry("diagnostic", DiagnosticFacts)
