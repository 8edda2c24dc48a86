"""The random streams of a run: the number that is folded into a key, one for each use."""

from enum import IntEnum


class Stream(IntEnum):
    """Streams of random numbers. A new one takes the next free number.

    The key of a step gives its draws. Folded with the number of a stream it gives numbers that are independent of them.
    OWN and SEEN have the same number. So the diagnostics of SIVI, SIVI-SM and UIVI are not independent of the method's
    own draws at that step. Another number would change the published tables.
    """

    SEEN = 1  # of a step: the draws that the diagnostics take
    OWN = 1  # of a step: the second draws of a method that needs two sets
    GUIDE = 2  # of draws: the normals of a guide beside those of theta
    BATCH = 3  # of a step: its mini-batch
    NOISE = 4  # of a step: its noise
    POINTS = 5  # of a step: the points at which functions repel
    PRIOR = 6  # of a step: its draws of the prior
    SUBSPACE = 7  # of a step: its subspace
    FIXED_Z = 2**31 - 3  # of a run: the z of a sampler's particles
    FIXED = 2**31 - 2  # of a run: samples that stay the same
    EXACT = 2**31 - 1  # of a run: the exact draws of the diagnostics
