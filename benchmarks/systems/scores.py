# SPDX-License-Identifier: Apache-2.0
"""The scores of the candidates, alike for every system."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# what one unit of score is worth: the exponential mechanism of epsilon 1 and sensitivity 1
RATE = 0.5


def normal(count: int) -> NDArray[Any]:
    """Scores that few candidates lead: independent normal numbers of standard deviation 10."""
    return np.random.default_rng(1).normal(0, 10, count)


def votes(count: int) -> NDArray[Any]:
    """Scores with many ties at the top: 0 to 99 over and over."""
    return np.arange(count, dtype=np.int64) * 61 % 100
