"""The old names of modules that have moved. Scripts, notebooks and links of earlier versions import them."""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

HERE = "stein_core."
FOLDERS = ("experiments",)  # that are gone
MOVED = {  # old name -> new name
    "assembly": "runs.assembly",
    "bands": "runs.outputs",
    "common_knobs": "contract.common_knobs",
    "coordinates": "contract.target",
    "datasets": "targets.data.datasets",
    "decentring": "targets.own.decentring",
    "density": "targets.own.density",
    "diagnosis": "posterior",
    "diagnosis.checks": "posterior.checks",
    "diagnosis.companions": "posterior.companions",
    "diagnosis.discrepancy": "posterior.discrepancy",
    "diagnosis.drawing": "posterior.drawing",
    "diagnosis.evidence": "posterior.evidence",
    "diagnosis.figure": "posterior.figure",
    "diagnosis.functionals": "posterior.functionals",
    "diagnosis.mixing": "posterior.mixing",
    "diagnosis.provenance": "posterior.provenance",
    "diagnosis.reading": "posterior.reading",
    "diagnosis.reference": "posterior.reference",
    "diagnosis.regression": "posterior.regression",
    "diagnosis.report": "posterior.report",
    "diagnosis.verdict": "posterior.verdict",
    "diagnostics": "runs.diagnostics",
    "distances": "base.distances",
    "downloads": "targets.data.downloads",
    "edits": "runs.edits",
    "errors": "base.errors",
    "estimators": "methods.parts.estimators",
    "experiments.bands": "runs.outputs",
    "experiments.images": "targets.images",
    "experiments.network_data": "targets.small_networks",
    "experiments.nuts": "papers.wave_nuts",
    "experiments.posteriordb": "targets.posteriordb",
    "experiments.published": "papers.published",
    "experiments.recording": "papers.recording",
    "experiments.recovery": "papers.recovery",
    "experiments.wave": "targets.wave",
    "experiments.widths": "papers.widths",
    "facts": "contract.facts",
    "fitted": "posterior.fitted",
    "fitting": "posterior.fit",
    "fixed_points": "theory.fixed_points",
    "function_space": "methods.parts.function_space",
    "functional_priors": "methods.parts.functional_priors",
    "gram": "forces.gram",
    "guides": "forces.guides",
    "kernel_sums": "forces.sums",
    "kernels": "forces.kernels",
    "knobs": "contract.knobs",
    "machine": "base.machine",
    "median": "forces.median",
    "metrics": "base.metrics",
    "mnist": "targets.mnist",
    "models": "targets.own.numpyro_models",
    "networks": "base.networks",
    "noise": "base.noise",
    "noises": "methods.parts.noises",
    "optimizers": "forces.optimizers",
    "pieces": "base.pieces",
    "posteriors": "targets.posteriors",
    "rays": "targets.own.rays",
    "recipe": "contract.recipe",
    "recorded": "targets.own.recorded",
    "registry": "contract.registry",
    "resting": "runs.force_left",
    "rows": "targets.own.rows",
    "runner": "runs.runner",
    "sampler": "methods.parts.sampler",
    "sampler_posteriors": "targets.waveform",
    "sampler_targets": "targets.plane",
    "samples": "base.samples",
    "schedules": "methods.parts.schedules",
    "spec": "contract.spec",
    "starts": "targets.own.starts",
    "steppers": "runs.cache",
    "tables": "papers.tables",
    "tables.blr": "papers.tables.blr",
    "tables.collapse_bnn": "papers.tables.collapse_bnn",
    "tables.damped": "papers.tables.damped",
    "tables.ensembles": "papers.tables.ensembles",
    "tables.ksivi": "papers.tables.ksivi",
    "tables.ksivi_posteriors": "papers.tables.ksivi_posteriors",
    "tables.logistic": "papers.tables.logistic",
    "tables.posteriordb": "papers.tables.posteriordb",
    "tables.predictions": "papers.tables.predictions",
    "tables.smi_mnist": "papers.tables.smi_mnist",
    "tables.smi_uci": "papers.tables.smi_uci",
    "tables.svgd_uci": "papers.tables.svgd_uci",
    "tables.table": "papers.tables.table",
    "types": "contract.types",
    "uci": "targets.uci",
    "view": "runs.view",
    "wave": "targets.wave",
}


class Moved(MetaPathFinder, Loader):
    """Import a module by its old name: it is the same module, not a copy."""

    def find_spec(self, name, path=None, target=None):
        old = name.removeprefix(HERE)
        if name.startswith(HERE) and (old in MOVED or old in FOLDERS):
            return ModuleSpec(name, self, is_package=old in FOLDERS)

    def exec_module(self, module):
        if new := MOVED.get(module.__name__.removeprefix(HERE)):
            sys.modules[module.__name__] = import_module(HERE + new)


sys.meta_path.insert(0, Moved())
