"""The reference draws of the target `waveform`, which are shipped."""

import numpy as np

from stein_core.contract.registry import TARGETS
from stein_core.posterior.reference import nuts
from stein_core.targets.data import downloads
from stein_core.targets.waveform import INPUTS, REFERENCE


def make_reference() -> None:
    """Write the file of `waveform_reference`: four chains of NUTS, seed 0, every fourth of 1,000 draws each."""
    target = TARGETS["waveform"].make(INPUTS, data=downloads.waveform())
    draws = nuts(target)[:, ::4].reshape(-1, INPUTS)
    np.savez_compressed(REFERENCE, draws=draws.astype(np.float32))
