"""Page "Notation and references", generated from the code and its registries."""

from __future__ import annotations

import html
import re

from stein_core import (  # fmt: skip
    BANDWIDTHS,
    DIAGNOSTICS,
    FORCE_SCALES,
    GUIDES,
    KERNELS,
    METHODS,
    OPTIMIZERS,
    TARGETS,
)
from stein_core.contract import types  # fmt: skip
from stein_core.contract.facts import DiagnosticFacts
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import Registry
from steinlab.pages.notation.corrections import CORRECTIONS
from steinlab.pages.notation.papers import PAPERS
from steinlab.stage.setup import all_knobs
from steinlab.ui.terms import TERMS
from steinlab.ui.text import Text, markdown_html

CSS = """
.prose { max-width: 66rem; margin: 0 auto; }
.prose > * { max-width: 50rem; }
.prose > .wide { max-width: 66rem; }
.prose table { width: 100%; font-size: 15px; line-height: 1.45; }
.prose th { font-size: 14px; font-weight: 400; color: var(--mui-palette-text-secondary); }
.prose td:first-child { white-space: nowrap; }
.prose td { min-width: 4em; }
.prose article { margin: .9em 0; }
.prose article a { white-space: nowrap; }
@media (max-width: 600px) {
  .prose table, .prose tbody, .prose tr { display: block; }
  .prose thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .prose tr { border-bottom: 1px solid var(--mui-palette-divider); padding: 8px 0; }
  .prose td { display: block; border: 0; padding: 1px 0; overflow-wrap: anywhere; }
  .prose td:first-child { font-weight: 600; white-space: normal; }
  .prose td:not(:first-child)::before { content: attr(data-head) " "; font-size: 14px;
    color: var(--mui-palette-text-secondary); }
}
"""
# What the table in `stein_core.contract.types` does not say: TeX, unit (x: that of the parameters), where it is made.
SYMBOLS = {
    "theta": (r"\theta", "x", "targets/"),
    "psi_l": (r"\psi_l", "x; softplus⁻¹ of x", "forces/guides.py"),
    "q(theta|psi_l)": (r"q(\theta \mid \psi_l)", "1/x^d", "forces/guides.py"),
    "m, n": (r"m,\; n", "a count", "contract/recipe.py"),
    "w_l": (r"w_l", "none", "forces/interaction.py"),
    "g_l": (r"g_l", "1/x", "forces/interaction.py"),
    "k(x, y), sigma": (r"k(x, y),\; \sigma", "none; x", "forces/kernels.py"),
    "phi_l": (r"\phi_l", "1/x", "forces/interaction.py"),
    "gamma": (r"\gamma", "none", "theory/laws.py"),
    "alpha": (r"\alpha", "none", "methods/"),
    "epsilon": (r"\varepsilon", "x² (plain steps)", "forces/optimizers.py"),
}
LISTS = (
    ("Methods", METHODS),
    ("Guides", GUIDES),
    ("Kernels", KERNELS),
    ("Bandwidth rules", BANDWIDTHS),
    ("Targets", TARGETS),
    ("Read-outs", DIAGNOSTICS),
    ("SMI's attraction", FORCE_SCALES),
    ("Optimisers", OPTIMIZERS),
)
CONVENTIONS = r"""
The kernel is $k(x, y) = f(u)$ with $u = |x - y|^2 / (2\sigma^2)$, and $\sigma$ is a length. The force on particle
$l$ is

$$\phi_l = \sum_i w_i \left[ k(\psi_i, \psi_l)\, g_i + \alpha\, \nabla_{\psi_i} k(\psi_i, \psi_l) \right].$$

The first part is the attraction, the second the repulsion.

The variance on a stage is taken with $1/n$. It is the variance of the guides' mixture: the variance within the guides
plus the variance between them. The laws hold for points and are taken with $1/(n-1)$. Page *Variance collapse* takes
$1/(n-1)$ for points and $1/n$ for guides.
"""
# Read in the programs: NumPyro 0.22, `RBFKernel`; BlackJAX 1.7, `svgd`; `svgd.py` of the authors of SVGD.
MEDIANS = r"""
"The median heuristic" is the name of several rules. Each takes the distances $r$ between the particles and returns
$2\sigma^2$. $\mathrm{Med}$ is the median over the pairs; $\mathrm{Med}_0$ also counts the distance 0 of every
particle to itself, which matters for few particles.

| who | $2\sigma^2$ | here |
|---|---|---|
| Liu & Wang's paper, BlackJAX | $\mathrm{Med}(r)^2 / \log n$ | |
| Liu & Wang's program | $\mathrm{Med}_0(r^2) / \log(n + 1)$ | |
| NumPyro | $\mathrm{Med}_0(r)^2 / \log n$ | `numpyro` |
| Ba et al. | $\mathrm{Med}(r^2)$ | `median` |
| this app's default | $\mathrm{Med}(r^2) / \log n$ | `median_log` |
"""
# Names in papers and in the programs PyMC, NumPyro and Pyro.
NAMES = """
Some names stand for several methods, and some methods have several names.

| name | method | here |
|---|---|---|
| ASVGD | amortized SVGD: a network learns the moves (PyMC) | |
| ASVGD | annealed SVGD (D'Angelo & Fortuin, NumPyro) | `annealed` |
| ASVGD | accelerated SVGD: momentum (Stein & Li) | `accelerated` |
| SPOS | noisy SVGD: SVGD with Langevin noise (Zhang et al.) | `noisy` |
| stochastic SVGD | SVGD with noise whose covariance is the Gram matrix (Gallego & Insua) | `stochastic` |
| KCC-SVGD, Pyro's "multivariate" | a kernel for each coordinate: blocks of one | `blocks` |
| S-SVGD, GSVGD | SVGD on slices or subspaces, chosen at random or by a search | `random_subspace` has those at random |
| SVN | Stein variational Newton | `newton` |
| R-SVGD | regularized SVGD | `regularized` |
| pSVGD | projected SVGD | `projected` |
"""


class Notation:
    """Page "Notation and references"; see `steinlab.contents` for the contract of a page."""

    def __init__(self, shell, query: dict[str, str]):
        page = Text(html=everything(), go=shell.go, terms=False, sizing_mode="stretch_width", margin=(8, 16))
        page.stylesheets = [CSS]
        self.sidebar, self.main = [], [page]

    def show(self):
        """Nothing runs here."""

    hide = refresh = show

    def link(self) -> str:
        return ""


def symbols() -> list[tuple[str, str, str]]:
    """Return (symbol, name in the code, meaning) of each row of the table in `stein_core.contract.types`."""
    rows = re.findall(r"^\| (.+?) +\| +(.+?) +\| +(.+?) +\|$", types.__doc__, re.MULTILINE)
    return [row for row in rows if row[0] != "symbol"]


def everything() -> str:
    """Return the page as HTML."""
    notation = [
        (rf"\({tex}\)", code(name), meaning, unit, code(where))
        for (symbol, name, meaning), (tex, unit, where) in zip(
            symbols(), map(SYMBOLS.get, [row[0] for row in symbols()])
        )
    ]
    parts = [
        "<h1>Notation and references</h1>",
        "<h2>Notation</h2>",
        table(("symbol", "in the code", "meaning", "unit", "made in"), notation),
        markdown_html(CONVENTIONS),
        markdown_html(MEDIANS),
        markdown_html(NAMES),
        "<h2>Terms</h2>",
        table(("term", "meaning"), [(html.escape(name), html.escape(says)) for name, says in TERMS.items()]),
        "<h2>Corrections</h2>",
        "<p>Each entry names a statement that differs from what we compute, and gives the evidence. <i>See it</i> "
        "opens a view that shows it.</p>",
        *(
            f"<article><b>{inline(c.said)}</b><br>{inline(c.holds)} "
            + f'<a href="?{html.escape(c.link)}">See it</a>' * bool(c.link)
            + "</article>"
            for c in CORRECTIONS
        ),
        "<h2>Papers</h2>",
        table(
            ("", "title", "what we take from it"),
            [(p.name, f"{p.title}. <i>{p.where}</i>", inline(p.what)) for p in PAPERS],
        ),
        "<h2>Everything in the library</h2>",
        "<p>These tables are made from the registries: a new entry in the code is a new row here.</p>",
        *(f"<h3>{title}</h3>{entries(registry)}" for title, registry in LISTS),
        "<h3>Knobs</h3>",
        table(
            ("knob", "in the code", "default", "range", "meaning"),
            [(k.label, code(k.name), str(k.default), span(k), html.escape(k.help)) for k in all_knobs().values()],
        ),
    ]
    return "".join(parts)


def entries(registry: Registry) -> str:
    """Return a registry as a table. Of a diagnostic it also says what it is computed from."""
    rows = [
        (html.escape(e.label), code(e.name), html.escape(e.summary), html.escape(e.reference))
        + ((source(e.facts),) if registry is DIAGNOSTICS else ())
        for e in registry.entries()
    ]
    return table(("", "in the code", "meaning", "reference") + ("computed from",) * (registry is DIAGNOSTICS), rows)


def source(facts: DiagnosticFacts) -> str:
    """Return what a diagnostic is computed from, in words."""
    found = "draws and scores" if facts.reads == "draws" else "guides, kernel or forces"
    return found + ", on all data" * facts.full_data


def span(knob: Knob) -> str:
    """Return the range of a knob in words."""
    return "a choice" if knob.choices is not None else f"{knob.low:g} to {knob.high:g}"


def table(heads, rows) -> str:
    """Return a table, whose rows are blocks on a phone. Heads are texts, cells are HTML."""
    head = "".join(f"<th>{text}</th>" for text in heads)
    cells = ("".join(f'<td data-head="{name}">{cell}</td>' for name, cell in zip(heads, row)) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def code(text: str) -> str:
    """Return a text as code. If it has backticks, only what is between them."""
    bare = html.escape(text)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", bare) if "`" in bare else f"<code>{bare}</code>"


def inline(source: str) -> str:
    """Return one paragraph of Markdown as HTML, without the paragraph tag."""
    return markdown_html(source).strip().removeprefix("<p>").removesuffix("</p>")
