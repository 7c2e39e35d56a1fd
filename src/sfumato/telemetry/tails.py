# SPDX-License-Identifier: Apache-2.0
"""Bounds how far a sum of independent bounded terms is from its mean. Proof: tails.proof.md."""

import math
from statistics import NormalDist

# Shevtsova 2010: the constant of Berry and Esseen for terms of different laws.
BERRY_ESSEEN = 0.56


def half_width(
    most: float,
    least: float,
    largest: float,
    miss: float,
) -> float:
    """Returns an upper bound of |sum - its mean| for a sum of independent bounded terms, which
    fails with probability at most ``miss``.

    ``most`` and ``least`` bound its variance, ``largest`` the distance of any term from its mean.
    The smaller of the bounds of Bernstein, and of the normal law with the error of Berry and
    Esseen.

    Guarantees:
        a bounded sum stays within its half width

    >>> round(half_width(100.0, 100.0, 0.01, 0.05), 1)
    19.7
    """
    logarithm = math.log(2 / miss)
    third = largest * logarithm / 3
    bernstein = third + math.sqrt(third**2 + 2 * most * logarithm)
    left = miss - 2 * BERRY_ESSEEN * largest / math.sqrt(max(least, 1e-300))
    if left <= 1e-15:
        return bernstein
    normal = NormalDist().inv_cdf(1 - left / 2) * math.sqrt(most)
    return min(normal, bernstein)
