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
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias, cast

from sfumato.metadata.column import EPOCH
from sfumato.plan.output import Item
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

# The ends of an interval in whole numbers.
Ends: TypeAlias = tuple[int, int]

# A sum of that many cells is one of doubles in DuckDB: each addition is off by at most this share.
_OFF = Fraction(1, 2**50)
# Below it doubles add whole numbers exactly, in any order.
_EXACT = 2**53
_SYMBOLS = frozenset(operation.value for operation in Operation)
_NOTHING = Cell(None)


class Releases:
    """The private answers that SQL over private answers reads, for the intervals of its cells."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.releases = [Release.of(answer) for answer in answers]
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

    def stored_errors(self, leaf: Leaf, rows: Sequence[Sequence[object]]) -> list[Json]:
        """Returns the stored 95% intervals of a column of cells; None if noise chose a cell."""
        errors: list[Json] = [None] * len(rows)
        if leaf.kind is not Kind.CELL or leaf.chosen:
            return errors
        (hidden,) = leaf.hidden
        for place, shown in enumerate(rows):
            code = shown[hidden]
            if isinstance(code, int):
                answer, column, row = cell_of(code)
                error = self.releases[answer].errors[row][column]
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
        """The interval of the first part that is not NULL, or whose row is there (``NO_ROW``)."""
        possible = []
        for part in form.parts:
            if isinstance(part, Leaf) and part.kind is Kind.CELL:
                if (code := hidden(part.hidden[0])) == NO_ROW:
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
        return self.releases[answer].told[row][column]

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
        places = _cells_of(form)
        if places is None:
            return None
        one, other = map(hidden, places)
        if not isinstance(one, int) or not isinstance(other, int):
            return None
        (answer, column, row), (*same, subtracted) = cell_of(one), cell_of(other)
        if [answer, column] != same:
            return None
        release, weights = self.releases[answer], self.releases[answer].weights(column)
        return None if weights is None else _Pair(release, column, weights, row, subtracted)


class WholeEnds:
    """The computation of intervals with integer ends, of cells, sums and differences of counts.

    They are those of ``Releases.interval``, without its fractions, which take most of its time.
    """

    def __init__(self, releases: Releases, miss: Fraction) -> None:
        self._releases = releases.releases
        self._miss = miss
        self._columns: dict[tuple[int, bool], _Wholes | None] = {}

    def column(self, form: Form, rows: Sequence[Sequence[object]]) -> list[Ends | None]:
        """Returns the integer ends of a computed column's intervals; rows have its hidden columns.

        None in a row where they are no whole numbers, or where ``Releases.interval`` has to tell.

        Guarantees:
            ends in whole numbers are those of the interval
        """
        if isinstance(form, Leaf):
            hidden = [[row[place] for row in rows] for place in form.hidden]
            if form.kind is Kind.CELL:
                return [self._cell(code, chosen=form.chosen) for code in hidden[0]]
            if form.kind is Kind.SUM and not form.chosen:
                return [self._sum(*cells) for cells in zip(*hidden, strict=True)]
        pair = _cells_of(form)
        if pair is None:
            return [None] * len(rows)
        one, other = pair
        return [self._difference(row[one], row[other]) for row in rows]

    def _cell(self, code: object, *, chosen: bool) -> Ends | None:
        """The ends of a released cell."""
        if not isinstance(code, int):
            return None
        source, row = divmod(code, ROWS)
        wholes = self._wholes(source, chosen=chosen)
        far = None if wholes is None else wholes.far(1)
        if wholes is None or far is None:
            return None
        point = wholes.points[row]
        return point - far, point + far

    def _sum(
        self, total: object, count: object, different: object, least: object, largest: object
    ) -> Ends | None:
        """The ends of a sum of cells of one release, each of them once."""
        if not isinstance(total, int | float) or total % 1 or not isinstance(count, int):
            return None
        if count < 1 or count != different:
            return None
        assert isinstance(least, int) and isinstance(largest, int), "codes of at least one cell"
        source = least // ROWS
        if source != largest // ROWS:
            return None
        wholes = self._wholes(source, chosen=False)
        if wholes is None or count > wholes.most:
            return None
        far = wholes.far(count)
        return None if far is None else (int(total) - far, int(total) + far)

    def _difference(self, one: object, other: object) -> Ends | None:
        """The ends of the difference of two cells of one column."""
        if not isinstance(one, int) or not isinstance(other, int):
            return None
        (source, row), (same, subtracted) = divmod(one, ROWS), divmod(other, ROWS)
        wholes = self._wholes(source, chosen=False) if source == same else None
        far = None if wholes is None else wholes.far(2)
        if wholes is None or far is None:
            return None
        if row == subtracted:
            return 0, 0
        middle = wholes.points[row] - wholes.points[subtracted]
        return middle - far, middle + far

    def _wholes(self, source: int, *, chosen: bool) -> "_Wholes | None":
        """A column of an answer in whole numbers; None if it has others."""
        name = source, chosen
        if name not in self._columns:
            answer, column, _ = cell_of(source * ROWS)
            release = self._releases[answer]
            share = self._miss / release.rows if chosen else self._miss
            self._columns[name] = release.wholes(column, share)
        return self._columns[name]


def _cells_of(form: Form) -> tuple[int, int] | None:
    """The places of the codes in a difference of two cells that noise did not choose."""
    if not isinstance(form, Computed) or form.operation != "-" or len(form.parts) != 2:
        return None
    places = []
    for part in form.parts:
        if not isinstance(part, Leaf) or part.kind is not Kind.CELL or part.chosen:
            return None
        places.append(part.hidden[0])
    return places[0], places[1]


@dataclass(frozen=True, slots=True)
class _Wholes:
    """A column of whole estimates, and how far the sum of so many of its cells reaches.

    ``most`` is the number of its cells that doubles add exactly.
    """

    points: Sequence[int]
    reach: Callable[[int], Fraction]
    most: int
    known: dict[int, int | None] = field(default_factory=dict)

    def far(self, count: int) -> int | None:
        """The error of a sum of so many cells; None if it is no whole number."""
        counted_as = rounded_up(count)
        if counted_as not in self.known:
            far = self.reach(counted_as)
            self.known[counted_as] = far.numerator if far.denominator == 1 else None
        return self.known[counted_as]


@dataclass(frozen=True, slots=True)
class Release:
    """One private answer that an outer statement reads: its columns, aggregates and rows."""

    items: tuple[Item, ...]
    parts: Sequence[AnyReleased]
    order: Sequence[int]
    told: Sequence[Sequence[object]]
    is_whole: bool
    rows: int
    errors: Sequence[Sequence[Json]]
    known_weights: dict[int, tuple[Fraction, ...] | None] = field(default_factory=dict)
    known_reaches: dict[tuple[int, int, Fraction], Fraction] = field(default_factory=dict)
    known_largest: dict[int, Fraction] = field(default_factory=dict)
    known_most: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, answer: Answer) -> "Release":
        """Returns the release of an answer; ``rows``: how many groups could be shown."""
        output, parts, order = released_of(answer.form)
        rows = max(parts[0].count if parts else 1, 1)
        errors = cast(list[list[Json]], answer.form["errors"])
        return cls(output.items, parts, order, answer.told, not output.sets, rows, errors)

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
        if column not in self.known_weights:
            self.known_weights[column] = self._weights(column)
        return self.known_weights[column]

    def _weights(self, column: int) -> tuple[Fraction, ...] | None:
        """The weights of the integers in a count or a sum; None if its cells cannot be added up.

        A total of groups is no sum of cells with noises of their own, a mean has no additive noise,
        and a number of units that passed a threshold was chosen by its own noise.
        """
        expression = self.items[column].expression
        if not self.is_whole or not isinstance(expression, Estimate):
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
        if name not in self.known_reaches:
            far = sum_reach(part.noise, miss, weights, count)
            if all(weight.denominator == 1 for weight in weights):
                # a whole number that is not beyond the bound is not beyond its floor
                far = Fraction(math.floor(far))
            self.known_reaches[name] = far
        return self.known_reaches[name]

    def point(self, column: int, row: int) -> Fraction:
        """Returns the estimate of a cell, as an exact fraction."""
        expression = self.items[column].expression
        assert isinstance(expression, Estimate), "so says weights"
        part = self.parts[expression.index]
        assert isinstance(part, Released), "so says weights"
        return part.point(self.order[row], expression.statistic, expression.place)

    def wholes(self, column: int, miss: Fraction) -> _Wholes | None:
        """Returns a column's estimates as integers; None unless all are whole and can be added."""
        weights = self.weights(column)
        if weights is None:
            return None
        points = self._points(column)
        if any(point.denominator != 1 for point in points):
            return None
        return _Wholes(
            [point.numerator for point in points],
            lambda count: self.reach(column, weights, count, miss),
            self.most_exact(column),
        )

    def _points(self, column: int) -> Sequence[Fraction | int]:
        """The estimates of a column, exactly."""
        expression = self.items[column].expression
        assert isinstance(expression, Estimate), "so says weights"
        part = self.parts[expression.index]
        assert isinstance(part, Released), "so says weights"
        if part.reading.kind is Reads.NUMBER and part.reading.unit.denominator == 1:
            # in whole numbers: a fraction takes ten times as long
            return [part.values[row][0] * part.reading.unit.numerator for row in self.order]
        return [self.point(column, row) for row in range(len(self.order))]

    def most_exact(self, column: int) -> int:
        """Returns the number of cells of a column that doubles add exactly."""
        if column not in self.known_most:
            values = [row[column] for row in self.told if row[column] is not None]
            whole = all(type(value) is int for value in values)
            largest = max(self.largest(column), Fraction(1))
            self.known_most[column] = math.ceil(_EXACT / largest) - 1 if whole else 0
        return self.known_most[column]

    def largest(self, column: int) -> Fraction:
        """Returns the largest absolute value in a column."""
        if column not in self.known_largest:
            values = [row[column] for row in self.told]
            # whole numbers are compared as such: a fraction takes ten times as long
            whole = [abs(value) for value in values if type(value) is int]
            others = [_number(value) or Fraction(0) for value in values if type(value) is not int]
            largest = max(map(abs, others), default=Fraction(0))
            self.known_largest[column] = max(largest, Fraction(max(whole, default=0)))
        return self.known_largest[column]


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
