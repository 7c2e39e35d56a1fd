# SPDX-License-Identifier: Apache-2.0
"""Two weaker promises, under their own names. No account and no ledger takes them.

Source: Chatzikokolakis, Andres, Bordenabe, Palamidessi (PETS 2013) and Andres and others
(CCS 2013) for distances; Rubinstein and Alda (ICML 2017) for random differential privacy.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.rational import Number, decimal_text, positive, to_fraction
from sfumato.privacy.guarantee import PureDP

T = TypeVar("T")

_METRES = {"m": Fraction(1), "km": Fraction(1000), "": Fraction(1)}
_LENGTH = re.compile(r"\s*([0-9.eE+-]+)\s*(m|km|)\s*")


def metres(name: str, length: Number) -> Fraction:
    """Returns a length in metres, given a number or a string such as "200m" or "1.5km".

    Raises:
        InvalidNumber: no length above 0.

    >>> metres("per", "1.5km")
    Fraction(1500, 1)
    """
    if isinstance(length, str):
        match = _LENGTH.fullmatch(length)
        if match is None:
            raise InvalidNumber(f"{name} = {shown(length)}.", allowed='a length: "200m", "1.5km"')
        return positive(name, match[1]) * _METRES[match[2]]
    return positive(name, length)


@dataclass(frozen=True, slots=True, init=False)
class MetricDP:
    """The guarantee of metric privacy for places: at distance d, the odds change by at most
    e^(epsilon d / per).

    Two places within ``per`` are as hard to tell apart as two neighbours under epsilon; places far
    apart are not hidden from each other. It is no differential privacy: ``within`` alone makes one
    of it, for people who are known to be within an area.

    Raises:
        InvalidNumber: epsilon or per is not above 0.

    >>> MetricDP(1, per="200m").at("50m")
    PureDP(epsilon=Fraction(1, 4))
    >>> MetricDP(1, per="200m").within("1km")
    PureDP(epsilon=Fraction(5, 1))
    """

    epsilon: Fraction
    per: Fraction

    def __init__(self, epsilon: Number, per: Number) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "per", metres("per", per))

    def at(self, distance: Number) -> PureDP:
        """Returns the guarantee for two places at a distance: the epsilon by which they can be told
        apart.
        """
        return PureDP(self.epsilon * metres("distance", distance) / self.per)

    def within(self, diameter: Number) -> PureDP:
        """Returns the differential privacy guarantee of a place, if all places lie within an area
        of public diameter.
        """
        return PureDP(self.epsilon * metres("diameter", diameter) / self.per)

    def of_reports(self, count: int) -> "MetricDP":
        """Returns the guarantee of ``count`` reports of one place, or of places that move together.

        Raises:
            InvalidNumber: a number of reports below 1.
        """
        if type(count) is not int or count < 1:
            raise InvalidNumber(f"{shown(count)} reports.", allowed="an integer >= 1")
        return MetricDP(self.epsilon * count, self.per)


@dataclass(frozen=True, slots=True, init=False)
class RandomDP:
    """(epsilon, delta)-differential privacy for all neighbours but a share ``gamma`` of them.

    The share is that of pairs of datasets drawn from a public generator. A dataset that the
    generator would not draw, such as one with an outlier, has no promise, and nobody knows which
    pairs are the exceptions; so it converts to nothing.

    Raises:
        InvalidNumber: epsilon is not above 0, delta outside [0, 1), or gamma outside (0, 1).

    >>> RandomDP(1, 0, gamma="0.05").gamma
    Fraction(1, 20)
    """

    epsilon: Fraction
    delta: Fraction
    gamma: Fraction

    def __init__(self, epsilon: Number, delta: Number, gamma: Number) -> None:
        slack = to_fraction("delta", delta)
        if not 0 <= slack < 1:
            raise InvalidNumber(f"delta = {delta}.", allowed="0 or more, below 1")
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "delta", slack)
        object.__setattr__(self, "gamma", _share("gamma", gamma))


def sampled_sensitivity(
    statistic: Callable[[Sequence[T]], float],
    draw: Callable[[], T],
    rows: int,
    gamma: Number,
    failure: Number,
) -> float:
    """The largest change of a statistic over neighbours drawn from a public generator.

    ``draw`` returns a row of the generator, which must not have seen private data. With
    probability at least 1 - ``failure``, a further pair changes the statistic by more with
    probability at most ``gamma``. It is a number and no proved distance: noise of this scale has
    the promise of ``RandomDP`` alone.

    Raises:
        InvalidNumber: gamma or failure is outside (0, 1), or there are no rows.
        InvalidDeclaration: the statistic is no finite number.

    >>> from itertools import cycle
    >>> sampled_sensitivity(sum, iter(cycle([0, 1, 1])).__next__, 4, gamma="0.5", failure="0.1")
    1.0
    """
    if type(rows) is not int or rows < 1:
        raise InvalidNumber(f"rows = {shown(rows)}.", allowed="an integer >= 1")
    pairs = pairs_for(gamma, failure)
    largest = 0.0
    for _ in range(pairs):
        one = [draw() for _ in range(rows)]
        other = [*one[:-1], draw()]
        change = abs(float(statistic(one)) - float(statistic(other)))
        if not math.isfinite(change):
            raise InvalidDeclaration("A statistic that is no finite number.")
        largest = max(largest, change)
    return largest


def pairs_for(gamma: Number, failure: Number) -> int:
    """How many pairs are drawn: ceil(ln(1/failure) / -ln(1 - gamma)).

    If a share of more than gamma of all pairs changes by more than the largest of N, each of N
    pairs was among the others, which has probability below (1 - gamma)^N <= failure.

    >>> pairs_for("0.05", "0.01")
    90
    """
    share, missed = _share("gamma", gamma), _share("failure", failure)
    pairs = math.ceil(math.log(1 / missed) / -math.log1p(-float(share)))
    # the logarithms are floats: the powers decide
    while pairs > 1 and pairs <= 10**5 and (1 - share) ** (pairs - 1) <= missed:
        pairs -= 1
    while pairs <= 10**5 and (1 - share) ** pairs > missed:
        pairs += 1
    return pairs


def _share(name: str, value: Number) -> Fraction:
    exact = to_fraction(name, value)
    if not 0 < exact < 1:
        raise InvalidNumber(f"{name} = {value}.", allowed="above 0 and below 1")
    return exact


def length_text(length: Fraction) -> str:
    """Returns a length in metres as text for people.

    >>> length_text(Fraction(1500)), length_text(Fraction(50))
    ('1.5 km', '50 m')
    """
    if length >= 1000:
        return f"{decimal_text(length / 1000)} km"
    return f"{decimal_text(length)} m"
