# SPDX-License-Identifier: Apache-2.0
"""A lower bound of the error of every linear measurement strategy for a workload.

``Plan.least`` shows it beside the error of the chosen strategy.
"""

from functools import lru_cache

import numpy as np

from sfumato.synopsis.workload import Workload

# Beyond it the eigenvalues take seconds.
MOST_CELLS = 2048


@lru_cache(maxsize=64)
def least_factor(workload: Workload) -> float | None:
    """Returns a lower bound of ``Strategy.factor``, for Gaussian noise and for Laplace noise.

    A strategy whose columns have length 1, measured with noise of variance 1, has a total squared
    error of at least (sum of the singular values of the workload)^2 over the cells. A column whose
    absolute values add up to 1 is no longer. None for more than 2,048 cells.

    Source: Li and Miklau (2013), "Optimal error of query sets under the differentially-private
    matrix mechanism", theorem 2.

    >>> from sfumato.synopsis.workload import Cells, Ranges
    >>> least_factor(Cells(7)), round(least_factor(Ranges(1024)), 1)
    (1.0, 12.2)
    """
    if workload.cells > MOST_CELLS:
        return None
    values = np.linalg.eigvalsh(workload.gram())
    total = float(np.sqrt(np.maximum(values, 0.0)).sum())
    return total**2 / workload.cells / workload.queries
