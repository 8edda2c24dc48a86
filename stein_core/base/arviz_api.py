"""What we ask of ArviZ, in the words of its versions 0.2x and 1.x. Each import waits: it takes a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def is_old(arviz: Any) -> bool:
    """Say whether this is ArviZ 0.2x."""
    return int(arviz.__version__.split(".")[0]) < 1


def ess(chains: np.ndarray) -> float:
    """Return the effective number of draws of chains (chains, n): bulk, rank-normalised (Vehtari et al. 2021)."""
    import arviz

    return float(arviz.ess(chains))


def rhat(chains: np.ndarray) -> float:
    """Return rank-normalised R-hat of chains (chains, n) (Vehtari et al. 2021)."""
    import arviz

    return float(arviz.rhat(chains))


def pareto_k(log_weights: np.ndarray) -> float:
    """Return Pareto's k of importance weights, given their logarithms (n,) (Vehtari et al. 2024)."""
    return float(_psis(log_weights)[1])


def smoothed(log_weights: np.ndarray) -> np.ndarray:
    """Return importance weights (n,) with a Pareto-smoothed tail, which sum to 1, given their logarithms."""
    found = np.asarray(_psis(log_weights)[0])
    weights = np.exp(found - found.max())
    return weights / weights.sum()


def _psis(log_weights: np.ndarray) -> tuple[Any, Any]:
    """Return the smoothed logarithms, and k."""
    import arviz

    if is_old(arviz):
        return arviz.psislw(log_weights)
    from arviz_stats.base import array_stats

    return array_stats.psislw(-log_weights)  # which takes minus the logarithms


def from_groups(groups: Mapping[str, Mapping[str, np.ndarray]]) -> Any:
    """Return an InferenceData (ArviZ 0.2x) or a DataTree (1.x) of named arrays (chains, n, ...) in named groups."""
    import arviz

    if is_old(arviz):
        return arviz.InferenceData(**{name: arviz.dict_to_dataset(dict(arrays)) for name, arrays in groups.items()})
    return arviz.from_dict(groups)


def groups_of(data: Any) -> list[str]:
    """Return the names of the groups of an InferenceData or a DataTree."""
    return list(data.children) if hasattr(data, "children") else list(data.groups())


def from_netcdf(path: str) -> Any:
    """Read a file that either version has written. Nothing in it is executed."""
    import arviz

    found = arviz.from_netcdf(path, engine="h5netcdf").load()
    found.close()
    return found
