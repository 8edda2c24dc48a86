"""Registries: the only lists of what exists.

Everything a user can choose (target, method, guide, kernel, bandwidth rule, optimiser, diagnostic) is a factory
function decorated with its registry. Selects, sliders, command line choices, contract tests and the reference page read
these lists. So a new entry is one decorated function and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Callable, Iterator, Mapping

import jax
import jax.numpy as jnp

from stein_core.base.errors import unknown
from stein_core.contract.facts import DiagnosticFacts, Facts, GuideFacts, KernelFacts, MethodFacts, TargetFacts
from stein_core.contract.knobs import Knob, Option


@dataclass(frozen=True, eq=False)
class Entry:
    """One registered factory, `make(**settings, **options, **knobs)`. The runner calls it with traced knobs."""

    name: str
    label: str
    make: Callable
    reference: str
    summary: str
    knobs: tuple[Knob, ...] = ()
    facts: Facts = Facts()
    options: tuple[Option, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether stein_core itself has registered it."""
        return (getattr(self.make, "__module__", None) or "").startswith("stein_core.")


class Registry:
    """An ordered map from names to entries, filled by decorating factories.

    Args:
        kind: what it lists, for error messages.
        facts: the class of what an entry may say about itself, see `facts`.

    >>> KERNELS = Registry("kernel", KernelFacts)
    >>> @KERNELS.register("rbf", label="RBF", reference="Liu & Wang 2016")
    ... def rbf(u):
    ...     "exp(-u)."
    """

    def __init__(self, kind: str, facts: type[Facts] = Facts):
        self.kind, self._facts = kind, facts
        self._entries: dict[str, Entry] = {}
        self._former: dict[str, tuple[str, dict[str, Any]]] = {}

    def register(
        self,
        name: str,
        *,
        label: str,
        reference: str,
        knobs: tuple[Knob, ...] = (),
        options: tuple[Option, ...] = (),
        former: Mapping[str, Mapping[str, Any]] | None = None,
        **facts,
    ):
        """Decorate a factory. A name that is registered again is replaced: a notebook cell may run more than once.

        Args:
            name: the key, in links and files too.
            label: the name that pages show.
            reference: the source, a paper with its equation.
            knobs: the factory's traced arguments.
            options: its static arguments.
            former: names that an entry had, with the options that stand for it now. Old links and files have them.
            facts: fields of this registry's facts.

        Raises:
            UnknownName: this registry has no such fact.
            ValueError: a fact is missing, or the factory has no docstring. Its first line is the summary that pages
                show.
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
            self._entries[name] = Entry(name, label, make, reference, summary, tuple(knobs), said, tuple(options))
            self._former |= {old: (name, dict(chosen)) for old, chosen in (former or {}).items()}
            return make

        return decorate

    def present(self, name: Any) -> tuple[Any, dict[str, Any]]:
        """Return the present name for `name`, and the options that stand for a former one."""
        return self._former.get(name, (name, {})) if isinstance(name, str) else (name, {})

    def __getitem__(self, name: Any) -> Entry:
        """Return the entry of a name. An object with an `entry` of its own, such as a Target, stands for itself.

        Raises:
            UnknownName: no such name; the message has the nearest match.
        """
        if isinstance(own := getattr(name, "entry", None), Entry):
            return own
        name, _ = self.present(name)
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
        """Return the position of `name`: the value of a traced choice knob."""
        return list(self._entries).index(self[name].name)

    def pick(self, index, *operands, branch: Callable[[Entry], Callable] = attrgetter("make")):
        """Compute one entry. If its index is traced, the others are compiled, but not computed.

        Args:
            index: position of the entry, the value of a knob with these choices.
            operands: arrays, the arguments of each branch.
            branch: entry -> function of the operands. By default it is the factory itself.
        """
        if not isinstance(index, jax.core.Tracer):
            return branch(self.entries()[int(index)])(*operands)
        return jax.lax.switch(index.astype(jnp.int32), [branch(entry) for entry in self.entries()], *operands)

    def entries(self) -> list[Entry]:
        """Return all entries in order of registration."""
        return list(self._entries.values())

    def listed(self) -> list[Entry]:
        """Return the entries that pages offer: all but those with the fact `listed=False`."""
        return [entry for entry in self._entries.values() if entry.facts.listed]


TARGETS = Registry("target", TargetFacts)
METHODS = Registry("method", MethodFacts)
GUIDES = Registry("guide", GuideFacts)
KERNELS = Registry("kernel", KernelFacts)
BANDWIDTHS = Registry("bandwidth rule")
OPTIMIZERS = Registry("optimizer")
FORCE_SCALES = Registry("force scale")
DIAGNOSTICS = Registry("diagnostic", DiagnosticFacts)
