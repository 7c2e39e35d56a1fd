# SPDX-License-Identifier: Apache-2.0
"""Translates a wanted error into the largest allowed noise of each part (RULES 6).

``choose`` and ``grouping_levels`` search for the cheapest noise that passes ``Wanted.test``. A
relative error is relative to a public number that the answer names: the declared size of the table,
or the first stored estimate of the same statement; never to an exact value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

from sfumato.errors import NoReference, UnsupportedSql
from sfumato.exact.rational import decimal_text
from sfumato.exact.rounding import sqrt_down
from sfumato.metadata.dataset import Dataset
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.plan.aggregate import (
    Aggregate,
    CountRows,
    Mean,
    Variance,
)
from sfumato.plan.question import Question
from sfumato.plan.reading import Kind
from sfumato.plan.relation import Scan
from sfumato.plan.scalar import Estimate, leaves
from sfumato.plan.statistic import Statistic
from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.estimate import AnyReleased, linear_weights
from sfumato.query.linear_form import LinearForm, linear_form
from sfumato.query.output_intervals import simplified
from sfumato.query.price import Target
from sfumato.query.selected import candidates, declared_rows
from sfumato.query.table import released_parts
from sfumato.query.tail_bounds import is_within

CONFIDENCE = Fraction(95, 100)
_MISS = 1 - CONFIDENCE
# The statistics that an aggregate has as a column of its own.
_PLAIN = (Statistic.VALUE, Statistic.MEAN)


@dataclass(frozen=True, slots=True)
class Reference:
    """The public reference of a relative error: the mean estimate of a part in a stored answer.

    ``size`` is the size of the smallest group. ``typical`` is the common size of equal groups whose
    means would have the same mean squared error.
    """

    charge: str
    magnitude: Fraction
    size: Fraction
    typical: Fraction


@dataclass(frozen=True, slots=True)
class Demand:
    """The error that a column allows for a statistic of a part.

    ``amount`` is a half-width that may be exceeded with probability at most ``miss``.
    """

    statistic: Statistic
    amount: Fraction
    miss: Fraction = _MISS


@dataclass(frozen=True, slots=True)
class Wanted:
    """The error requested of each aggregate of a question: a 95% half-width, or a root mean squared
    error if ``average``.

    ``sizes`` are the group sizes on which errors of means are based. Errors are in units of the
    answer.
    """

    demands: tuple[tuple[Demand, ...], ...]
    sizes: tuple[Fraction, ...]
    notes: tuple[str, ...]
    average: bool = False

    def test(
        self,
        index: int,
        aggregate: Aggregate,
        fine: int,
        copies: int = 1,
    ) -> Callable[[Noise], bool]:
        """Returns a test of whether a noise law meets every requested error of an aggregate.

        ``copies`` is the number of noisy integers that are added up in a cell.
        """
        reading = aggregate.reading(fine)
        tests = []
        for demand in self.demands[index]:
            if reading.kind is Kind.MEAN and demand.statistic in _PLAIN:
                rows = self.sizes[index] / reading.unit
                tests.append(self._test_of_mean(demand, reading.span, rows, copies))
            else:
                weights = linear_weights(reading, demand.statistic, aggregate.width)
                tests.append(self._test_of_sum(demand, weights, copies))
        return lambda noise: all(keeps(noise) for keeps in tests)

    def _test_of_mean(
        self,
        demand: Demand,
        span: Fraction,
        rows: Fraction,
        copies: int,
    ) -> Callable[[Noise], bool]:
        """The test of the error of a mean over ``rows`` rows, stated for its noisy integers."""
        # an error of 1 in the numerator moves the mean by at most span / rows; RULES 22
        share = demand.amount / span
        if not self.average:
            # in less than one answer of a hundred the released number of rows is too small by
            # more than 7/4 of the error, which would make the interval wider than this
            share /= 1 + Fraction(7, 4) * share
        most = int(share * rows) - 1
        if copies > 1 and not self.average:
            # both integers are then bounded apart
            return lambda noise: (
                not _is_wider(noise, most)
                and is_within(noise, Fraction(most), demand.miss / 2, copies=copies)
            )
        return self._test_of_one(most, demand.miss, copies)

    def _test_of_sum(
        self,
        demand: Demand,
        weights: tuple[Fraction, ...],
        copies: int,
    ) -> Callable[[Noise], bool]:
        """The test of the error of a number, or of the count or sum released with a mean."""
        if len(weights) == 1 and (copies == 1 or self.average):
            return self._test_of_one(int(demand.amount / weights[0]), demand.miss, copies)
        if not self.average:
            most = demand.amount / max(map(abs, weights))
            return lambda noise: (
                not _is_wider(noise, most)
                and is_within(noise, demand.amount, demand.miss, weights, copies)
            )
        squares = copies * sum((weight * weight for weight in weights), Fraction(0))
        square = demand.amount**2 / squares
        return lambda noise: Fraction(noise.variance.upper) <= square

    def _test_of_one(
        self,
        most: int,
        miss: Fraction,
        copies: int,
    ) -> Callable[[Noise], bool]:
        """The test whether a noise stays within ``most``: with probability 1 - miss, or on average."""
        if most < 0:
            return lambda noise: False
        if self.average:
            return lambda noise: Fraction(noise.variance.upper) * copies <= most * most
        return lambda noise: not _is_wider(noise, most) and noise.tail(most).upper <= miss

    def times(self, factor: Fraction) -> "Wanted":
        """Returns the requested errors, each multiplied by a factor."""
        demands = []
        for part in self.demands:
            demands.append(tuple(replace(one, amount=one.amount * factor) for one in part))
        return replace(self, demands=tuple(demands))


def wanted(
    question: Question,
    dataset: Dataset,
    target: Target,
    stored: Mapping[int, Reference],
) -> Wanted:
    """Returns the error requested of every aggregate, from the target that the question states.

    Raises:
        UnsupportedSql: a column is no multiple, sum or difference of aggregates, or an aggregate is
            not shown.
        NoReference: a relative error, or the error of a mean, has no public reference.
    """
    forms = _required_forms(question)
    # rows that noise chooses have intervals that hold for all rows at once
    miss = _MISS / candidates(question.output, declared_rows(question.raw, question.output))
    aggregates = question.raw.aggregates
    size = _declared_size(question, dataset)
    demands: list[list[Demand]] = [[] for _ in aggregates]
    notes: dict[str, None] = {}
    for form in forms:
        amount, note = _noise_amount(form, aggregates, target, size, stored)
        notes[note] = None
        for estimate, weight in form.weights.items():
            # the estimates of a column share its error, and the probability to exceed it
            count = len(form.weights)
            demand = Demand(estimate.statistic, amount / weight / count, miss / count)
            demands[estimate.index].append(demand)
    sizes = [Fraction(0)] * len(aggregates)
    for index, aggregate in enumerate(aggregates):
        if isinstance(aggregate, Mean) and any(one.statistic in _PLAIN for one in demands[index]):
            sizes[index] = _rows_of_mean(aggregate, size, stored.get(index), average=target.average)
            if index not in stored:
                notes[_assumption(aggregate, size or 0, dataset, question.table)] = None
    if target.average:
        notes[
            "The error is the root of the mean squared error over the cells of a column, "
            "not of every cell."
        ] = None
    every = tuple(tuple(part) for part in demands)
    return Wanted(every, tuple(sizes), tuple(filter(None, notes)), target.average)


def _assumption(
    aggregate: Aggregate,
    size: int,
    dataset: Dataset,
    table: str,
) -> str:
    """A note on the group size that the error of a mean assumes."""
    left_out = "missing"
    if dataset.tables[table].unit is not None:
        left_out = "missing, or beyond the limits of its unit"
    return (
        f"{aggregate.title}: the error holds as far as none of the declared "
        f"{size:,} values is {left_out}."
    )


def _is_wider(noise: Noise, most: Fraction | int) -> bool:
    """Whether a noise has a scale above ``most``, so that a third of all draws exceed it.

    Such noise is rejected at once, since the tails of a wide noise take long to compute.
    """
    match noise:
        case DiscreteLaplace(scale):
            return scale > most + 1
        case DiscreteGaussian():
            return noise.sigma_squared > (most + 1) ** 2
        case _:
            return False


def _required_forms(question: Question) -> list[LinearForm]:
    """The linear forms of the columns that are not keys.

    Raises:
        UnsupportedSql: a column is not linear in aggregates, or an aggregate is not shown.
    """
    aggregates = question.raw.aggregates
    forms = []
    plain = not any(isinstance(aggregate, Variance) for aggregate in aggregates)
    for item in question.output.items:
        if not any(isinstance(leaf, Estimate) for leaf in leaves(item.expression)):
            continue
        form = linear_form(simplified(item.expression))
        if form is None or not form.weights:
            plain = False
            continue
        forms.append(form)
    read = {estimate.index for form in forms for estimate in form.weights}
    if not plain or read != set(range(len(aggregates))):
        raise UnsupportedSql(
            "error= needs every aggregate in a column that is a count, a sum, a mean, or a "
            "multiple, sum or difference of these, without HAVING or ORDER BY on others, and "
            "without a variance.",
            remedy="Ask with epsilon=, or put each aggregate into a column of its own.",
        )
    return forms


def references(question: Question, answer: Answer | None) -> dict[int, Reference]:
    """Returns the public numbers to which relative errors refer, by aggregate, from an earlier
    answer.

    The answer is stored for the same statement; parts that it does not show have none.
    """
    if answer is None:
        return {}
    shown = set()
    for item in question.output.items:
        shown |= {leaf.index for leaf in leaves(item.expression) if isinstance(leaf, Estimate)}
    released = cast(dict[str, Json], answer.form["released"])
    references_by_part = {}
    for index, part in enumerate(released_parts(released)):
        if index in shown and part.count and part.noise is not None:
            references_by_part[index] = _reference(answer.charge_id[:12], part)
    return references_by_part


def _reference(charge: str, part: AnyReleased) -> Reference:
    """The mean estimate of a stored part, and the sizes of its groups."""
    groups = range(part.count)
    points = [abs(part.point(group)) for group in groups]
    sizes = [part.point(group, Statistic.COUNT) for group in groups]
    mean = sum(points, Fraction(0)) / len(points)
    return Reference(charge, mean, min(sizes), typical_size(sizes))


def typical_size(sizes: Sequence[Fraction]) -> Fraction:
    """Returns the common size of equal groups whose means have the same mean squared error.

    It is 0 if a group is empty.

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


def _noise_amount(
    form: LinearForm,
    aggregates: Sequence[Aggregate],
    target: Target,
    size: int | None,
    stored: Mapping[int, Reference],
) -> tuple[Fraction, str]:
    """The error that remains for the noise of a column, and a note on what it is relative to.

    Raises:
        NoReference: a relative error of a column that has no public reference.
        UnsupportedSql: the column is rounded by more than the wanted error.
    """
    amount, note = target.amount, ""
    if target.relative:
        ((estimate, weight), *others) = form.weights.items()
        percent = f"{decimal_text(target.amount * 100)}%"
        if others or form.has_offset or estimate.statistic not in _PLAIN:
            raise NoReference(
                f"error={percent} of a column that is computed from several numbers has nothing "
                "public to be relative to.",
                allowed="a count, a sum, a mean, or a multiple of one",
                remedy="Ask with an absolute error=.",
            )
        reference = stored.get(estimate.index)
        amount, note = _relative_amount(aggregates[estimate.index], target, size, reference)
        amount *= weight
    if amount <= form.slack:
        raise UnsupportedSql(
            "error= of a column that is rounded by more than that.",
            remedy="Round to more digits, or ask for a larger error=.",
        )
    return amount - form.slack, note


def _relative_amount(
    aggregate: Aggregate,
    target: Target,
    size: int | None,
    stored: Reference | None,
) -> tuple[Fraction, str]:
    """The relative error of a part as a number, and a note on what it is relative to."""
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


def _rows_of_mean(
    aggregate: Aggregate,
    size: int | None,
    stored: Reference | None,
    *,
    average: bool,
) -> Fraction:
    """The number of rows behind a mean: the declared size, or a stored estimate of it."""
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
