"""What the registries cite stands on the page of references."""

import importlib
import pkgutil
import re

import stein_core
from stein_core.contract.registry import Registry
from steinlab.pages.notation.papers import PAPERS

# What is no paper: a formula of ours, an identity, a program.
NO_PAPER = re.compile(
    r"-|closed form|integration by parts|law of total variance|Laplace's approximation|Stein's identity.*|mean of r_j"
    r"|a force of zero|regression of the scores.*|theory\.\w+|our radius and width|usual for SVGD|NumPyro .*"
)
SHORT = {"KSIVI": "Cheng et al. 2024", "SMI": "SMI paper", "posteriordb": "Magnusson et al. 2025"}


def registries():
    found = {}
    for module in pkgutil.walk_packages(stein_core.__path__, "stein_core."):
        if not re.search(r"__main__|bench", module.name):
            values = vars(importlib.import_module(module.name)).values()
            found |= {id(value): value for value in values if isinstance(value, Registry)}
    return found.values()


def test_every_paper_that_an_entry_cites_is_on_the_page():
    names = [one for paper in PAPERS for one in paper.name.split("; ")]
    assert len(set(names)) == len(names)
    cited = {
        (registry.kind, entry.name, piece.strip())
        for registry in registries()
        for entry in registry.entries()
        for piece in entry.reference.split(";")
    }
    assert len(cited) > 120
    unknown = []
    for kind, entry, piece in cited:
        piece = re.sub(r"^after ", "", piece)
        for short, name in SHORT.items():
            piece = re.sub(rf"^{short}\b(?! paper)", name, piece)
        if not NO_PAPER.fullmatch(piece) and not piece.startswith(tuple(names)):
            unknown.append((kind, entry, piece))
    assert not unknown
    for name in names:  # "Li et al. 2016" is not enough for "Li et al. 2023"
        assert re.search(r"\d{4}|SMI paper", name)
