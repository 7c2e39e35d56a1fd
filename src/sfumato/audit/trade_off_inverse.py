# SPDX-License-Identifier: Apache-2.0
"""The inverse of a trade-off curve, as the largest of lines, from the statements of a guarantee.

A test that finds the truth with probability y has false alarms of at least ``inverse(y)``.
Proof: trade_off_inverse.proof.md.
"""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from sfumato.accounting.approx_statement import Family

_PLACES = 64
_ROUND_DOWN = 2.0**-50

Line: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Inverse:
    """A lower bound of a test's false alarm rate, as a function of its hit rate: the largest of the
    lines ``slope y + intercept``.

    ``breaks[i]`` is about where line i + 1 overtakes line i.

    >>> from sfumato.accounting.approx_statement import family
    >>> from sfumato.privacy import PureDP
    >>> inverse = inverse_of(family(PureDP(0)))
    >>> round(inverse(0.25), 6), inverse(0.0)
    (0.25, 0.0)
    """

    lines: tuple[Line, ...]
    breaks: tuple[float, ...]

    def __call__(self, hits: float) -> float:
        """Returns a lower bound of the false alarms of a test that finds the truth with ``hits``."""
        slope, intercept = self.lines[bisect_right(self.breaks, hits)]
        return max(slope * hits + intercept, 0.0)


def inverse_of(statements: Family) -> Inverse:
    """Returns a lower bound of the false alarm rate of a test by its hit rate, under all statements
    of a family.

    Guarantees:
        no test has fewer false alarms than the inverse

    >>> from sfumato.accounting.approx_statement import family
    >>> from sfumato.privacy import ApproxDP
    >>> round(inverse_of(family(ApproxDP(0, "0.1")))(0.3), 6)
    0.2
    """
    lines: set[Line] = {(0.0, 0.0)}
    for statement in {statements(step / (_PLACES - 1)) for step in range(_PLACES)}:
        if statement.odds is None:
            continue
        odds, delta = statement.odds, statement.delta
        lines.add(_line(1 / odds, -delta / odds))
        lines.add(_line(odds, 1 - delta - odds))
    hull: list[Line] = []
    for line in sorted(lines):
        if hull and hull[-1][0] == line[0]:
            hull.pop()
        while len(hull) > 1 and _meet(hull[-2], hull[-1]) >= _meet(hull[-2], line):
            hull.pop()
        hull.append(line)
    breaks = [_meet(low, high) for low, high in pairwise(hull)]
    return Inverse(tuple(hull), tuple(breaks))


def _line(slope: Fraction, intercept: Fraction) -> Line:
    """A line in floats that is below the exact one, also after it is computed in floats."""
    at_zero = float(intercept)
    return float(slope) * (1 - _ROUND_DOWN), at_zero - abs(at_zero) * _ROUND_DOWN


def _meet(low: Line, high: Line) -> float:
    return (low[1] - high[1]) / (high[0] - low[0])
