"""Data sets small enough to print, each with its source."""

import numpy as np

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
