# SPDX-License-Identifier: Apache-2.0
"""Computes the domain of a group key (every code it can have) from declarations alone.

``group`` uses it, so the set of groups never depends on the data.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from sfumato.errors import MissingDeclaration
from sfumato.metadata.column import Column, Text
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.evaluate import FIRST_DAY, LAST_DAY, date_part, date_trunc, evaluate
from sfumato.plan.scalar import (
    Case,
    Coalesce,
    Constant,
    DatePart,
    DateTrunc,
    Field,
    IsNull,
    Leaf,
    Lookup,
    Not,
    Part,
    Scalar,
    Value,
    children,
    leaves,
    substituted,
)
from sfumato.plan.value_range import Span, span
from sfumato.sql.timestamps import local_range
from sfumato.sql.where_ranges import Tests, left, narrowed, never_null

# Up to this many combinations of values are enumerated; beyond, every code of the range counts.
_TRIED = 20_000
# A part of a timestamp has some fifty nodes.
_TRIED_TIMES = 4_000
MOST_GROUPS = 100_000
# So many days have every quarter, month, day and weekday, and an ISO week 53 (which are at most 7
# years apart).
_ALL_PARTS = 3_000
_LONGEST = {Part.YEAR: 366, Part.QUARTER: 92, Part.MONTH: 31, Part.WEEK: 7}


@lru_cache(maxsize=512)
def image(expression: Scalar, tests: Tests = ()) -> tuple[int, ...]:
    """Returns the integer codes that a GROUP BY key can have in rows that pass the tests,
    ascending.

    They are exact if the values of its columns can be enumerated; else the whole range of the key.

    Raises:
        MissingDeclaration: more than 100,000 codes.
    """
    return tuple(left(expression, tests, _key_codes(expression, tests)))


def _key_codes(expression: Scalar, tests: Tests) -> Sequence[int]:
    """Returns the codes of a key, given what the tests say about the columns it reads."""
    fields = _fields(expression)
    is_period = isinstance(expression, DateTrunc) and expression.part in _LONGEST
    reads_one_date = isinstance(expression, DateTrunc) and isinstance(expression.operand, Field)
    # enumerating the days of a period is slower than stepping through the periods
    if not isinstance(expression, Field) and not (is_period and reads_one_date):
        combinations = prod(_value_count(column, tests) for column in fields)
        reads_times = any(isinstance(column.type, Timestamp) for column in fields)
        if combinations <= (_TRIED_TIMES if reads_times else _TRIED):
            return _enumerate_codes(expression, fields, tests)
    if isinstance(expression, DateTrunc) and is_period:
        return tuple(_period_starts(expression, tests))
    if isinstance(expression, DatePart):
        return _date_parts(expression, tests)
    low, high = narrowed(expression, tests, _code_range(expression, tests)) or (0, -1)
    if high - low + 1 > MOST_GROUPS:
        raise MissingDeclaration(
            f"GROUP BY a key that may have {high - low + 1:,} values.",
            allowed=f"at most {MOST_GROUPS:,} groups",
            remedy="Make ranges of it, WIDTH_BUCKET(column, 0, 200, 20), FLOOR(column / 10) "
            "or LEAST(column, 20); ask for fewer, WHERE key BETWEEN 10 AND 20; "
            "or declare narrower bounds.",
        )
    return range(low, high + 1)


def may_be_missing(
    expression: Scalar, absent: frozenset[Column] = frozenset(), tests: Tests = ()
) -> bool:
    """Whether NULL can be a group of a GROUP BY key.

    It can if a column that the key reads declares missing values or is in ``absent`` (NULL after an
    outer join), or if the key can compute NULL; and if no test excludes it.
    """
    if never_null(expression, tests):
        return False

    def inner(operand: Scalar) -> bool:
        return may_be_missing(operand, absent, tests)

    match expression:
        case Field(column):
            return column.type.missing is not None or column in absent
        case Constant(value):
            return value is None
        case Case(((test, _), (Not(same), _)), Constant(None)) if test == same:
            return inner(test)
        case IsNull():
            return False
        case Case(branches, otherwise):
            return inner(otherwise) or any(inner(result) for _, result in branches)
        case Coalesce(operands):
            return all(inner(operand) for operand in operands)
        case Lookup(operand, _, table):
            return None in table or inner(operand)
        case _:
            return any(inner(child) for child in children(expression))


def _fields(expression: Scalar) -> tuple[Column, ...]:
    """Returns the columns that an expression reads, each once."""
    columns = (leaf.column for leaf in leaves(expression) if isinstance(leaf, Field))
    return tuple(dict.fromkeys(columns))


def _column_range(column: Column, tests: Tests) -> range:
    """Returns a range that contains the codes of a column where the tests are TRUE."""
    assert not isinstance(column.type, Text), "texts have no codes"
    declared = column.type.lower_code, column.type.upper_code
    ends = narrowed(Field(column), tests, declared)
    if ends is None:
        return range(0)
    return range(ends[0], ends[1] + 1)


def _code_range(expression: Scalar, tests: Tests) -> Span:
    """Returns a range of an expression where the tests are TRUE; exact for a local date or hour."""
    fields = _fields(expression)
    if len(fields) == 1 and isinstance(fields[0].type, Timestamp):
        codes = _column_range(fields[0], tests)
        ends = local_range(expression, fields[0], codes)
        if ends is not None:
            return ends
    return span(_within_tests(expression, tests))


def _within_tests(expression: Scalar, tests: Tests) -> Scalar:
    """Returns an expression with its timestamps in the range where the tests are TRUE.

    A part of a timestamp has groups for what WHERE leaves of it, not for all its bounds.
    """

    def inside(leaf: Leaf) -> Scalar:
        if not isinstance(leaf, Field) or not isinstance(leaf.column.type, Timestamp):
            return leaf
        codes = _column_range(leaf.column, tests)
        if not codes:
            return Constant(None)
        kind = Timestamp.of_codes(codes[0], codes[-1], step=int(leaf.column.type.step), zone="")
        return Field(Column(leaf.column.name, kind))

    return substituted(expression, inside)


def _value_count(column: Column, tests: Tests) -> int:
    """Returns how many values of a column are to be enumerated, NULL among them."""
    if isinstance(column.type, Text):
        return _TRIED + 1
    return len(_column_range(column, tests)) + 1


def _enumerate_codes(
    expression: Scalar, fields: tuple[Column, ...], tests: Tests
) -> tuple[int, ...]:
    """Returns the codes of a key over every combination of the values of its columns."""
    codes = set()
    for row in _combinations(fields, tests):
        value = evaluate(expression, _Reader(row))
        if isinstance(value, int):
            codes.add(value)
    return tuple(sorted(codes))


def _combinations(
    fields: tuple[Column, ...], tests: Tests
) -> Iterator[Mapping[Column, int | None]]:
    """Yields every combination of the values that the tests admit, NULL among them."""
    ranges: list[list[int | None]] = []
    for column in fields:
        field = Field(column)
        values: list[int | None] = [*left(field, tests, _column_range(column, tests))]
        if not never_null(field, tests):
            values.append(None)
        ranges.append(values)
    for row in product(*ranges):
        yield dict(zip(fields, row, strict=True))


class _Reader:
    """Looks columns up in a row, for ``evaluate``."""

    def __init__(self, row: Mapping[Column, int | None]) -> None:
        self._row = row

    def __call__(self, leaf: Leaf) -> Value:
        """Returns the code of a column."""
        assert isinstance(leaf, Field), "a row has columns only"
        return self._row[leaf.column]


def _date_parts(expression: DatePart, tests: Tests) -> Sequence[int]:
    """Returns the parts of the days in a range of dates, ascending."""
    ends = narrowed(expression.operand, tests, _code_range(expression.operand, tests))
    if ends is None:
        return ()
    low, high = max(ends[0], FIRST_DAY), min(ends[1], LAST_DAY)
    if expression.part is Part.YEAR:
        return range(date_part(Part.YEAR, low), date_part(Part.YEAR, high) + 1)
    days = range(low, min(high + 1, low + _ALL_PARTS))
    return sorted({date_part(expression.part, day) for day in days})


def _period_starts(expression: DateTrunc, tests: Tests) -> Iterator[int]:
    """Yields the first days of the periods that a range of dates overlaps."""
    ends = narrowed(expression.operand, tests, _code_range(expression.operand, tests))
    if ends is None:
        return
    code = date_trunc(expression.part, ends[0])
    while code <= ends[1]:
        yield code
        code = date_trunc(expression.part, code + _LONGEST[expression.part])
