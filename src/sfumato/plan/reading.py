# SPDX-License-Identifier: Apache-2.0
"""How the released integers of an aggregate translate into counts, sums, means or quantiles."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction


class Kind(Enum):
    """The kind of estimate that an aggregate's noisy integers give: a number, a mean, a variance or
    quantiles.
    """

    NUMBER = "number"
    MEAN = "mean"
    VARIANCE = "variance"
    QUANTILES = "quantiles"


@dataclass(frozen=True, slots=True)
class Reading:
    """The parameters by which an aggregate's noisy integers are converted into its estimate, by
    ``kind``.

    * Number: the integer n is the number n ``unit``.
    * Mean: the integers (a, b) are (a + b) ``unit`` rows with the mean ``lower`` + ``span``
      a / (a + b).
    * Variance: the integers (a, b, c) are (a + b + c) ``unit`` rows with the mean ``lower`` +
      ``span`` (a + b/2) / (a + b + c).
    * Quantiles: leaf j is the value ``lower`` + ``span`` j; a weight w is w ``unit`` rows.

    Means and quantiles are at most ``upper``, since the last level of a grid may end beyond the
    range. ``least`` is the lower end of the range of quantiles, where ``lower`` is the middle of
    the first leaf. ``rounding`` is the largest distance of a value from the middle of its level.
    """

    kind: Kind
    unit: Fraction
    lower: Fraction = Fraction(0)
    span: Fraction = Fraction(0)
    upper: Fraction = Fraction(0)
    is_date: bool = False
    least: Fraction = Fraction(0)
    rounding: Fraction = Fraction(0)
