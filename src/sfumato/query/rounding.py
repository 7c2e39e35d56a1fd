# SPDX-License-Identifier: Apache-2.0
"""Compares the effect of rounding values to a lattice with the noise of a result.

``release`` computes a ``Move`` before the charge; ``table`` warns if it matters.
"""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.metadata.column import Real
from sfumato.plan.aggregate import (
    Aggregate,
    Linear,
)
from sfumato.plan.reading import Kind
from sfumato.plan.scalar import Estimate, Field
from sfumato.plan.statistic import Statistic
from sfumato.plan.value import Value, is_of_range
from sfumato.privacy.event import Json
from sfumato.query.estimate import AnyReleased

# The bias text mentions rounding that exceeds 1 / _PART of the noise.
_PART = 10


@dataclass(frozen=True, slots=True)
class Move:
    """A bound on the error from rounding values to a lattice: at most ``far``, where values are at
    most ``largest``.
    """

    far: Fraction
    largest: Fraction


def move_of(aggregate: Aggregate) -> Move | None:
    """Returns the bound on the rounding error of the values that an aggregate reads; None if they
    are not rounded.

    A declared step moves nothing, since the values are declared to be multiples of it.

    >>> from sfumato.metadata.column import Column
    >>> from sfumato.plan.aggregate import Sum
    >>> move_of(Sum(Value.of(Column("hours", Real(0, 99))))).far
    Fraction(1, 32768)
    """
    value = aggregate.read
    if not isinstance(aggregate, Linear) or value is None or not aggregate.reads_codes:
        return None
    far = value.rounding + _nearest(value)
    codes = value.numeric.lower_code, value.numeric.upper_code
    if far:
        return Move(far, max(map(abs, codes)) * value.step)
    return None


def _nearest(value: Value) -> Fraction:
    """Half a step for a column whose step was derived from its range; 0 for a declared step."""
    kind = value.type
    rounded = isinstance(value.expression, Field) and isinstance(kind, Real) and is_of_range(kind)
    if rounded:
        return value.step / 2
    return Fraction(0)


def is_beyond(
    move: Move,
    part: AnyReleased,
    row: int,
    read: Estimate,
    half_width: Json,
) -> bool:
    """Returns whether rounding may change an estimate by more than a tenth of its interval's
    half-width.

    A sum is moved once for each row. If no count of rows was released, the least possible number of
    rows is the sum divided by the largest value.
    """
    if not isinstance(half_width, int | float) or read.statistic is Statistic.COUNT:
        return False
    far = move.far
    if part.reading.kind is Kind.NUMBER:
        far *= max(abs(part.point(row)) / move.largest, Fraction(1))
    elif read.statistic is Statistic.SUM:
        far *= max(part.point(row, Statistic.COUNT), Fraction(0))
    elif read.statistic in (Statistic.VARIANCE, Statistic.VARIANCE_OF_SAMPLE):
        # the deviation d moves by at most ``far``, so d^2 moves by at most far (2 d + far)
        far *= far + 2 * Fraction(part.point(row, _ROOT[read.statistic]))
    return far * _PART > Fraction(half_width)


_ROOT = {
    Statistic.VARIANCE: Statistic.DEVIATION,
    Statistic.VARIANCE_OF_SAMPLE: Statistic.DEVIATION_OF_SAMPLE,
}
