# SPDX-License-Identifier: Apache-2.0
"""Intervals of an outer statement's columns whose ends are whole numbers, a column at once.

They are those of ``outer_errors``, without its fractions, which take most of its time. Proof:
outer_errors.proof.md.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import repeat
from typing import TypeAlias, cast

from sfumato.privacy.event import Json
from sfumato.query.noise_sums import rounded_up
from sfumato.query.outer_errors import Release, Releases, cells_of_difference
from sfumato.sql.outer_forms import ROWS, Form, Kind, Leaf, cell_of

# The middle of an interval, and how far it reaches; None if they are no whole numbers.
Reaching: TypeAlias = tuple[int | None, int | None]
# Doubles tell whole numbers apart below it.
_EXACT = 2**53
_NEITHER: Reaching = (None, None)


class WholeEnds:
    """The computation of intervals with integer ends, of cells, sums and differences of counts.

    They are those of ``Releases.interval``, without its fractions, which take most of its time.
    """

    def __init__(self, releases: Releases, miss: Fraction) -> None:
        self._releases = releases.releases
        self._miss = miss
        self._columns: dict[tuple[int, bool], _Wholes | None] = {}

    def errors(
        self, form: Form, columns: Sequence[Sequence[object]], values: Sequence[object]
    ) -> list[Json]:
        """Returns the intervals of a computed column with ``values`` as JSON.

        ``columns`` are those of the result, the hidden ones included. None in a row where the ends
        are no whole numbers, or where ``Releases.interval`` has to tell.

        Guarantees:
            ends in whole numbers are those of the interval
        """
        # no object a row but the interval itself: the time of Python's collector grows with them
        return [
            {"low": middle - far, "high": middle + far, "half_width": far}
            if middle is not None
            and far is not None
            and middle == value
            and abs(middle) + far < _EXACT
            else _error_around(middle, far, value)
            for (middle, far), value in zip(self._reaching(form, columns), values, strict=True)
        ]

    def _reaching(self, form: Form, columns: Sequence[Sequence[object]]) -> Iterator[Reaching]:
        """The middle and the reach of each interval of a column."""
        if isinstance(form, Leaf):
            hidden = [columns[place] for place in form.hidden]
            if form.kind is Kind.CELL:
                return self._cells(hidden[0], chosen=form.chosen)
            if form.kind is Kind.SUM and not form.chosen:
                return self._sums(hidden)
        pair = cells_of_difference(form)
        if pair is None:
            return repeat(_NEITHER, len(columns[0]))
        one, other = pair
        return self._differences(columns[one], columns[other])

    def _cells(self, codes: Sequence[object], *, chosen: bool) -> Iterator[Reaching]:
        """The middles and reaches of released cells."""
        wholes, far, source = None, None, -1
        for code in codes:
            if isinstance(code, int) and code // ROWS != source:
                # the rows of a column mostly are of one
                source = code // ROWS
                wholes = self._wholes(source, chosen=chosen)
                far = None if wholes is None else wholes.far(1)
            if not isinstance(code, int) or wholes is None:
                yield _NEITHER
            else:
                yield wholes.points[code % ROWS], far

    def _sums(self, hidden: Sequence[Sequence[object]]) -> Iterator[Reaching]:
        """The middles and reaches of sums of cells of one release, each of them once."""
        wholes, source, most = None, -1, 0
        for total, count, different, least, largest in zip(*hidden, strict=True):
            is_whole = type(total) is int or (isinstance(total, float) and not total % 1)
            if not is_whole or not isinstance(count, int) or count < 1 or count != different:
                yield _NEITHER
                continue
            assert isinstance(least, int) and isinstance(largest, int), "codes of at least one cell"
            if least // ROWS != source:
                source = least // ROWS
                wholes = self._wholes(source, chosen=False)
                most = 0 if wholes is None else wholes.most_exact()
            far = None
            if wholes is not None and largest // ROWS == source and count <= most:
                far = wholes.far(count)
            yield int(cast(float, total)), far

    def _differences(
        self, minuends: Sequence[object], subtrahends: Sequence[object]
    ) -> Iterator[Reaching]:
        """The middles and reaches of the differences of two cells of one column."""
        wholes, far, source = None, None, -1
        for minuend, subtrahend in zip(minuends, subtrahends, strict=True):
            if isinstance(minuend, int) and minuend // ROWS != source:
                source = minuend // ROWS
                wholes = self._wholes(source, chosen=False)
                far = None if wholes is None else wholes.far(2)
            if (
                not isinstance(minuend, int)
                or not isinstance(subtrahend, int)
                or subtrahend // ROWS != source
                or wholes is None
                or far is None
            ):
                yield _NEITHER
            elif minuend == subtrahend:
                yield 0, 0
            else:
                yield wholes.points[minuend % ROWS] - wholes.points[subtrahend % ROWS], far

    def _wholes(self, source: int, *, chosen: bool) -> "_Wholes | None":
        """A column of an answer in whole numbers; None if it has others."""
        name = source, chosen
        if name not in self._columns:
            answer, column, _ = cell_of(source * ROWS)
            release = self._releases[answer]
            share = self._miss / release.rows if chosen else self._miss
            self._columns[name] = _wholes_of(release, column, share)
        return self._columns[name]


@dataclass(frozen=True, slots=True)
class _Wholes:
    """A column of whole estimates, and how far the sum of so many of its cells reaches.

    ``most_exact`` computes the number of its cells that doubles add exactly.
    """

    points: Sequence[int]
    reach: Callable[[int], Fraction]
    most_exact: Callable[[], int]
    known: dict[int, int | None] = field(default_factory=dict)

    def far(self, count: int) -> int | None:
        """The error of a sum of so many cells; None if it is no whole number."""
        counted_as = rounded_up(count)
        if counted_as not in self.known:
            far = self.reach(counted_as)
            self.known[counted_as] = far.numerator if far.denominator == 1 else None
        return self.known[counted_as]


def _wholes_of(release: Release, column: int, miss: Fraction) -> _Wholes | None:
    """A column of a release in whole numbers; None unless its cells are whole and can be added."""
    weights = release.weights(column)
    points = None if weights is None else release.whole_points(column)
    if weights is None or points is None:
        return None
    return _Wholes(
        points,
        lambda count: release.reach(column, weights, count, miss),
        lambda: release.most_exact(column),
    )


def _error_around(middle: int | None, far: int | None, value: object) -> Json:
    """The error of a value whose interval has another middle; None if it is no whole number."""
    if middle is None or far is None or abs(middle) + far >= _EXACT:
        return None
    if not isinstance(value, int | float) or value % 1:
        return None
    return {
        "low": middle - far,
        "high": middle + far,
        "half_width": far + abs(int(value) - middle),
    }
