# SPDX-License-Identifier: Apache-2.0
"""Which groups a computed key can have: a public set, worked out from the declarations alone."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from sfumato.errors import MissingDeclaration
from sfumato.metadata.column import Column, Text
from sfumato.plan.evaluate import date_trunc, evaluate
from sfumato.plan.scalar import (
    Case,
    Coalesce,
    Constant,
    DateTrunc,
    Field,
    Leaf,
    Lookup,
    Not,
    Part,
    Scalar,
    Value,
    children,
    leaves,
)
from sfumato.plan.value_range import span
from sfumato.sql.where_ranges import Tests, left, narrowed, never_null

# So many combinations of values are tried one by one; beyond, every code of the range is a group.
_TRIED = 20_000
MOST_GROUPS = 100_000
_LONGEST = {Part.YEAR: 366, Part.QUARTER: 92, Part.MONTH: 31, Part.WEEK: 7}


@lru_cache(maxsize=512)
def image(expression: Scalar, tests: Tests = ()) -> tuple[int, ...]:
    """The codes that a key can have where the ``tests`` are TRUE, ascending.

    Exactly, where they can be tried; else its whole range.

    Raises:
        MissingDeclaration: more than 100,000.
    """
    return tuple(left(expression, tests, _codes(expression, tests)))


def _codes(expression: Scalar, tests: Tests) -> Sequence[int]:
    """The codes by what the tests say of the columns that are read."""
    fields = _fields(expression)
    if (
        isinstance(expression, DateTrunc)
        and isinstance(expression.operand, Field)
        and expression.part in _LONGEST
    ):
        return tuple(_starts(expression, tests))
    if not isinstance(expression, Field) and prod(_tries(each, tests) for each in fields) <= _TRIED:
        return _tried(expression, fields, tests)
    if isinstance(expression, DateTrunc) and expression.part in _LONGEST:
        return tuple(_starts(expression, tests))
    low, high = narrowed(expression, tests, span(expression)) or (0, -1)
    if high - low + 1 > MOST_GROUPS:
        raise MissingDeclaration(
            f"GROUP BY a key that may have {high - low + 1:,} values.",
            allowed=f"at most {MOST_GROUPS:,} groups",
            remedy="Make ranges of it, WIDTH_BUCKET(column, 0, 200, 20), FLOOR(column / 10) or LEAST(column, 20); "
            "ask for fewer, WHERE key BETWEEN 10 AND 20; or declare narrower bounds.",
        )
    return range(low, high + 1)


def may_be_missing(
    expression: Scalar, absent: frozenset[Column] = frozenset(), tests: Tests = ()
) -> bool:
    """Whether NULL is a group: a column read declares missing values or may be ``absent`` (an outer
    join), or the key itself says NULL; and no test leaves it out."""
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
            return any(inner(leaf) for leaf in leaves(test))
        case Case(branches, otherwise):
            return any(inner(each) for each in (otherwise, *(result for _, result in branches)))
        case Coalesce(operands):
            return all(inner(each) for each in operands)
        case Lookup(operand, _, table):
            return None in table or inner(operand)
        case _:
            return any(inner(each) for each in children(expression))


def _fields(expression: Scalar) -> tuple[Column, ...]:
    return tuple(
        dict.fromkeys(leaf.column for leaf in leaves(expression) if isinstance(leaf, Field))
    )


def _within(column: Column, tests: Tests) -> range:
    """The codes that a column can have where the tests are TRUE, and perhaps some more."""
    assert not isinstance(column.type, Text), "texts have no codes"
    found = narrowed(Field(column), tests, (column.type.lower_code, column.type.upper_code))
    return range(0) if found is None else range(found[0], found[1] + 1)


def _tries(column: Column, tests: Tests) -> int:
    return _TRIED + 1 if isinstance(column.type, Text) else len(_within(column, tests)) + 1


def _tried(expression: Scalar, fields: tuple[Column, ...], tests: Tests) -> tuple[int, ...]:
    found = {evaluate(expression, _reader(row)) for row in _rows(fields, tests)}
    return tuple(sorted(each for each in found if isinstance(each, int)))


def _rows(fields: tuple[Column, ...], tests: Tests) -> Iterator[Mapping[Column, int | None]]:
    """Every combination of the values that the tests leave, NULL among them."""
    ranges = [
        [
            *left(Field(each), tests, _within(each, tests)),
            *([] if never_null(Field(each), tests) else [None]),
        ]
        for each in fields
    ]
    for row in product(*ranges):
        yield dict(zip(fields, row, strict=True))


def _reader(row: Mapping[Column, int | None]) -> "Reader":
    return Reader(row)


class Reader:
    """Looks columns up in a row."""

    def __init__(self, row: Mapping[Column, int | None]) -> None:
        self._row = row

    def __call__(self, leaf: Leaf) -> Value:
        """The code of a column."""
        assert isinstance(leaf, Field), "a row has columns only"
        return self._row[leaf.column]


def _starts(expression: DateTrunc, tests: Tests) -> Iterator[int]:
    """The first days of the periods that a range of days meets."""
    found = narrowed(expression.operand, tests, span(expression.operand))
    if found is None:
        return
    code = date_trunc(expression.part, found[0])
    while code <= found[1]:
        yield code
        code = date_trunc(expression.part, code + _LONGEST[expression.part])
