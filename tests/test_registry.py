"""Registries: what an entry may say about itself."""

from dataclasses import FrozenInstanceError

import pytest

from stein_core import GUIDES, METHODS, TARGETS, UnknownName
from stein_core.contract.facts import KernelFacts, MethodFacts
from stein_core.contract.registry import Registry


def test_a_misspelt_fact_is_refused_with_the_nearest_match():
    registry = Registry("method", MethodFacts)
    with pytest.raises(UnknownName, match="fact of method 'x'.*'nosiy'; did you mean 'noisy'"):
        registry.register("x", label="X", reference="me", guides=("point",), nosiy=True)
    with pytest.raises(UnknownName, match="'single'. Allowed: listed, argument"):
        Registry("kernel", KernelFacts).register("k", label="K", reference="me", single=True)
    assert len(registry) == 0


def test_a_fact_that_has_no_default_must_be_said():
    with pytest.raises(ValueError, match="method 'x'.*'guides'"):
        Registry("method", MethodFacts).register("x", label="X", reference="me")


def test_facts_are_typed_and_frozen():
    assert METHODS["vi"].facts.single and not METHODS["vi"].facts.interacts
    assert METHODS["svgd"].facts.interacts and not METHODS["ensemble"].facts.interacts
    assert TARGETS["gaussian"].facts.dims == (1, 1000)
    with pytest.raises(FrozenInstanceError):
        METHODS["svgd"].facts.single = True


@pytest.mark.parametrize("registry", [TARGETS, GUIDES, METHODS], ids=lambda registry: registry.kind)
def test_no_option_has_the_name_of_a_knob(registry):
    """Both are fields of one link."""
    entries = registry.entries()
    assert not {o.name for e in entries for o in e.options} & {k.name for e in entries for k in e.knobs}
