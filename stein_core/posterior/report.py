"""The report: a verdict in one sentence, all findings, and alternatives that are run and measured."""

from __future__ import annotations

import html
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from stein_core.contract.registry import METHODS
from stein_core.contract.target import Target
from stein_core.posterior import verdict
from stein_core.posterior.checks import SHIFT, WIDE
from stein_core.posterior.drawing import ALONE, CSS, PAGE, questions
from stein_core.posterior.evidence import CHECKS, Evidence, Finding
from stein_core.posterior.figure import Picture, picture
from stein_core.posterior.fit import DEFAULTS, fit
from stein_core.posterior.fitted import Fit
from stein_core.posterior.provenance import methods_of, now, provenance
from stein_core.posterior.reading import evidence_of, reference_of
from stein_core.posterior.weighing import Weighed

SNIPPET = (
    'np.savez("mine.npz", draws=theta, scores=jax.vmap(jax.grad(log_density))(theta), lp=jax.vmap(log_density)(theta))'
)
CHANGES = (("smi", {}), ("vi", {}), ("svgd", {}))  # what may be better than a fit: method, knobs beside its defaults
PAIRS, POINTS = 3, 150  # coordinates and draws that are drawn beside a reference
SHOWN = 8  # coordinates in a printed report


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """Hold what the checks found.

    Args:
        evidence: what they read.
        findings: check -> Finding.
        made: the Fit that was checked, or None.
        name: what the draws are called, for example their file, or "".
        posterior: what the posterior is called, or "".
        date: of the check.
    """

    evidence: Evidence
    findings: dict[str, Finding]
    made: Fit | None = None
    name: str = ""
    posterior: str = ""
    date: str = field(default_factory=now)

    def __repr__(self) -> str:
        return f"<Report: {self.verdict}>"

    @property
    def ok(self) -> bool | None:
        """Return whether no check says that the posterior is wrong; None if that cannot be told."""
        return verdict.ok_of(self.evidence, self.findings)

    @property
    def verdict(self) -> str:
        """Return whether to trust the draws, the worst that was found, and what to do, in short sentences."""
        return verdict.said(self.evidence, self.findings, self.made)

    @property
    def note(self) -> str:
        """Return what is special about the fit, or ""."""
        return self.made.note if self.made else ""

    @property
    def about(self) -> dict[str, Any]:
        """Return how the draws were made and checked, by name: see `provenance`."""
        return {"name": self.name, "posterior": self.posterior} | provenance(self.evidence, self.made, self.date)

    @property
    def methods(self) -> str:
        """Return how the draws were made and checked, in sentences for the methods section of a paper."""
        return methods_of(self.evidence, self.made, self.posterior)

    @property
    def made_of(self) -> str:
        """Return `about` in a line."""
        return "; ".join(f"{key}: {said}" for key, said in self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        """Return `about` as words. What is empty is left out."""

        def words(value):
            if isinstance(value, dict):
                return ", ".join(f"{key} {words(each)}" for key, each in value.items())
            if isinstance(value, (list, tuple)):
                return ", ".join(map(words, value))
            return f"{value:,}" if type(value) is int and value >= 10_000 else f"{value}"

        return [(key, words(value)) for key, value in self.about.items() if value not in ("", {}, [])]

    @property
    def table(self) -> list[dict[str, Any]]:
        """Return a row for each coordinate: its name, ratio of sds, shift in sds, and r_j."""
        each = {key: self.findings[check].each for key, check in COLUMNS.items() if check in self.findings}
        rows = [
            {"coordinate": name, **{key: values.get(name, math.nan) for key, values in each.items()}}
            for name in self.evidence.names
        ]
        return sorted(rows, key=lambda row: -abs(math.log(max(row.get("sd ratio", 1.0), 1e-9))))

    def __str__(self) -> str:
        lines = [self.verdict, *([f"Note: {self.note}"] if self.note else []), ""]
        for name, found in self.findings.items():
            lines.append(f"{CHECKS[name].label:>14}  {mark_of(name, found.wrong):5}  {found.sentence}")
        if self.evidence.scores is None:
            return "\n".join([*lines, "", "To add them:", f"    {SNIPPET}", "", self.made_of])
        columns = ["coordinate", *(key for key in COLUMNS if key in self.table[0])]
        lines += ["", "  ".join(f"{name:>12}" for name in columns)]
        for row in self.table[:SHOWN]:
            cells = [row["coordinate"][:24], *(f"{row[key]:.3f}" for key in columns[1:])]
            lines.append("  ".join(f"{cell:>12}" for cell in cells))
        if len(self.table) > SHOWN:
            lines.append(f"... {len(self.table) - SHOWN} more in `report.table`")
        return "\n".join([*lines, "", self.made_of])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types: verdict, findings, table and `about`. A number that is not finite is None."""

        def plain(value):
            if isinstance(value, dict):
                return {key: plain(each) for key, each in value.items()}
            if isinstance(value, (list, tuple)):
                return [plain(each) for each in value]
            if isinstance(value, (float, np.floating)):
                return float(value) if math.isfinite(value) else None
            return bool(value) if isinstance(value, np.bool_) else value

        findings = {name: asdict(each) for name, each in self.findings.items()}
        law = self.evidence.law if self.evidence.chains == 0 else math.nan
        said = {"verdict": self.verdict, "note": self.note, "ok": self.ok, "law": law, "against": self._against()}
        rest = {"findings": findings, "table": self.table, "about": self.about, "methods": self.methods}
        return plain(said | rest)

    def _against(self) -> dict[str, Any] | None:
        """Return what `drawing.against` draws of the coordinates that are furthest from the reference."""
        seen = self.evidence
        if seen.reference is None:
            return None
        other = seen.reference.reshape(-1, seen.d)
        with np.errstate(divide="ignore"):
            far = np.abs(np.log(seen.draws.std(axis=0) / other.std(axis=0))) / math.log(WIDE)
        far = np.maximum(far, np.abs(seen.draws.mean(axis=0) - other.mean(axis=0)) / other.std(axis=0) / SHIFT)
        worst = np.sort(np.argsort(-far, kind="stable")[:PAIRS])
        ranks = [np.searchsorted(np.sort(other[:, j]), seen.draws[:, j]) / len(other) for j in worst]
        some = lambda rows: rows[np.random.default_rng(0).permutation(len(rows))[:POINTS]][:, worst]  # noqa: E731
        return {
            "names": [seen.names[j] for j in worst],
            "draws": some(seen.draws).tolist(),
            "reference": some(other).tolist(),
            "ranks": [np.histogram(each, bins=20, range=(0, 1))[0].tolist() for each in ranks],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def _repr_html_(self) -> str:
        """Return the whole report for a notebook."""
        shown = self.to_dict()
        rows = "".join(
            f"<tr class={'wrong' if f['wrong'] else 'ok'}><th>{html.escape(CHECKS[name].label)}</th>"
            f"<td>{mark_of(name, f['wrong'])}</td><td>{html.escape(f['sentence'])}</td></tr>"
            for name, f in shown["findings"].items()
        )
        own = "" if self.evidence.scores is not None else f"<pre>{html.escape(SNIPPET)}</pre>"
        note = f"<p>{html.escape(self.note)}</p>" * bool(self.note)
        facts = "".join(
            f"<tr><th>{html.escape(key)}</th><td>{html.escape(said)}</td></tr>" for key, said in self._facts()
        )
        return (
            f"<style>{ALONE}.steinlab {{ {CSS} }}</style><div class=steinlab>"
            f"<h1>{html.escape(self.verdict)}</h1>{note}{own}"
            f"<div class=answer>{questions(shown, COLOUR)}</div><h2>All checks</h2><table class=checks>{rows}</table>"
            f"<h2>What was checked</h2><table class=checks>{facts}</table>"
            f"<h2>For a methods section</h2><p>{html.escape(self.methods)}</p></div>"
        )

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the report as one HTML page, with its figure inside; nothing is loaded from elsewhere.

        Args:
            path: where to write it, too.
        """
        title = html.escape(" of ".join(filter(None, ["Report", self.name or self.posterior])))
        page = (
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{PAGE}</style>"
            f"<body>{self._repr_html_()}</body></html>"
        )
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def plot(self) -> Picture:
        """Return a figure for a notebook or for print: what each check found of each coordinate, beside its band."""
        return picture(self.verdict, self.findings, self.made_of)

    @property
    def twice(self) -> tuple[tuple[str, dict], ...]:
        """Return the change (method, knobs) to twice as many particles; empty if the method has one, or too many."""
        used = self.made.recipe
        count = 2 * used.knobs.get("method.particles", 1)
        facts = METHODS[used.spec.method].facts
        if facts.single or count > facts.largest:
            return ()
        knobs = {name: value for name, value in used.knobs.items() if not name.startswith("target.")}
        return ((used.spec.method, knobs | {"method.particles": count}),)

    def try_changes(
        self, changes: Sequence[tuple[str, dict]] | None = None, progress: bool = True
    ) -> list[dict[str, Any]]:
        """Run other methods, or more particles, on the same posterior and measure each.

        Args:
            changes: (method, knobs) of each; by default `CHANGES` and twice as many particles.
            progress: show a bar for each.

        Returns:
            A row for each, the best first: method, knobs, its Stein trace, largest ratio and shift, seconds, and its
            `report`.

        Raises:
            ValueError: the draws do not come from a fit.
        """
        if self.made is None:
            raise ValueError("try_changes needs a fit; allowed: a report of `diagnose(fit(...))`.")
        rows = []
        for method, knobs in (*CHANGES, *self.twice) if changes is None else changes:
            used, wanted = self.made.recipe, DEFAULTS.get(method, {}) | knobs
            if used.spec.method == method and all(used.knobs.get(key) == wanted[key] for key in wanted):
                continue
            began = time.perf_counter()
            guide = used.spec.guide if used.spec.method == method else None
            report = diagnose(fit(self.made.target, method=method, knobs=knobs, guide=guide, progress=progress))
            worst = {key: report.findings[check].value for key, check in COLUMNS.items() if check in report.findings}
            seconds = time.perf_counter() - began
            rows.append(
                {"method": method, "knobs": knobs, **worst, "ok": report.ok, "seconds": seconds, "report": report}
            )
        return sorted(rows, key=lambda row: (not row["ok"], abs(math.log(max(row.get("sd ratio", 1e-9), 1e-9)))))


COLUMNS = {"sd ratio": "width", "shift": "location", "r": "stein_trace"}
COLOUR = "#0072B2"  # of the bars


def mark_of(name: str, wrong: bool | None) -> str:
    """Return how a check ended: a question mark if it could not be made, a dash if it only tells a number."""
    judged = {True: "wrong", False: "ok", None: "?"}
    return judged[wrong] if CHECKS[name].facts.judges else "–"


def diagnose(
    what: Any, target: Target | None = None, scores=None, reference=None, *, particles: bool = False, name: str = ""
) -> Report:
    """Check a fit, or draws.

    Args:
        what: a Fit; draws (n, d) or (chains, n, d) of unconstrained theta; named values of a model; ArviZ's
            InferenceData; or what `weigh` or `thin` returns.
        target: whose draws they are, for example from `from_numpyro`.
        scores: gradients of the log density at the draws, in their shape, if there is no target.
        reference: (k, d) or (chains, k, d) draws that are right, for example from `reference.nuts`; or ArviZ's
            InferenceData, whose divergences are counted.
        particles: whether the draws are particles of another tool, for example of SVGD. A particle is no random draw:
            chance excuses nothing then.
        name: what the report calls the draws, for example their file.

    Returns:
        The Report. Without target, scores and reference it says that the draws cannot be checked.

    Raises:
        ValueError: a shape that does not fit, or a number that is not finite.
    """
    made = what if isinstance(what, Fit) else None
    if isinstance(what, Weighed):
        what, target, made = what.evidence, what.target, what.made
    seen = evidence_of(what, target, scores, particles)
    target = made.target if made else target
    if reference is not None:
        right, diverging = reference_of(reference, seen.d, target)
        seen = replace(seen, reference=right, diverging=diverging)
    findings = {}
    for check in CHECKS.entries():
        if all(getattr(seen, need) is not None for need in check.facts.needs):
            found = check.make(seen)
            if found is not None:
                findings[check.name] = found
    return Report(seen, findings, made, name, target.name if target else "")
