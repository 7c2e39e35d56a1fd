# SPDX-License-Identifier: Apache-2.0
"""Tail bounds for a sum of independent Bernoulli variables. Proof: deviation.proof.md."""

from fractions import Fraction

from sfumato.exact.rational import Number
from sfumato.exact.rounding import log_up, sqrt_up
from sfumato.noise.law import open_unit


def deviation(coins: int, variance: Fraction, confidence: Number) -> Fraction:
    """Returns an error h with P(|sum - its mean| <= h) >= confidence, for a sum of independent
    Bernoulli variables ("coins").

    ``variance`` is an upper bound of the variance of one coin. The result is the smaller of the
    bounds of Hoeffding (1963, Theorem 1), tight for fair coins, and Bernstein (Boucheron, Lugosi,
    Massart 2013, Corollary 2.11), tight for a bias near 0 or 1.

    Guarantees:
        a sum of coins stays within its deviation

    >>> float(deviation(1_000_000, Fraction(1, 4), "0.95"))
    1358.10...
    >>> float(deviation(1_000_000, Fraction(1, 100), "0.95"))
    272.85...
    """
    miss = 1 - open_unit("confidence", confidence)
    logarithm = log_up(2 / miss)
    hoeffding = sqrt_up(coins * logarithm / 2)
    bernstein = logarithm / 3 + sqrt_up(logarithm**2 / 9 + 2 * coins * variance * logarithm)
    return min(hoeffding, bernstein, Fraction(coins))
