"""Functions of NumPyro models as recorded JAX operations, with the large arrays that they read as arguments.

NumPyro's handlers keep one stack for all threads. So its models must not run while another thread may be compiling.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

LARGE = 1024  # entries from which an array is an argument of compiled programs, not a constant in each of them


class Recorded:
    """A function of one argument, run once to record its operations.

    Args:
        function: what to record.
        example: its argument, or shapes and dtypes of it.
    """

    def __init__(self, function: Callable, example: Any):
        record, shape = jax.make_jaxpr(function, return_shape=True)(example)
        # Copies: JAX (0.10) caches a NumPy array in the precision of its first use.
        consts = [np.array(c) if isinstance(c, np.ndarray) else c for c in record.consts]
        self._record = record.replace(consts=consts)
        self._out = jax.tree.structure(shape)
        self._large = [i for i, const in enumerate(consts) if np.size(const) >= LARGE]

    @property
    def arrays(self) -> list[np.ndarray]:
        """Return the large arrays that the function reads."""
        return [np.asarray(self._record.consts[i]) for i in self._large]

    def __call__(self, argument: Any, arrays: Sequence[Any] = ()) -> Any:
        """Run the operations, with other arrays of the same shapes if there are any."""
        consts = list(self._record.consts)
        for i, array in zip(self._large, arrays):
            consts[i] = array
        flat = jaxpr_as_fun(self._record.replace(consts=consts))(*jax.tree.leaves(argument))
        return jax.tree.unflatten(self._out, flat)


def unique(arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[int]]:
    """Return the different ones of `arrays`, and for each of `arrays` its place among them."""
    found: list[np.ndarray] = []
    places = []
    for array in arrays:
        same = (i for i, one in enumerate(found) if one.dtype == array.dtype and np.array_equal(one, array))
        place = next(same, len(found))
        if place == len(found):
            found.append(array)
        places.append(place)
    return found, places
