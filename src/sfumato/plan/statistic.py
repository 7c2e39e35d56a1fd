# SPDX-License-Identifier: Apache-2.0
"""The statistics that can be computed from one release of an aggregate (RULES 15)."""

from enum import Enum


class Statistic(Enum):
    """The names of the numbers that can be estimated from a released aggregate.

    ``VALUE`` is the aggregate itself. A mean also gives its count and sum; a variance gives
    these, the mean, and both variances with their square roots.
    """

    VALUE = "value"
    COUNT = "count"
    SUM = "sum"
    MEAN = "mean"
    VARIANCE = "variance"
    VARIANCE_OF_SAMPLE = "variance of a sample"
    DEVIATION = "standard deviation"
    DEVIATION_OF_SAMPLE = "standard deviation of a sample"
