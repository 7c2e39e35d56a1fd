# SPDX-License-Identifier: Apache-2.0
"""Estimates of queries from noisy integers, and tail bounds of their error."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.show.render import number

# Above the rounding error of the floats in a bound.
_UP = 1 + 2.0**-30


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a query, in rows, with its standard error and its interval.

    >>> Estimate(1203.5, 10.2, 1183, 1224)
    1,203.50 [1,183, 1,224]
    """

    value: float
    standard_error: float
    low: float
    high: float

    @classmethod
    def within(cls, value: float, deviation: float, far: float, refinement: int) -> Self:
        """Returns the estimate in rows, given its value, standard deviation and interval half-width
        in lattice steps.

        ``refinement`` is the number of steps of a row; ``far`` is half the width of the interval,
        in steps.
        """
        value, far = value / refinement, far / refinement
        return cls(value, deviation / refinement, value - far, value + far)

    def __repr__(self) -> str:
        return f"{number(self.value)} [{number(self.low)}, {number(self.high)}]"


def miss_of(confidence: Number) -> float:
    """Returns one minus the confidence: the probability with which an interval may miss.

    Raises:
        InvalidNumber: a confidence outside of (0, 1 - 1e-12].

    >>> miss_of("0.75")
    0.25
    """
    fraction = to_fraction("confidence", confidence)
    return float(1 - positive("confidence", fraction, at_most=1 - Fraction(1, 10**12)))


def noise_width(noise: Noise) -> float:
    """The scale b of discrete Laplace noise, or the parameter sigma of discrete Gaussian noise."""
    if isinstance(noise, DiscreteGaussian):
        return math.sqrt(noise.sigma_squared)
    assert isinstance(noise, DiscreteLaplace), "bought by an epsilon or a rho"
    return float(noise.scale)


def gaussian_reach(squared: float, tail: float) -> float:
    """Returns the sub-Gaussian tail bound of the absolute value of a weighted sum of discrete
    Gaussian noise.

    It is exceeded with probability at most 2 exp(-``tail``).

    Args:
        squared: the sum of (weight times sigma)^2.
        tail: ln(2 / probability).

    Source: Canonne, Kamath, Steinke (2020), corollary 17.

    >>> round(gaussian_reach(1.0, 2.0), 6)
    2.0
    """
    return _UP * math.sqrt(2 * squared * tail)


def laplace_reach(squared: float, largest: float, tail: float) -> float:
    """Returns the Chernoff tail bound of the absolute value of a weighted sum of discrete Laplace
    noise.

    It is exceeded with probability at most 2 exp(-``tail``): ln E exp(s X) <= -ln(1 - s^2 w^2) <= 2
    ln 2 s^2 w^2 for s w <= 1/sqrt 2, since a discrete Laplace variable has no larger moments than
    the continuous one.

    Args:
        squared: the sum of w^2, where w is a weight times a scale.
        largest: the largest w, or more.
        tail: ln(2 / probability).

    >>> round(laplace_reach(1.0, 1.0, 0.5), 4)
    1.6651
    """
    doubled = 2 * math.log(2) * squared
    if not doubled:
        return 0.0
    rate = min(math.sqrt(tail / doubled), 1 / (math.sqrt(2) * largest))
    return _UP * (tail / rate + doubled * rate)
