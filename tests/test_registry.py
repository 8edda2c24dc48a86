"""Registries: what an entry may say about itself."""

from dataclasses import FrozenInstanceError, replace

import pytest

from stein_core import GUIDES, METHODS, TARGETS, Spec, UnknownName
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


def test_a_spec_refuses_what_contradicts_and_drops_it_only_if_asked():
    with pytest.raises(ValueError, match="unknown optimizer for method 'langevin': 'adam'. Allowed: sgd"):
        Spec("gaussian", method="langevin", optimizer="adam")
    wave = Spec("gap_regression", method="smi", optimizer="rmsprop", options={"target.width": 20})
    with pytest.raises(ValueError, match="unknown option 'target.width'"):
        replace(wave, target="gaussian", dim=2)
    other = wave.carried_to(target="gaussian", dim=2, method="langevin")
    assert (other.optimizer, other.guide, dict(other.options)) == ("sgd", "point", {})
    assert wave.carried_to(method="svgd").options["target.width"] == 20
    assert wave.carried_to(method="svgd").optimizer == "rmsprop" and Spec("gaussian", method="svgd").optimizer == "adam"
    assert Spec.fitting(target="gaussian", method="smi", guide="normal_twice").options["guide.density"] == "twice"
    with pytest.raises(ValueError, match="unknown optimizer 'adm'; did you mean 'adam'"):
        Spec.fitting(target="gaussian", method="svgd", optimizer="adm")
