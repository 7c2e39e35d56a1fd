# SPDX-License-Identifier: Apache-2.0
"""What a wanted error means for each part: how far its noise may reach (RULES 6).

A relative error is relative to a PUBLIC number that the answer names: the declared size of
the table, or the first estimate already stored for the same question. Never to an exact
value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.errors import NoReference, UnsupportedSql, unknown
from sfumato.exact.rational import decimal_text
from sfumato.exact.rounding import sqrt_down
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Noise
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.plan.question import Question
from sfumato.plan.relation import Scan
from sfumato.plan.scalar import Estimate, Key, Scalar
from sfumato.plan.show import title
from sfumato.plan.stages import Part
from sfumato.plan.statistic import Statistic
from sfumato.query.price import Target

CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True, slots=True)
class Reference:
    """What an answer stored earlier says of a part: a mean estimate, and the rows behind it.

    ``size``: of the smallest group; ``typical``: the size of the groups that all being alike
    would have the same mean squared error.
    """

    charge: str
    magnitude: Fraction
    size: Fraction
    typical: Fraction


@dataclass(frozen=True, slots=True)
class Wanted:
    """Errors in the units of the answer, and the group size where a mean needs one.

    Half-widths at 95%, or with ``average`` roots of mean squares.
    """

    amounts: tuple[Fraction, ...]
    sizes: tuple[Fraction, ...]
    notes: tuple[str, ...]
    average: bool = False

    def reach(self, index: int, part: Part, fine: int) -> int:
        """The largest noise, in the integers of a part, that keeps its error."""
        amount = self.amounts[index]
        match part.aggregate:
            case Sum(value):
                return int(amount * fine / value.step)
            case Mean(value):
                # an error of 1 in the numerator moves the mean by at most step / size; RULES 22
                return int(amount / value.step * self.sizes[index] * fine) - 1
            case (
                CountRows()
                | CountUnits()
                | CountValues()
                | CountDistinct()
                | Variance()
                | Quantiles()
            ):
                return int(amount * fine)
            case _:
                raise unknown(part.aggregate)

    def meets(self, noise: Noise, reach: int) -> bool:
        """Whether a noise keeps within ``reach``: 95 times in 100, or in the root of its mean square."""
        if self.average:
            return Fraction(noise.variance.upper) <= reach * reach
        return noise.tail(reach).upper <= 1 - CONFIDENCE

    def times(self, factor: Fraction) -> "Wanted":
        """The same with every error so many times as large."""
        return replace(self, amounts=tuple(amount * factor for amount in self.amounts))


def wanted(
    question: Question, dataset: Dataset, target: Target, stored: Mapping[int, Reference]
) -> Wanted:
    """The wanted half-width of every part.

    Raises:
        UnsupportedSql: a column that is not an aggregate as it is.
        NoReference: a relative error, or the error of a mean, without a public reference.
    """
    items = [item.expression for item in question.output.items]
    read = [each for each in items if isinstance(each, Estimate)]
    others: list[Scalar] = [each for each in items if not isinstance(each, Estimate | Key)]
    others += [each for each in read if each.statistic not in (Statistic.VALUE, Statistic.MEAN)]
    spreads = any(isinstance(each, Variance) for each in question.raw.aggregates)
    if (
        others
        or spreads
        or {each.index for each in read} != set(range(len(question.raw.aggregates)))
    ):
        raise UnsupportedSql(
            "error= needs every aggregate as a column of its own, a count, a sum or a mean, without arithmetic, HAVING "
            "or ORDER BY on others, and without a variance.",
            remedy="Ask with epsilon=, or put each aggregate into a column of its own.",
        )
    size = _declared_size(question, dataset)
    amounts, sizes, notes = [], [], []
    for index, aggregate in enumerate(question.raw.aggregates):
        reference = stored.get(index)
        amount, note = _amount(aggregate, target, size, reference)
        amounts.append(amount)
        counted = size if dataset.tables[question.table].unit is None else None
        sizes.append(_size(aggregate, counted, reference, average=target.average))
        notes += [note] if note else []
        if isinstance(aggregate, Mean) and reference is None:
            notes.append(
                f"{title(aggregate)}: the error holds as far as none of the declared {size or 0:,} values is missing."
            )
    if target.average:
        notes.append(
            "The error is the root of the mean squared error over the cells of a column, not of every cell."
        )
    return Wanted(tuple(amounts), tuple(sizes), tuple(notes), target.average)


def typical_size(sizes: Sequence[Fraction]) -> Fraction:
    """The size of equal groups whose means have the mean squared error of these; 0 where one has no size.

    >>> typical_size([Fraction(10), Fraction(10)])
    Fraction(10, 1)
    """
    if min(sizes) <= 0:
        return Fraction(0)
    return sqrt_down(len(sizes) / sum((1 / (size * size) for size in sizes), Fraction(0)))


def _declared_size(question: Question, dataset: Dataset) -> int | None:
    """The public number of rows behind a question: of the whole table, or unknown."""
    whole = isinstance(question.raw.relation, Scan) and not question.raw.keys
    return dataset.tables[question.table].size if whole else None


def _amount(
    aggregate: Aggregate, target: Target, size: int | None, stored: Reference | None
) -> tuple[Fraction, str]:
    if not target.relative:
        return target.amount, ""
    percent = f"{decimal_text(target.amount * 100)}%"
    if size is not None and isinstance(aggregate, CountRows):
        return target.amount * size, f"{percent} of the declared size {size:,} of the table."
    if stored is not None and stored.magnitude > 0:
        value = f"{float(stored.magnitude):,.6g}"
        return (
            target.amount * stored.magnitude,
            f"{percent} of {value}, the mean stored estimate of {title(aggregate)} (charge {stored.charge}).",
        )
    raise NoReference(
        f"error={percent} of {title(aggregate)} has nothing public to be relative to.",
        allowed="a declared size (COUNT(*) of the whole table), or an estimate already stored for the same question",
        remedy="Ask with an absolute error=, or first ask the same question with a small epsilon= (a pilot): its "
        "stored answer is then the reference.",
    )


def _size(
    aggregate: Aggregate, size: int | None, stored: Reference | None, *, average: bool
) -> Fraction:
    """The rows behind a mean: the declared size where every row is its own unit, or what is stored."""
    if not isinstance(aggregate, Mean):
        return Fraction(0)
    if size is not None:
        return Fraction(size)
    if stored is not None and stored.size > 0:
        return stored.typical if average else stored.size
    raise NoReference(
        f"The error of {title(aggregate)} depends on how many rows a group has, which is not public.",
        allowed="a declared size= of the table, or an answer already stored for the same question",
        remedy="Ask with epsilon=, or first ask the same question with a small epsilon= (a pilot).",
    )
