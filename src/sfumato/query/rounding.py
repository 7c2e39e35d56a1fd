# SPDX-License-Identifier: Apache-2.0
"""How far rounding on lattices may move a result, compared with the result's noise."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.metadata.column import Real
from sfumato.plan.aggregate import Aggregate, Mean, Sum, Variance
from sfumato.plan.scalar import Estimate, Field
from sfumato.plan.statistic import Statistic
from sfumato.plan.value import Value, is_of_range
from sfumato.privacy.event import Json
from sfumato.query.estimate import Kind, Released

# A rounding of more than this part of the noise is stated.
_PART = 10


@dataclass(frozen=True, slots=True)
class Move:
    """``far``: how far rounding moves one value; ``largest``: the largest size of a value."""

    far: Fraction
    largest: Fraction


def move_of(aggregate: Aggregate) -> Move | None:
    """How far a value that an aggregate reads may be from the number in the data; None: not at all.

    A declared step moves nothing: the values are declared to be on it.

    >>> from sfumato.metadata.column import Column
    >>> move_of(Sum(Value.of(Column("hours", Real(0, 99))))).far
    Fraction(1, 32768)
    """
    if not isinstance(aggregate, Sum | Mean | Variance):
        return None
    value = aggregate.value
    far = value.rounding + _nearest(value)
    codes = value.numeric.lower_code, value.numeric.upper_code
    return Move(far, max(map(abs, codes)) * value.step) if far else None


def _nearest(value: Value) -> Fraction:
    """How far a column is from its nearest point, where its steps follow from its range alone."""
    kind = value.type
    rounded = isinstance(value.expression, Field) and isinstance(kind, Real) and is_of_range(kind)
    return value.step / 2 if rounded else Fraction(0)


def is_beyond(move: Move, part: Released, row: int, read: Estimate, half_width: Json) -> bool:
    """Whether rounding may move an estimate by more than a tenth of half the width of its interval.

    A sum moves once for each row. Where no count of rows was released, there are at least as many
    as its size needs.
    """
    if not isinstance(half_width, int | float) or read.statistic is Statistic.COUNT:
        return False
    far = move.far
    if part.reading.kind is Kind.NUMBER:
        far *= max(abs(part.point(row)) / move.largest, Fraction(1))
    elif read.statistic is Statistic.SUM:
        far *= max(part.point(row, Statistic.COUNT), Fraction(0))
    elif read.statistic in (Statistic.VARIANCE, Statistic.VARIANCE_OF_SAMPLE):
        # moving each value by so much moves their deviation d by no more, and d^2 by at most far (2 d + far)
        far *= far + 2 * Fraction(part.point(row, _ROOT[read.statistic]))
    return far * _PART > Fraction(half_width)


_ROOT = {
    Statistic.VARIANCE: Statistic.DEVIATION,
    Statistic.VARIANCE_OF_SAMPLE: Statistic.DEVIATION_OF_SAMPLE,
}
