"""Results of the papers on real data, published beside ours."""

from stein_core.papers.tables import (  # noqa: F401  (importing registers)
    blr,
    collapse_bnn,
    damped,
    ensembles,
    ksivi,
    ksivi_posteriors,
    posteriordb,
    smi_mnist,
    smi_uci,
    svgd_uci,
)
from stein_core.papers.tables.table import TABLES, Cell, Claim, Comparison, Figure, compare, compute, run_cells

__all__ = ["TABLES", "Cell", "Claim", "Comparison", "Figure", "compare", "compute", "run_cells"]
