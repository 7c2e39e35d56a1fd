# SPDX-License-Identifier: Apache-2.0
"""Previews the cost and the error of a question from declarations alone (RULES 22).

``Session.preview`` returns a ``Preview``; ``advise`` and ``publication`` compare several.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.exact.rounding import float_up, sqrt_up
from sfumato.mechanisms import bernstein
from sfumato.mechanisms.bernstein import share_error
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.plan.output import Item
from sfumato.plan.reading import Kind, Reading
from sfumato.plan.scalar import Estimate, leaves
from sfumato.plan.statistic import Statistic
from sfumato.privacy.event import Json
from sfumato.query.choose import Measured, Planned
from sfumato.query.cost import Cost
from sfumato.query.estimate import Released
from sfumato.query.explain import explain
from sfumato.query.grouping_levels import level_name
from sfumato.query.left_after import Balances, left_now
from sfumato.query.linear_form import linear_form
from sfumato.query.output_intervals import simplified
from sfumato.query.release import key_type
from sfumato.query.selected import candidates, declared_rows
from sfumato.query.table import column_form
from sfumato.query.tail_bounds import reach
from sfumato.show.render import UNTOLD, html_table, number, text_table

_HEADER = ("column", "rows in group", "95% error")
_GROUP_SIZES = (100, 1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class Preview:
    """The cost and the expected error of a question, from declarations alone, at no cost.

    Attributes:
        statement: the bounded SQL that would be run.
    """

    planned: Planned
    dataset: Dataset
    statement: str
    balances: Balances | None = field(default=None, repr=False, compare=False)

    @property
    def left(self) -> list[str]:
        """Lines on what the paying accounts have left now and after the question."""
        return left_now(self.balances, self.cost.charge)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The name and the type of each column of the answer."""
        return tuple((str(form["name"]), str(form["type"])) for form in self.column_forms)

    @property
    def column_forms(self) -> list[dict[str, Json]]:
        """The columns of the answer as it will state them: name, type, whether they are released
        numbers, which have noise and an interval.
        """
        return planned_columns(self.planned)

    @property
    def cost(self) -> Cost:
        """The cost of the question, with one item for each part."""
        return self.planned.cost

    def error(self, confidence: Number = 0.95) -> list[dict[str, Json]]:
        """The expected half-width of each column, and of each grouping set.

        For counts and sums it is exact, and the same in every cell. For means and variances it
        depends on the number of rows in the group, so there is a line for each of several sizes.
        For quantiles it is the error of the rank, in rows; with ``interval``, ``end_rank_error`` is
        that of the ends of the interval. Multiples, sums and differences of these have an error
        too; for any other expression it is None.
        """
        fraction = to_fraction("confidence", confidence)
        level = positive("confidence", fraction, at_most=1 - Fraction(1, 10**12))
        question = self.planned.question
        if not question.output.sets:
            return self._expected(level, self._sizes()).lines(question.output.items)
        lines = []
        for place, keys in enumerate(question.output.sets):
            expected = self._expected(level, self._sizes(), place)
            name = level_name(question, keys)
            for line in expected.lines(question.output.items):
                lines.append({**line, "groups": name})
        return lines

    def of_estimate(
        self,
        name: str,
        estimate: Estimate,
        level: Fraction,
        sizes: Sequence[int],
    ) -> list[dict[str, Json]]:
        """Returns the expected error of one estimate, with a line for each group size if it depends
        on that.

        With grouping sets it is the error in the first set.
        """
        return self._expected(level, sizes).of_estimate(name, estimate)

    def _expected(self, level: Fraction, sizes: Sequence[int], place: int = 0) -> "_Expected":
        """The expected errors of the grouping set at a position, or of a question without sets."""
        question = self.planned.question
        among = candidates(question.output, declared_rows(question.raw, question.output))
        return _Expected(self.planned.measured(place), 1 - (1 - level) / among, sizes)

    def _sizes(self) -> list[int]:
        """The group sizes to show: round numbers, and the declared size of the table."""
        size = self.dataset.tables[self.planned.question.table].size
        sizes = set(_GROUP_SIZES)
        if size:
            sizes.add(size)
        return sorted(sizes)

    def explain(self) -> str:
        """Returns a text on the privacy unit, the bounds, the noise, and the cost."""
        return explain(self.planned, self.dataset)

    @property
    def errors_in_words(self) -> list[list[str]]:
        """Returns rows of text: a column, the group size (if it matters), the expected error."""
        error_rows = []
        for line in self.error():
            rows = "any" if line["rows"] is None else f"{line['rows']:,}"
            column = ", ".join(str(line[name]) for name in ("column", "groups") if name in line)
            error_rows.append([column, rows, _error_text(line)])
        return error_rows

    def _repr_html_(self) -> str:
        said = "<br>".join(map(html.escape, self._last))
        return f"{html_table(_HEADER, self.errors_in_words)}<p>{said}</p>"

    def __repr__(self) -> str:
        table = text_table(_HEADER, self.errors_in_words)
        return "\n".join([table, *self._last])

    @property
    def _last(self) -> list[str]:
        """The last lines: the cost, and what is left."""
        cost = self.cost
        left = left_now(self.balances, cost.charge)
        return [*left, f"would cost {cost}; nothing was charged"]


def planned_columns(planned: Planned) -> list[dict[str, Json]]:
    """Returns the names and types of the columns that the answer of a plan will have."""
    question = planned.question
    fine = planned.questions[0].refinement
    readings = [aggregate.reading(fine) for aggregate in question.raw.aggregates]
    parts = [Released("", reading, None, (), ()) for reading in readings]
    kinds = [key_type(key) for key in question.raw.keys]
    return [column_form(item, parts, kinds) for item in question.output.items]


@dataclass(frozen=True, slots=True)
class _Expected:
    """The expected errors of one grouping set at a confidence level, for groups of these sizes."""

    measured: Measured
    level: Fraction
    sizes: Sequence[int]

    def lines(self, items: Sequence[Item]) -> list[dict[str, Json]]:
        """The expected error of each column that has one."""
        lines: list[dict[str, Json]] = []
        for item in items:
            if isinstance(item.expression, Estimate):
                lines += self.of_estimate(item.name, item.expression)
            elif any(isinstance(leaf, Estimate) for leaf in leaves(item.expression)):
                lines += self._of_expression(item)
        return lines

    def _of_expression(self, item: Item) -> list[dict[str, Json]]:
        """The expected error of an expression, if it is linear in estimates with known errors."""
        expression = simplified(item.expression)
        form = linear_form(expression)
        read = {leaf for leaf in leaves(expression) if isinstance(leaf, Estimate)}
        quantiles = any(self._reading(estimate).kind is Kind.QUANTILES for estimate in read)
        if form is None or quantiles:
            return [_line(item.name, None)]
        # as in an answer, the estimates share the probability that an interval misses
        shared = replace(self, level=1 - (1 - self.level) / len(read))
        widths = {estimate: dict(shared._half_widths(estimate)) for estimate in read}
        lines = []
        zero = Fraction(0)
        for size in max(widths.values(), key=len):
            # a count or a sum has one error for groups of every size
            of_size = {
                leaf: halves.get(size, halves.get(None, zero)) for leaf, halves in widths.items()
            }
            lines.append(_line(item.name, form.half_width(of_size), size))
        return lines

    def of_estimate(self, name: str, estimate: Estimate) -> list[dict[str, Json]]:
        """The expected error of one estimate, with a line for each group size if it matters."""
        mechanism = self.measured.mechanisms[estimate.index]
        if isinstance(mechanism, GridQuantiles):
            aggregate = self.measured.bounded.parts[estimate.index].aggregate
            ranks = mechanism.error(self.level, aggregate.width)[estimate.place]
            unit = self._reading(estimate).unit
            line = _line(name, None) | {"rank_error": _rounded_up(ranks * unit)}
            for shift in mechanism.shifts(aggregate.width)[estimate.place : estimate.place + 1]:
                # an end is off its own rank by less than its distance from the level
                line["end_rank_error"] = _rounded_up(2 * shift * unit)
            return [line]
        return [_line(name, half, size) for size, half in self._half_widths(estimate)]

    def _reading(self, estimate: Estimate) -> Reading:
        """How the integers of an estimate are read."""
        bounded = self.measured.bounded
        return bounded.parts[estimate.index].aggregate.reading(bounded.refinement)

    def _half_widths(self, estimate: Estimate) -> list[tuple[int | None, Fraction]]:
        """The expected half-width of an estimate by group size; the size None means every group."""
        mechanism = self.measured.mechanisms[estimate.index]
        assert not isinstance(mechanism, GridQuantiles), "a quantile has an error of its rank"
        if isinstance(mechanism, ThresholdMechanism):
            # as in an answer, the ends of a count that was shown miss half as often
            return [(None, Fraction(mechanism.error(1 - (1 - self.level) / 2)))]
        reading = self._reading(estimate)
        statistic = estimate.statistic
        copies = self.measured.copies
        miss = 1 - self.level
        if reading.kind is Kind.NUMBER or statistic in (Statistic.COUNT, Statistic.SUM):
            width = self.measured.bounded.parts[estimate.index].aggregate.width
            empty = Released("", reading, mechanism.noise, ((0,) * width,), (copies,))
            around = empty.interval(0, miss, statistic)
            assert around is not None, "an additive release has an interval"
            return [(None, around[1])]
        if reading.kind is not Kind.MEAN:
            miss /= 3
        elif copies > 1:
            # both integers of a sum of means are bounded apart
            miss /= 2
        far = mechanism.error(1 - miss)
        if copies > 1:
            far = math.ceil(reach(mechanism.noise, miss, copies=copies))
        return [(size, _half_width_at_size(reading, statistic, far, size)) for size in self.sizes]


def _line(name: str, half_width: Fraction | None, rows: int | None = None) -> dict[str, Json]:
    """The expected error of a column, in groups with so many rows; None: in every group."""
    shown = None if half_width is None else _rounded_up(half_width)
    return {"column": name, "rows": rows, "half_width": shown}


def _half_width_at_size(
    reading: Reading,
    statistic: Statistic,
    far: int,
    size: int,
) -> Fraction:
    """The largest half-width of a mean or a spread over ``size`` rows, at most its range.

    ``far`` is the largest error of each noisy integer.
    """
    if statistic in (Statistic.VALUE, Statistic.MEAN) and reading.kind is Kind.MEAN:
        return min(reading.span * (far + 1) * reading.unit / size, reading.span)
    weight = int(size / reading.unit)
    if statistic is Statistic.MEAN:
        # a + b/2 has at most 3/2 of the error, a + b + c at most 3 times the error
        left = weight - 3 * far
        if left <= 0:
            return reading.span
        return reading.span * min(Fraction(9 * far, 2 * left), Fraction(1))
    error = reading.span**2 * share_error(weight, far, bernstein.Statistic.VARIANCE)
    if statistic in (Statistic.DEVIATION, Statistic.DEVIATION_OF_SAMPLE):
        # the error of a deviation is largest if the true one is 0
        return sqrt_up(error)
    return error


def _rounded_up(value: Fraction) -> float | int:
    """A number as an integer, or as a float rounded up."""
    if value.denominator == 1:
        return int(value)
    return float_up(value)


def _rows(count: Json) -> str:
    """A number of rows as text."""
    return f"{number(float(str(count)))} rows"


def _error_text(line: dict[str, Json]) -> str:
    """The error of a line as text."""
    if "rank_error" in line:
        ranks = f"rank +- {_rows(line['rank_error'])}"
        if "end_rank_error" in line:
            return f"{ranks}; interval within +- {_rows(line['end_rank_error'])}"
        return f"{ranks}; interval {UNTOLD}"
    half = line["half_width"]
    if half is None:
        return "depends on the answers"
    return f"+- {number(float(str(half)))}"
