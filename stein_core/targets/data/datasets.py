"""Data sets: those small enough to print, and Covertype, each with its source."""

from functools import lru_cache

import numpy as np

from stein_core.targets.data.downloads import covertype_arrays, data_file  # noqa: F401

# Space shuttle flights before Challenger: temperature at launch (degrees Fahrenheit) and whether an O-ring suffered
# thermal distress. Dalal, Fowlkes & Hoadley 1989, J. Am. Stat. Assoc. 84, table 1.
ORING_TEMPERATURE = np.array(
    [66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58], float
)
ORING_DISTRESS = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1], float)

# Cavendish 1798, the density of the Earth relative to water, 29 runs, as listed in Stigler 1977, Ann. Stat. 5.
EARTH_DENSITY = np.array(
    [5.50, 5.61, 4.88, 5.07, 5.26, 5.55, 5.36, 5.29, 5.58, 5.65, 5.57, 5.53, 5.62, 5.29, 5.44]
    + [5.34, 5.79, 5.10, 5.27, 5.39, 5.42, 5.47, 5.63, 5.34, 5.46, 5.30, 5.75, 5.68, 5.85]
)

# Twenty-one days of a plant that oxidises ammonia to nitric acid: air flow, temperature of the cooling water (degrees
# Celsius), concentration of the acid (per mille minus 500, divided by 10), and the ammonia that escapes (per mille).
# Brownlee 1965, Statistical Theory and Methodology in Science and Engineering, p. 454.
STACK_LOSS = np.array(
    [
        [80, 80, 75, 62, 62, 62, 62, 62, 58, 58, 58, 58, 58, 58, 50, 50, 50, 50, 50, 56, 70],
        [27, 27, 25, 24, 22, 23, 24, 24, 23, 18, 18, 17, 18, 19, 18, 18, 19, 19, 20, 20, 20],
        [89, 88, 90, 87, 87, 87, 93, 93, 87, 80, 89, 88, 82, 93, 89, 86, 72, 79, 80, 82, 91],
        [42, 37, 37, 28, 18, 18, 19, 20, 15, 14, 14, 13, 11, 12, 8, 7, 8, 8, 9, 15, 15],
    ],
    float,
)

# ---------------------------------------------------------------- the 1-D wave (SMI paper, app. C.2)

WAVE_NOISE = 0.1
WAVE_CLUSTERS = ((-1.5, -0.5), (1.3, 1.7))
WAVE_REGIONS = ("In", "Between", "Entire")


def wave_function(x):
    """Return 1.5 sin(2 pi x + 2 pi / 3) + 3x + 1, as in the published code and figures.

    The paper prints the phase as 2 pi (x + 2/3), which is 4 pi / 3. Then f(-2) would be -6.30; in its figure it is
    -3.70.
    """
    return 1.5 * np.sin(2 * np.pi * x + 2 * np.pi / 3) + 3 * x + 1


def wave_training() -> np.ndarray:
    """Return (2, 40): x and y of the training data, by the published recipe.

    Draw 20 uniform points in each cluster and sort them. Then seed the generator with 52 again for the noise.
    """
    draw = np.random.RandomState(52)
    x = np.sort(np.concatenate([draw.uniform(*cluster, 20) for cluster in WAVE_CLUSTERS]))
    return np.stack([x, wave_function(x) + WAVE_NOISE * np.random.RandomState(52).randn(40)])


def wave_region(region: str, seed: int = 53) -> np.ndarray:
    """Return (2, k): x and y of evaluation points.

    Args:
        region: "In", 20 points in the clusters (the left one with probability 3/4); "Between", 60 points in (-0.5,
            1.3); or "Entire", 120 points in (-2, 2).
        seed: of "In" only. Seed 52 is the paper's for all three. Its "In" set shares 9 of 20 points with the training
            data, so "In" has fresh points by default. "Between" and "Entire" share none and are always the published
            points.

    Raises:
        KeyError: another region.
    """
    draw = np.random.RandomState(seed if region == "In" else 52)
    if region == "In":
        left, right = WAVE_CLUSTERS
        x = np.array([draw.uniform(*(left if draw.binomial(2, 0.5) > 0 else right)) for _ in range(20)])
    else:
        x = draw.uniform(
            *{"Between": (-0.5, 1.3), "Entire": (-2.0, 2.0)}[region], {"Between": 60, "Entire": 120}[region]
        )
    noise = np.random.RandomState(seed if region == "In" else 52).randn(len(x))
    return np.stack([x, wave_function(x) + WAVE_NOISE * noise])


# ---------------------------------------------------------------- Covertype

COVERTYPE = "classification/covtype.npz"


@lru_cache(maxsize=1)
def covertype() -> tuple[np.ndarray, np.ndarray]:
    """Return x (581012, 55) and y (581012,) of binary Covertype: Blackard & Dean 1999, UCI, CC BY 4.0.

    x has a column of ones, ten standardised numbers and 44 indicators (4 areas, 40 soils). y is 1 for lodgepole pine.

    Raises:
        ValueError: the file is not here and cannot be downloaded.
    """
    numbers, areas, soils, y = covertype_arrays()
    numbers = numbers.astype(np.float64)
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    indicators = [np.eye(k, dtype=np.float32)[column] for column, k in ((areas, 4), (soils, 40))]
    ones = np.ones((len(numbers), 1), np.float32)
    return np.hstack([ones, numbers.astype(np.float32), *indicators]), y.astype(np.float32)
