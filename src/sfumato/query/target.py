# SPDX-License-Identifier: Apache-2.0
"""Translates a wanted error into the largest allowed noise of each part (RULES 6).

A relative error is relative to a public number that the answer names: the declared size of the
table, or the first stored estimate of the same statement. It is never relative to an exact value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

from sfumato.errors import NoReference, UnsupportedSql
from sfumato.exact.rational import decimal_text
from sfumato.exact.rounding import sqrt_down
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Noise
from sfumato.plan.aggregate import (
    Aggregate,
    CountRows,
    Mean,
    Variance,
)
from sfumato.plan.question import Question
from sfumato.plan.reading import Kind
from sfumato.plan.relation import Scan
from sfumato.plan.scalar import Estimate, Key
from sfumato.plan.stages import Part
from sfumato.plan.statistic import Statistic
from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.estimate import Released
from sfumato.query.price import Target
from sfumato.query.table import parts_from_json

CONFIDENCE = Fraction(95, 100)
# The statistics that an aggregate has as a column of its own.
_PLAIN = (Statistic.VALUE, Statistic.MEAN)


@dataclass(frozen=True, slots=True)
class Reference:
    """The mean estimate of a part in a stored answer, with the sizes of its groups.

    ``size`` is the size of the smallest group. ``typical`` is the size of equal groups whose means
    would have the same mean squared error.
    """

    charge: str
    magnitude: Fraction
    size: Fraction
    typical: Fraction


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted error of each part, as a number of the answer, and group sizes for means.

    Errors are half-widths at 95%, or if ``average`` roots of mean squared errors.
    """

    amounts: tuple[Fraction, ...]
    sizes: tuple[Fraction, ...]
    notes: tuple[str, ...]
    average: bool = False

    def reach(
        self,
        index: int,
        part: Part,
        fine: int,
    ) -> int:
        """The largest noise, in the integers of a part, that keeps its wanted error."""
        amount = self.amounts[index]
        aggregate = part.aggregate
        if isinstance(aggregate, Mean):
            # an error of 1 in the numerator moves the mean by at most step / size; RULES 22
            return int(amount / aggregate.value.step * self.sizes[index] * fine) - 1
        reading = aggregate.reading(fine)
        assert reading.kind is Kind.NUMBER, "the error of a spread or a quantile is no target"
        return int(amount / reading.unit)

    def meets(self, noise: Noise, reach: int) -> bool:
        """Whether a noise is within ``reach``: in 95% of draws, or in root mean square."""
        if self.average:
            return Fraction(noise.variance.upper) <= reach * reach
        return noise.tail(reach).upper <= 1 - CONFIDENCE

    def times(self, factor: Fraction) -> "Wanted":
        """The same with every error multiplied by a factor."""
        return replace(self, amounts=tuple(amount * factor for amount in self.amounts))


def wanted(
    question: Question,
    dataset: Dataset,
    target: Target,
    stored: Mapping[int, Reference],
) -> Wanted:
    """The wanted error of every part.

    Raises:
        UnsupportedSql: a column is computed from aggregates, or an aggregate is not shown.
        NoReference: a relative error, or the error of a mean, has no public reference.
    """
    _require_plain_aggregates(question)
    size = _declared_size(question, dataset)
    amounts = []
    sizes = []
    notes = []
    for index, aggregate in enumerate(question.raw.aggregates):
        reference = stored.get(index)
        amount, note = _amount(aggregate, target, size, reference)
        amounts.append(amount)
        counted = size if dataset.tables[question.table].unit is None else None
        sizes.append(_size(aggregate, counted, reference, average=target.average))
        if note:
            notes.append(note)
        if isinstance(aggregate, Mean) and reference is None:
            notes.append(
                f"{aggregate.title}: the error holds as far as none of the declared "
                f"{size or 0:,} values is missing."
            )
    if target.average:
        notes.append(
            "The error is the root of the mean squared error over the cells of a column, "
            "not of every cell."
        )
    return Wanted(tuple(amounts), tuple(sizes), tuple(notes), target.average)


def _require_plain_aggregates(question: Question) -> None:
    """Raises UnsupportedSql unless each column is a key or an aggregate, and each is shown."""
    aggregates = question.raw.aggregates
    read = set()
    plain = not any(isinstance(aggregate, Variance) for aggregate in aggregates)
    for item in question.output.items:
        expression = item.expression
        if isinstance(expression, Estimate) and expression.statistic in _PLAIN:
            read.add(expression.index)
        elif not isinstance(expression, Key):
            plain = False
    if not plain or read != set(range(len(aggregates))):
        raise UnsupportedSql(
            "error= needs every aggregate as a column of its own, a count, a sum or a mean, "
            "without arithmetic, HAVING or ORDER BY on others, and without a variance.",
            remedy="Ask with epsilon=, or put each aggregate into a column of its own.",
        )


def references(question: Question, answer: Answer | None) -> dict[int, Reference]:
    """The estimates of each part that is shown, in a stored answer to the same statement."""
    if answer is None:
        return {}
    shown = set()
    for item in question.output.items:
        if isinstance(item.expression, Estimate):
            shown.add(item.expression.index)
    released = cast(dict[str, Json], answer.form["released"])
    found = {}
    for index, part in enumerate(parts_from_json(released["parts"])):
        if index in shown and part.values and part.noise is not None:
            found[index] = _reference(answer.charge_id[:12], part)
    return found


def _reference(charge: str, part: Released) -> Reference:
    """The mean estimate of a stored part, and the sizes of its groups."""
    groups = range(len(part.values))
    points = [abs(part.point(group)) for group in groups]
    sizes = [sum(values) * part.reading.unit for values in part.values]
    mean = sum(points, Fraction(0)) / len(points)
    return Reference(charge, mean, min(sizes), typical_size(sizes))


def typical_size(sizes: Sequence[Fraction]) -> Fraction:
    """The size of equal groups whose means have the same mean squared error; 0 if one is empty.

    >>> typical_size([Fraction(10), Fraction(10)])
    Fraction(10, 1)
    """
    if min(sizes) <= 0:
        return Fraction(0)
    inverse = [1 / (size * size) for size in sizes]
    return sqrt_down(len(sizes) / sum(inverse, Fraction(0)))


def _declared_size(question: Question, dataset: Dataset) -> int | None:
    """The declared number of rows that a question reads, if it reads a whole table."""
    whole = isinstance(question.raw.relation, Scan) and not question.raw.keys
    if whole:
        return dataset.tables[question.table].size
    return None


def _amount(
    aggregate: Aggregate,
    target: Target,
    size: int | None,
    stored: Reference | None,
) -> tuple[Fraction, str]:
    """The wanted error of a part as a number, and a note on what it is relative to."""
    if not target.relative:
        return target.amount, ""
    percent = f"{decimal_text(target.amount * 100)}%"
    if size is not None and isinstance(aggregate, CountRows):
        return target.amount * size, f"{percent} of the declared size {size:,} of the table."
    if stored is not None and stored.magnitude > 0:
        value = f"{float(stored.magnitude):,.6g}"
        estimate = f"the mean stored estimate of {aggregate.title} (charge {stored.charge})"
        return target.amount * stored.magnitude, f"{percent} of {value}, {estimate}."
    raise NoReference(
        f"error={percent} of {aggregate.title} has nothing public to be relative to.",
        allowed="a declared size (COUNT(*) of the whole table), "
        "or an estimate already stored for the same question",
        remedy="Ask with an absolute error=, or first ask the same question with a small epsilon= "
        "(a pilot): its stored answer is then the reference.",
    )


def _size(
    aggregate: Aggregate,
    size: int | None,
    stored: Reference | None,
    *,
    average: bool,
) -> Fraction:
    """The rows behind a mean: the declared size if each row is its own unit, or a stored one."""
    if not isinstance(aggregate, Mean):
        return Fraction(0)
    if size is not None:
        return Fraction(size)
    if stored is not None and stored.size > 0:
        if average:
            return stored.typical
        return stored.size
    raise NoReference(
        f"The error of {aggregate.title} depends on how many rows a group has, which is not "
        "public.",
        allowed="a declared size= of the table, or an answer already stored for the same question",
        remedy="Ask with epsilon=, or first ask the same question with a small epsilon= (a pilot).",
    )
