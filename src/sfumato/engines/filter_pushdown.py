# SPDX-License-Identifier: Apache-2.0
"""Pushes filters down to stored columns, so that DuckDB can skip row groups.

The code of a value depends on the stored value alone: a category has the code of its string; a
number or a date has the nearest code in its range. So a test of a code can be replaced by a test of
the stored value. Proof: filter_pushdown.proof.md.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from sfumato.engines import sql_tree as sql
from sfumato.engines.relation import Tables
from sfumato.engines.value_sql import Source, column_text, no_nan, reading, real, stored
from sfumato.errors import unknown
from sfumato.metadata.column import Array, Boolean, Category, Column, Date, Integer, Real, Text
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.evaluate import evaluate
from sfumato.plan.relation import (
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Union,
    UnitJoin,
    Windowed,
)
from sfumato.plan.scalar import (
    And,
    Compare,
    Constant,
    Field,
    IsNull,
    Member,
    Not,
    Or,
    Scalar,
    children,
    leaves,
)
from sfumato.plan.scope import expressions, nodes
from sfumato.plan.stages import Raw

# A test that does more than compare is evaluated at every code if there are at most this many.
_FEW = 2**10
# A test is pushed down if at most this many nodes are evaluated, over all codes.
_STEPS = 2**14
# A test of a stored number is pushed down if it is TRUE in at most this many runs of codes.
_PIECES = 8
# Codes of smaller magnitude, and their halves, are exact floats.
_EXACT = 2**51

# An integer as DuckDB prints it.
_NUMBER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)

Tests: TypeAlias = dict[str, tuple[sql.Expression, ...]]
Run: TypeAlias = tuple[int, int]


def pushed_down(
    raw: Raw, sources: Mapping[str, Source], *, windows: bool = False
) -> tuple[Raw, Tables]:
    """Moves the WHERE conditions on stored columns into the reading of a question's tables, so that
    engines can skip rows.

    Returns the question without these conditions, and the tables with them. The tables also list
    the columns that the question still reads; ``windows`` as in ``Tables``.
    """
    relation, tests = split(raw.relation, sources)
    raw = replace(raw, relation=relation)
    tables = Tables.of(relation, sources)
    return raw, replace(tables, tests=tests, read=names_read(raw), windows=windows)


def split(relation: Relation, sources: Mapping[str, Source]) -> tuple[Relation, Tests]:
    """Splits the tests of a relation that stored values can decide from the relation.

    Returns the relation without these tests, and the tests by the name of the column that they
    read; such names are unique in a relation.

    Guarantees:
        a row passes the stored test where it passes the test of its code
    """
    match relation:
        case Scan():
            return relation, {}
        case Filter(source, predicate):
            return _split_filter(source, predicate, sources)
        case PublicJoin() | KeyJoin() | PerUnit() | Ranked() | Windowed():
            source, tests = split(relation.source, sources)
            return replace(relation, source=source), tests
        case UnitJoin():
            source, tests = split(relation.source, sources)
            other, more = split(relation.other, sources)
            return replace(relation, source=source, other=other), tests | more
        case Semi():
            source, tests = split(relation.source, sources)
            units, more = split(relation.units, sources)
            return replace(relation, source=source, units=units), tests | more
        case Union():
            parts = []
            tests = {}
            for part in relation.sources:
                source, more = split(part, sources)
                parts.append(source)
                tests |= more
            return replace(relation, sources=tuple(parts)), tests
        case _:
            raise unknown(relation)


def _split_filter(
    source: Relation, predicate: Scalar, sources: Mapping[str, Source]
) -> tuple[Relation, Tests]:
    inner, tests = split(source, sources)
    scan = _source(source)
    rest = []
    for conjunct in conjuncts(predicate):
        column = None if scan is None else _only_column(conjunct, scan)
        test = None
        if scan is not None and column is not None:
            test = _stored_test(conjunct, column, scan, sources[scan.table])
        if test is None or column is None:
            rest.append(conjunct)
        else:
            tests[column.name] = (*tests.get(column.name, ()), test)
    if not rest:
        return inner, tests
    return Filter(inner, rest[0] if len(rest) == 1 else And(tuple(rest))), tests


def _source(relation: Relation) -> Scan | None:
    """Returns the table whose rows decide independently whether they pass; None if there is none.

    A row of it that fails a later test can be dropped when it is read.
    """
    match relation:
        case Scan():
            return relation
        case Filter() | PublicJoin() | KeyJoin() | UnitJoin() | Semi():
            return _source(relation.source)
        case PerUnit() | Ranked() | Windowed() | Union():
            return None
        case _:
            raise unknown(relation)


def names_read(raw: Raw) -> frozenset[str]:
    """Returns the names of all columns that a question reads, in filters, joins, keys or values."""
    read: list[Scalar] = [key.value.expression for key in raw.keys]
    for aggregate in raw.aggregates:
        value = aggregate.read
        if value is not None:
            read.append(value.expression)
    names = set()
    for node in nodes(raw.relation):
        for _, readers in expressions(node):
            read += readers
        if isinstance(node, Ranked | Windowed):
            read += node.ties
        if isinstance(node, PublicJoin | KeyJoin):
            names |= {column.name for column in (*node.table.columns, node.right)}
    for expression in read:
        for leaf in leaves(expression):
            if isinstance(leaf, Field):
                names.add(leaf.column.name)
    return frozenset(names)


def conjuncts(predicate: Scalar) -> Iterator[Scalar]:
    """Yields the conditions that AND joins in a predicate, including those in nested conjunctions;
    the predicate itself if it is no conjunction.
    """
    if isinstance(predicate, And):
        for operand in predicate.operands:
            yield from conjuncts(operand)
    else:
        yield predicate


def _only_column(test: Scalar, scan: Scan) -> Column | None:
    """Returns the column of a table that a test reads, if it reads nothing else."""
    read = {leaf.column for leaf in leaves(test) if isinstance(leaf, Field)}
    for column in scan.columns:
        if read == {column}:
            return column
    return None


def _stored_test(
    test: Scalar,
    column: Column,
    scan: Scan,
    source: Source,
) -> sql.Expression | None:
    """Returns a condition on the stored column that is TRUE exactly where the test of its code is.

    Returns None if there is no simple one.
    """
    kind = column.type
    name = column.name.removeprefix(scan.prefix)
    if source.coded or isinstance(kind, Text | Timestamp | Array):
        return None
    runs = passing(test, kind)
    if runs is None:
        return None
    if isinstance(kind, Category | Boolean):
        return _listed(_words(runs, kind), name, source)
    if len(runs) > _PIECES:
        return None
    if isinstance(kind, Integer | Real) and source.family(name) == "float":
        if max(abs(kind.lower_code), abs(kind.upper_code)) >= _EXACT:
            return None
        return _any([_rounded(run, kind, reading(name, kind, source)) for run in runs])
    if isinstance(kind, Real) or not _is_stored_as_code(kind, name, source):
        return None
    condition = _any([_between(run, kind, stored(name)) for run in runs])
    if not kind.missing:
        return condition
    markers = tuple(sql.Constant(marker) for marker in kind.missing)
    is_present = sql.In(column_text(name, source), markers, negated=True)
    return sql.Paren(sql.Logic("AND", (condition, is_present)))


def _words(runs: Sequence[Run], kind: Category | Boolean) -> list[str]:
    """Returns the declared strings whose codes are in some run."""
    passed: set[int] = set()
    for low, high in runs:
        passed.update(range(low, high + 1))
    return [word for word, code in kind.texts() if code in passed]


def _is_stored_as_code(
    kind: Integer | Date,
    name: str,
    source: Source,
) -> bool:
    """Whether the stored type can be compared with codes: an integer, or a DATE for days."""
    if isinstance(kind, Integer):
        return source.is_short(name)
    return source.types[name].upper() == "DATE"


def passing(test: Scalar, kind: Integer | Real | Date | Category | Boolean) -> list[Run] | None:
    """Returns the runs of consecutive codes at which a test of one column is TRUE.

    Returns None if there are too many codes to evaluate, or if the test is TRUE of NULL.
    """
    if kind.size > _FEW and _turns(test) is None:
        return None
    if _evaluated(test) * kind.size > _STEPS or _passes(test, None):
        return None
    truth = _truth(test, kind.lower_code, kind.upper_code)
    if truth is None:
        return None
    return truth[0]


def _truth(
    test: Scalar,
    low: int,
    high: int,
) -> tuple[list[Run], list[Run]] | None:
    """Returns the runs of codes at which a test is TRUE, and those at which it is FALSE.

    It is NULL at all other codes. Returns None if its value is no Boolean at some code.
    """
    match test:
        case Not(inner):
            runs = _truth(inner, low, high)
            if runs is None:
                return None
            return runs[::-1]
        case And(operands) | Or(operands):
            true = []
            false = []
            for operand in operands:
                part = _truth(operand, low, high)
                if part is None:
                    return None
                true.append(part[0])
                false.append(part[1])
            if isinstance(test, And):
                return _shared(true, low, high), _either(false)
            return _either(true), _shared(false, low, high)
        case Member(Field(), codes) if all(isinstance(code, int) for code in codes):
            inside = [code for code in codes if isinstance(code, int) and low <= code <= high]
            members = _either([[(code, code)] for code in inside])
            return members, _left_out(members, low, high)
        case _:
            return _asked(test, low, high)


def _asked(
    test: Scalar,
    low: int,
    high: int,
) -> tuple[list[Run], list[Run]] | None:
    """``_truth`` by evaluation at the codes where a test can change.

    Between two neighbours of its constants it cannot change.
    """
    runs: dict[object, list[Run]] = {True: [], False: [], None: []}
    before: object = ()
    for code in _seen(test, low, high):
        value = _evaluate(test, code)
        if value is not None and not isinstance(value, bool):
            return None
        listed = runs[value]
        if value is before:
            start, _ = listed.pop()
            listed.append((start, code))
        else:
            listed.append((code, code))
        before = value
    return runs[True], runs[False]


def _seen(test: Scalar, low: int, high: int) -> Sequence[int]:
    """Returns the codes of a range at which a test is evaluated, in ascending order."""
    turns = _turns(test)
    if turns is None:
        return range(low, high + 1)
    codes = {low, high}
    for turn in turns:
        codes.update(code for code in (turn - 1, turn, turn + 1) if low <= code <= high)
    return sorted(codes)


def _evaluate(test: Scalar, code: int | None) -> object:
    """Evaluates a test of one column at a code of it."""
    return evaluate(test, lambda leaf: code)


def _either(parts: Sequence[Sequence[Run]]) -> list[Run]:
    """Returns the union of several lists of runs."""
    merged: list[Run] = []
    for low, high in sorted(chain.from_iterable(parts)):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged


def _shared(
    parts: Sequence[Sequence[Run]],
    low: int,
    high: int,
) -> list[Run]:
    """Returns the intersection of several lists of runs: the complement of all complements."""
    left_out = [_left_out(part, low, high) for part in parts]
    return _left_out(_either(left_out), low, high)


def _left_out(
    runs: Sequence[Run],
    low: int,
    high: int,
) -> list[Run]:
    """Returns the codes from ``low`` to ``high`` that are in no run of an ascending list."""
    gaps = []
    next_code = low
    for start, end in runs:
        if next_code < start:
            gaps.append((next_code, start - 1))
        next_code = end + 1
    if next_code <= high:
        gaps.append((next_code, high))
    return gaps


def _passes(test: Scalar, code: int | None) -> bool:
    return _evaluate(test, code) is True


def _evaluated(test: Scalar) -> int:
    """Counts the nodes of a test that are evaluated at each code: comparisons are not."""
    if isinstance(test, Not | And | Or):
        return sum(map(_evaluated, children(test)))
    if _turns(test) is not None:
        return 0
    return _nodes(test)


def _nodes(test: Scalar) -> int:
    return 1 + sum(map(_nodes, children(test)))


def _turns(test: Scalar) -> set[int] | None:
    """Returns the codes with which a test compares its column; None if it does anything else."""
    match test:
        case Constant() | IsNull(Field()):
            return set()
        case Compare(_, Field(), Constant(int(code))) | Compare(_, Constant(int(code)), Field()):
            return {code}
        case Member(Field(), codes):
            return {code for code in codes if isinstance(code, int)}
        case Not() | And() | Or():
            turns: set[int] = set()
            for child in children(test):
                inner = _turns(child)
                if inner is None:
                    return None
                turns |= inner
            return turns
        case _:
            return None


def _between(run: Run, kind: Integer | Date, raw: sql.Expression) -> sql.Expression:
    """Tests whether a stored value has a code in a run; a value beyond a bound has its code."""
    low, high = run
    tests = []
    if low > kind.lower_code:
        tests.append(raw >= _literal(low, kind))
    if high < kind.upper_code:
        tests.append(raw <= _literal(high, kind))
    test = sql.conjunction(tests)
    if test is None:
        return raw.is_present
    return sql.Paren(test)


def _literal(code: int, kind: Integer | Date) -> sql.Expression:
    """Returns the stored value of a code as a literal."""
    if isinstance(kind, Date):
        return sql.Day(str(kind.decode(code)))
    return sql.Constant(code)


def _rounded(run: Run, kind: Integer | Real, read: sql.Expression) -> sql.Expression:
    """Tests whether a number rounds, half to even, to a code in a run; see ``_between``."""
    low, high = run
    tests: list[sql.Expression] = []
    if low > kind.lower_code:
        tests.append(sql.Binary(">" if low % 2 else ">=", read, real(low - 0.5)))
    if high < kind.upper_code:
        tests.append(sql.Binary("<" if high % 2 else "<=", read, real(high + 0.5)))
    else:
        tests.append(no_nan(read))
    test = sql.conjunction(tests)
    assert test is not None, "one end is tested, or NaN"
    return sql.Paren(test)


def _any(tests: Sequence[sql.Expression]) -> sql.Expression:
    test = sql.disjunction(tests)
    if test is None:
        return sql.FALSE
    return sql.Paren(test)


def _listed(
    words: Sequence[str],
    name: str,
    source: Source,
) -> sql.Expression:
    """Tests whether the string of a stored value is one of ``words``.

    A stored integer is compared with the integers that they spell.
    """
    read: sql.Expression
    if source.is_short(name):
        read = stored(name)
        members = [sql.Constant(int(word)) for word in words if _is_short(word)]
    else:
        read = column_text(name, source)
        members = [sql.Constant(word) for word in words]
    if members:
        return sql.Paren(sql.In(read, tuple(members)))
    return sql.FALSE


def _is_short(word: str) -> bool:
    """Whether a string is an integer of 64 bits as DuckDB prints it."""
    return _NUMBER.fullmatch(word) is not None and -(2**63) <= int(word) < 2**63
