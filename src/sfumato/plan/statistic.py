# SPDX-License-Identifier: Apache-2.0
"""How one release is read: several statistics of a column can share it (RULES 15)."""

from enum import Enum


class Statistic(Enum):
    """What is computed from the released integers of an aggregate.

    ``VALUE`` is the aggregate itself. The others are of a mean (count, sum, mean) or of a
    variance (these, and both variances with their roots).
    """

    VALUE = "value"
    COUNT = "count"
    SUM = "sum"
    MEAN = "mean"
    VARIANCE = "variance"
    VARIANCE_OF_SAMPLE = "variance of a sample"
    DEVIATION = "standard deviation"
    DEVIATION_OF_SAMPLE = "standard deviation of a sample"
