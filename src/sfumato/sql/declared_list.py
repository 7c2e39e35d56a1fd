# SPDX-License-Identifier: Apache-2.0
"""SELECT DISTINCT of columns with declared values: the declared list, which no data decides.

Which of the values occur is private. The list of those that the declarations and WHERE allow is
public, so it needs no noise and costs nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import product
from math import prod

from sqlglot import exp

from sfumato.metadata.column import Column, Text
from sfumato.plan.evaluate import evaluate
from sfumato.plan.relation import Filter, PublicJoin, Scan
from sfumato.plan.scalar import (
    Compare,
    Comparison,
    Constant,
    Field,
    Leaf,
    Scalar,
    Value,
    leaves,
)
from sfumato.plan.scope import nodes
from sfumato.plan.stages import Raw
from sfumato.plan.value import GroupKey
from sfumato.sql.bind import constant
from sfumato.sql.reject import refuse
from sfumato.sql.where_ranges import holding

NOTE = (
    "The list is that of the declarations: no data was read, it costs nothing, and it does not say "
    "which values occur."
)
# The name of a list in an outer statement.
_DECLARED = "declared"
_COMPARING = (exp.Except, exp.Intersect, exp.In, exp.Exists, exp.Any, exp.All)
# Functions of a window that show rows in their order, which the parser has as aggregates.
_OF_ORDER = (
    exp.CumeDist,
    exp.DenseRank,
    exp.FirstValue,
    exp.Lag,
    exp.LastValue,
    exp.Lead,
    exp.NthValue,
    exp.Ntile,
    exp.PercentRank,
    exp.Rank,
)
_READ_AS = (
    "would be read as what occurs, which is itself private",
    (
        "COUNT(DISTINCT column) counts the values that occur, GROUP BY with COUNT(*) the rows of "
        "each; the declared list alone, or beside a private answer, is free."
    ),
)
# The most rows of a list.
MOST_ROWS = 10_000
# The most values of a column that are tried for a key that is computed from it.
MOST_TRIED = 20_000


def is_distinct(select: exp.Select) -> bool:
    """Whether a SELECT is DISTINCT, without ON."""
    distinct = select.args.get("distinct")
    return distinct is not None and not any(distinct.args.values())


def declared_list(raw: Raw) -> exp.Values | None:
    """Returns the groups that declarations and WHERE allow, as VALUES with the columns k0, k1, ...

    None if they are not public, or too many; or if WHERE tests anything else than the keys, since
    then the list would be read as what occurs in those rows.
    """
    if any(key.codes is None for key in raw.keys):
        return None
    if not all(isinstance(node, Scan | Filter | PublicJoin) for node in nodes(raw.relation)):
        return None
    if prod(key.size or 1 for key in raw.keys) > MOST_ROWS:
        return None
    tests = list(holding(raw.relation))
    read = [_columns(key.value.expression) for key in raw.keys]
    if len(set().union(*read)) < sum(map(len, read)):
        # keys that read one column: not every pair of their values is possible
        return None
    codes, left = [], tests
    for key, columns in zip(raw.keys, read, strict=True):
        own = []
        if len(columns) == 1 and not isinstance(key.value.expression, Field):
            own = [test for test in left if _columns(test) == columns]
        left = [test for test in left if test not in own]
        possible = _possible(key, own)
        if possible is None:
            return None
        codes.append(possible)
    plain = {
        key.value.expression.column: place
        for place, key in enumerate(raw.keys)
        if isinstance(key.value.expression, Field)
    }
    if any(not _columns(test) <= plain.keys() for test in left):
        return None
    rows = [row for row in product(*codes) if _passes(row, plain, left)]
    return _values(raw.keys, rows) if rows else None


def require_shown(outer: exp.Query, answers: Collection[str]) -> None:
    """Refuses an outer statement that aggregates or compares declared lists alone.

    Its result would be read as what occurs, and is the same whatever the data. ``answers`` are the
    tables of private answers: beside one, a list is the frame of its rows.

    Raises:
        UnsupportedSql: it does.
    """
    for node in outer.find_all(exp.Select, *_COMPARING):
        parts: list[exp.Expr | None] = [node]
        is_read = True
        if isinstance(node, exp.In):
            parts = [node.args.get("query")]
        elif isinstance(node, exp.Select):
            parts = [node.args.get("from_"), *(node.args.get("joins") or [])]
            lists = [part for part in parts if part is not None and _has_list(part)]
            # rows of two lists side by side are no comparison
            is_joined = len(lists) > 1 and any(map(_has_condition, lists))
            is_read = is_joined or any(map(_has_aggregate, node.iter_expressions()))
        sources = [part for part in parts if part is not None]
        tables = {table.name for part in sources for table in part.find_all(exp.Table)}
        if is_read and any(map(_has_list, sources)) and tables.isdisjoint(answers):
            raise refuse("SELECT DISTINCT of declared values, counted or compared,", _READ_AS)


def _has_list(node: exp.Expr) -> bool:
    """Whether a part of an outer statement reads a declared list."""
    return any(values.alias == _DECLARED for values in node.find_all(exp.Values))


def _has_condition(source: exp.Expr) -> bool:
    """Whether a table of FROM is joined by a condition."""
    return any(source.args.get(name) for name in ("on", "using", "method"))


def _has_aggregate(part: exp.Expr) -> bool:
    """Whether a part of a SELECT has an aggregate, outside its sub-queries; ranks are none."""
    if isinstance(part, exp.Query):
        return False
    if isinstance(part, exp.AggFunc) and not isinstance(part, _OF_ORDER):
        return True
    return any(map(_has_aggregate, part.iter_expressions()))


def _columns(expression: Scalar) -> set[Column]:
    """The columns that an expression reads."""
    return {leaf.column for leaf in leaves(expression) if isinstance(leaf, Field)}


def _possible(key: GroupKey, tests: Sequence[Scalar]) -> list[int | None] | None:
    """The codes of a key's groups in rows that pass the tests of its one column, NULL last.

    None if the column has too many values to try.
    """
    codes = [*(key.codes or ()), *([None] if key.missing else [])]
    if not tests:
        return codes
    expression = key.value.expression
    (column,) = _columns(expression)
    if isinstance(column.type, Text) or column.type.size > MOST_TRIED:
        # ranges have decided about the codes
        return codes if all(map(_is_range, tests)) else None
    passing = set()
    for value in (*range(column.type.lower_code, column.type.upper_code + 1), None):
        if all(_at(test, value) is True for test in tests):
            passing.add(_at(expression, value))
    return [code for code in codes if code in passing]


def _at(expression: Scalar, code: int | None) -> Value:
    """The value of an expression of one column at a code of it."""
    return evaluate(expression, lambda leaf: code)


def _is_range(test: Scalar) -> bool:
    """Whether a test says that a column lies above, below or at a constant."""
    match test:
        case Compare(op, Field(), Constant()) | Compare(op, Constant(), Field()):
            return op is not Comparison.NE
        case _:
            return False


def _passes(row: tuple[int | None, ...], places: Mapping[Column, int], tests: list[Scalar]) -> bool:
    """Whether a row of codes passes all tests, each of which reads keys that are columns."""

    def lookup(leaf: Leaf) -> Value:
        assert isinstance(leaf, Field), "a test of rows reads columns"
        return row[places[leaf.column]]

    return all(evaluate(test, lookup) is True for test in tests)


def _values(keys: tuple[GroupKey, ...], rows: list[tuple[int | None, ...]]) -> exp.Values:
    """Rows of codes as VALUES of what the codes stand for."""
    tuples = [
        exp.Tuple(expressions=[_shown(key, code) for key, code in zip(keys, row, strict=True)])
        for row in rows
    ]
    names = [exp.to_identifier(f"k{place}") for place in range(len(keys))]
    alias = exp.TableAlias(this=exp.to_identifier(_DECLARED), columns=names)
    return exp.Values(expressions=tuples, alias=alias)


def _shown(key: GroupKey, code: int | None) -> exp.Expr:
    """The constant that a code stands for; a timestamp is local time."""
    kind = key.value.type
    assert not isinstance(kind, Text), "a text has no declared values"
    if code is None:
        return exp.Null()
    value = kind.decode(code)
    if isinstance(value, datetime):
        value = value.replace(tzinfo=None)
    if isinstance(value, float):
        double = exp.DataType.build("double")
        return exp.Cast(this=exp.Literal.string(repr(value)), to=double)
    return constant("A value", value)
