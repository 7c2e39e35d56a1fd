# SPDX-License-Identifier: Apache-2.0
"""Intervals of the columns of an outer statement, from the releases that they are computed from.

Post-processing. A cell that is passed through has the interval of its release; a sum of cells of
one release, or the difference of two, that of the exact law of the sum of their noises. The rest is
interval arithmetic: the forms of one column share its miss probability, so that the interval holds
whatever their joint distribution is. Proof: outer_errors.proof.md.
"""

import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import cast

from sfumato.metadata.column import EPOCH
from sfumato.plan.output import Item, Output
from sfumato.plan.reading import Kind as Reads
from sfumato.plan.scalar import Estimate, Operation
from sfumato.plan.statistic import Statistic
from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.estimate import AnyReleased, Range, Released, linear_weights
from sfumato.query.noise_sums import rounded_up, sum_reach
from sfumato.query.output_intervals import Cell, combined, ranges_of
from sfumato.query.table import released_of
from sfumato.sql.outer_forms import (
    ANY_OR_NULL,
    NO_ROW,
    ROWS,
    Computed,
    FixedNumber,
    Form,
    Kind,
    Leaf,
    cell_of,
)

# A sum of that many cells is one of doubles in DuckDB: each addition is off by at most this share.
_OFF = Fraction(1, 2**50)
# Below it doubles add whole numbers exactly, in any order.
_EXACT = 2**53
_SYMBOLS = frozenset(operation.value for operation in Operation)
_NOTHING = Cell(None)


class Releases:
    """The private answers that SQL over private answers reads, for the intervals of its cells."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.releases = [Release(answer) for answer in answers]
        self._cells: dict[tuple[int, Fraction], Cell] = {}

    def interval(self, form: Form, hidden: Callable[[int], object], miss: Fraction) -> Cell:
        """Returns the confidence interval of a computed cell in one row, at confidence 1 -
        ``miss``.

        ``form`` says how it is computed; ``hidden`` returns a hidden column of the row.

        Guarantees:
            a form of releases covers at least as often as stated
        """
        share = miss / max(sum(1 for _ in self._random(form, hidden)), 1)
        return self._range(form, hidden, share)

    def stored_errors(self, leaf: Leaf, columns: Sequence[Sequence[object]]) -> list[Json]:
        """Returns the stored 95% intervals of a column of cells; None if noise chose a cell.

        ``columns`` are those of the result, the hidden ones included.
        """
        codes = columns[leaf.hidden[0]]
        errors: list[Json] = [None] * len(codes)
        if leaf.kind is not Kind.CELL or leaf.chosen:
            return errors
        source, stored, column = -1, self.releases[0].errors, 0
        for place, code in enumerate(codes):
            if isinstance(code, int):
                if code // ROWS != source:
                    source = code // ROWS
                    answer, column, _ = cell_of(code)
                    stored = self.releases[answer].errors
                error = stored[code % ROWS][column]
                # the answer may be changed by who reads it
                errors[place] = dict(error) if isinstance(error, dict) else error
        return errors

    def _random(self, form: Form, hidden: Callable[[int], object]) -> Iterator[Form]:
        """The parts of a form that may miss, each with the noise of its own."""
        if isinstance(form, Leaf) and form.kind is not Kind.PUBLIC:
            yield form
        elif isinstance(form, Computed):
            if self._pair(form, hidden) is not None:
                yield form
            else:
                for part in form.parts:
                    yield from self._random(part, hidden)

    def _range(self, form: Form, hidden: Callable[[int], object], miss: Fraction) -> Cell:
        """The interval of a form, whose random parts miss with probability ``miss`` each."""
        if isinstance(form, FixedNumber):
            return Cell((form.value, form.value))
        if isinstance(form, Leaf):
            return self._leaf(form, [hidden(place) for place in form.hidden], miss)
        pair = self._pair(form, hidden)
        if pair is not None:
            return Cell(pair.difference(miss))
        if form.operation in ("first", "lagged"):
            return self._first(form, hidden, miss)
        parts = [self._range(part, hidden, miss) for part in form.parts]
        ranges = [part.interval for part in parts if part.interval is not None]
        untold = any(part.untold for part in parts)
        if len(ranges) < len(parts):
            return Cell(None, untold)
        return Cell(_computed(form.operation, ranges), untold)

    def _first(self, form: Computed, hidden: Callable[[int], object], miss: Fraction) -> Cell:
        """The interval of the first part that is not NULL: a cell says itself whether it is.

        Of LAG and LEAD the default stands where there is no row (``NO_ROW``), and nowhere else.
        """
        possible = []
        for part in form.parts:
            if isinstance(part, Leaf) and part.kind is Kind.CELL:
                code = hidden(part.hidden[0])
                if code == NO_ROW:
                    continue
                if self._value(code) is None:
                    # its number was not released, or cannot be told: nothing bounds it
                    return _NOTHING
                possible.append(self._range(part, hidden, miss))
                break
            possible.append(self._range(part, hidden, miss))
            if isinstance(part, FixedNumber):
                break
        ranges = [cell.interval for cell in possible if cell.interval is not None]
        if not ranges or len(ranges) < len(possible):
            return _NOTHING
        return Cell(_computed("any", ranges), any(cell.untold for cell in possible))

    def _leaf(self, leaf: Leaf, hidden: Sequence[object], miss: Fraction) -> Cell:
        """The interval of a public number, a cell, or a sum."""
        if leaf.kind is Kind.PUBLIC:
            value = _number(hidden[0])
            return _NOTHING if value is None else Cell((value, value))
        if leaf.kind is Kind.CELL:
            return self._cell(hidden[0], miss, chosen=leaf.chosen)
        return Cell(self._sum(leaf, hidden, miss))

    def _cell(self, code: object, miss: Fraction, *, chosen: bool) -> Cell:
        """The interval of a released cell; one that was chosen holds with all others at once."""
        if not isinstance(code, int):
            return _NOTHING
        answer, column, row = cell_of(code)
        release = self.releases[answer]
        share = miss / release.rows if chosen else miss
        known = self._cells.get((code, share))
        if known is None:
            known = self._cells[code, share] = release.cell(column, row, share)
        return known

    def _value(self, code: object) -> object:
        """The value of a released cell, as the answer tells it."""
        if not isinstance(code, int):
            return None
        answer, column, row = cell_of(code)
        return self.releases[answer].columns[column][row]

    def _sum(self, leaf: Leaf, hidden: Sequence[object], miss: Fraction) -> Range | None:
        """The interval of a sum or mean of cells of one release, each of them once."""
        total, count, different, least, largest = hidden
        value = _number(total)
        if value is None or not isinstance(count, int) or count < 1 or count != different:
            return None
        if leaf.chosen:
            # of how many sums it was chosen is not known
            return None
        assert isinstance(least, int) and isinstance(largest, int), "codes of at least one cell"
        answer, column, _ = cell_of(least)
        if (answer, column) != cell_of(largest)[:2]:
            return None
        release = self.releases[answer]
        weights = release.weights(column)
        if weights is None:
            return None
        far = release.reach(column, weights, count, miss)
        if leaf.kind is Kind.MEAN or count > release.most_exact(column):
            # DuckDB adds doubles, and divides as doubles
            far += count * count * release.largest(column) * _OFF
        if leaf.kind is Kind.MEAN:
            far /= count
        return value - far, value + far

    def _pair(self, form: Computed, hidden: Callable[[int], object]) -> "_Pair | None":
        """The cells of one column of which a form is the difference; None for other forms."""
        places = cells_of_difference(form)
        if places is None:
            return None
        one, other = map(hidden, places)
        if not isinstance(one, int) or not isinstance(other, int):
            return None
        (answer, column, row), (*same, subtracted) = cell_of(one), cell_of(other)
        if [answer, column] != same:
            return None
        release = self.releases[answer]
        weights = release.weights(column)
        return None if weights is None else _Pair(release, column, weights, row, subtracted)


def cells_of_difference(form: Form) -> tuple[int, int] | None:
    """Returns the places of the codes in a difference of two cells that noise did not choose."""
    if not isinstance(form, Computed) or form.operation != "-" or len(form.parts) != 2:
        return None
    places = []
    for part in form.parts:
        if not isinstance(part, Leaf) or part.kind is not Kind.CELL or part.chosen:
            return None
        places.append(part.hidden[0])
    return places[0], places[1]


class Release:
    """One private answer that an outer statement reads: its columns, aggregates and rows.

    Attributes:
        order: for each row, the place of its group in the order of the keys.
        errors: for each row, the stored 95% intervals of its cells.
        columns: the values of each column; None where the noise leaves no information.
    """

    def __init__(self, answer: Answer) -> None:
        form = answer.form
        self._form = form
        self.order = cast(list[int], cast(dict[str, Json], form["released"])["order"])
        self.errors = cast(list[list[Json]], form["errors"])
        rows = answer.told if answer.may_be_untold else answer.rows
        # not by zip(*rows), which takes an iterator a row
        self.columns = [[row[place] for row in rows] for place in range(len(answer.columns))]
        self._weights: dict[int, tuple[Fraction, ...] | None] = {}
        self._reaches: dict[tuple[int, int, Fraction], Fraction] = {}
        self._largest: dict[int, Fraction] = {}

    @cached_property
    def _released(self) -> tuple[Output, list[AnyReleased]]:
        """The post-processing and the noisy integers; most cells need the stored errors alone."""
        output, parts, _ = released_of(self._form)
        return output, parts

    @property
    def parts(self) -> Sequence[AnyReleased]:
        """The noisy integers of each aggregate."""
        return self._released[1]

    @property
    def items(self) -> Sequence[Item]:
        """How each column is computed."""
        return self._released[0].items

    @property
    def rows(self) -> int:
        """The number of groups that could be shown."""
        return max(self.parts[0].count if self.parts else 1, 1)

    def cell(self, column: int, row: int, miss: Fraction) -> Cell:
        """Returns the confidence interval of a cell, missed with probability at most ``miss``."""
        weights = self.weights(column)
        if weights is not None:
            # the same width in every row
            far = self.reach(column, weights, 1, miss)
            point = self.point(column, row)
            return Cell((point - far, point + far))
        (cell,) = ranges_of(self.items[column].expression, self.parts, [self.order[row]], miss)
        return cell

    def weights(self, column: int) -> tuple[Fraction, ...] | None:
        """Returns the weights of a column's integers; None if its cells cannot be added."""
        if column not in self._weights:
            self._weights[column] = self._weights_of(column)
        return self._weights[column]

    def _weights_of(self, column: int) -> tuple[Fraction, ...] | None:
        """The weights of the integers in a count or a sum; None if its cells cannot be added up.

        A total of groups is no sum of cells with noises of their own, a mean has no additive noise,
        and a number of units that passed a threshold was chosen by its own noise.
        """
        expression = self.items[column].expression
        if self._released[0].sets or not isinstance(expression, Estimate):
            return None
        part = self.parts[expression.index]
        if not isinstance(part, Released) or part.noise is None or part.threshold:
            return None
        statistic = expression.statistic
        linear = statistic in (Statistic.COUNT, Statistic.SUM)
        if part.reading.kind is not Reads.NUMBER and not linear:
            return None
        if statistic is Statistic.SUM and part.reading.rounding:
            return None
        width = len(part.values[0]) if part.values else 1
        return linear_weights(part.reading, statistic, width)

    def reach(
        self, column: int, weights: tuple[Fraction, ...], count: int, miss: Fraction
    ) -> Fraction:
        """Returns the half-width of a sum of ``count`` cells at miss probability ``miss``."""
        expression = self.items[column].expression
        assert isinstance(expression, Estimate), "so says weights"
        part = self.parts[expression.index]
        assert isinstance(part, Released) and part.noise is not None, "so says weights"
        # the reach of both is one
        name = column, rounded_up(count), miss
        if name not in self._reaches:
            far = sum_reach(part.noise, miss, weights, rounded_up(count))
            if all(weight.denominator == 1 for weight in weights):
                # a whole number that is not beyond the bound is not beyond its floor
                far = Fraction(math.floor(far))
            self._reaches[name] = far
        return self._reaches[name]

    def point(self, column: int, row: int) -> Fraction:
        """Returns the estimate of a cell, as an exact fraction."""
        expression = self.items[column].expression
        assert isinstance(expression, Estimate), "so says weights"
        part = self.parts[expression.index]
        assert isinstance(part, Released), "so says weights"
        return part.point(self.order[row], expression.statistic, expression.place)

    def whole_points(self, column: int) -> Sequence[int] | None:
        """Returns the exact estimates of a column; None unless all are whole."""
        expression = self.items[column].expression
        assert isinstance(expression, Estimate), "so says weights"
        part = self.parts[expression.index]
        assert isinstance(part, Released), "so says weights"
        if part.reading.kind is Reads.NUMBER and part.reading.unit.denominator == 1:
            # in whole numbers: a fraction takes ten times as long
            unit = part.reading.unit.numerator
            return [part.values[row][0] * unit for row in self.order]
        points = [self.point(column, row) for row in range(len(self.order))]
        if any(point.denominator != 1 for point in points):
            return None
        return [point.numerator for point in points]

    def most_exact(self, column: int) -> int:
        """Returns the number of cells of a column that doubles add exactly."""
        types = {type(value) for value in self.columns[column]}
        if types - {int, type(None)}:
            return 0
        return math.ceil(_EXACT / max(self.largest(column), Fraction(1))) - 1

    def largest(self, column: int) -> Fraction:
        """Returns the largest absolute value in a column."""
        if column not in self._largest:
            values = set(self.columns[column])
            # whole numbers are compared as such: a fraction takes ten times as long
            wholes = [value for value in values if type(value) is int]
            largest = Fraction(max(map(abs, wholes), default=0))
            for value in values:
                if type(value) is not int:
                    largest = max(largest, abs(_number(value) or Fraction(0)))
            self._largest[column] = largest
        return self._largest[column]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two cells of a column of one release whose cells can be added up."""

    release: Release
    column: int
    weights: tuple[Fraction, ...]
    row: int
    subtracted: int

    def difference(self, miss: Fraction) -> Range:
        """The interval of a cell minus the other one."""
        if self.row == self.subtracted:
            return Fraction(0), Fraction(0)
        release, column = self.release, self.column
        middle = release.point(column, self.row) - release.point(column, self.subtracted)
        far = release.reach(column, self.weights, 2, miss)
        return middle - far, middle + far


def _computed(operation: str, ranges: Sequence[Range]) -> Range | None:
    """Interval arithmetic of one operation."""
    lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
    if operation in _SYMBOLS:
        return combined(Operation(operation), *ranges)
    if operation in ("any", ANY_OR_NULL):
        return (min(lows), max(highs)) if ranges else None
    if operation == "greatest":
        return max(lows), max(highs)
    if operation == "least":
        return min(lows), min(highs)
    assert operation == "round", "a form has no other operation"
    step = ranges[1][0]
    # halves are rounded outward, whichever way DuckDB rounds them
    low = math.ceil(lows[0] / step - Fraction(1, 2)) * step
    return low, math.floor(highs[0] / step + Fraction(1, 2)) * step


def _number(value: object) -> Fraction | None:
    """A number of DuckDB as a fraction, a date as its day; None for NULL and what is no number."""
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return Fraction((value - EPOCH).days)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return Fraction(value) if math.isfinite(value) else None
