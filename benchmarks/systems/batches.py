# SPDX-License-Identifier: Apache-2.0
"""Made-up rows for steps of networks, the same in every library. Imports NumPy alone."""

from typing import Any

import numpy as np

# The MLP: 784 numbers, two layers of 512, 10 classes.
MLP_WIDTHS = (784, 512, 512, 10)
CLASSES = 10


def made_up(rows: int, width: int, largest: int) -> Any:
    """Rows of whole numbers from 0 to ``largest``, the label in the last column."""
    random = np.random.default_rng(0)
    inputs = random.integers(0, largest + 1, (rows, width))
    return np.column_stack([inputs, random.integers(0, CLASSES, rows)])
