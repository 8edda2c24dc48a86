"""Results of the papers on real data, published beside ours."""

from stein_core.tables import blr, collapse_bnn, damped, ensembles, posteriordb, smi_mnist, smi_uci, svgd_uci  # noqa: F401  (importing registers)
from stein_core.tables.table import TABLES, Cell, Claim, Comparison, Figure, compare, compute, run_cells

__all__ = ["TABLES", "Cell", "Claim", "Comparison", "Figure", "compare", "compute", "run_cells"]
