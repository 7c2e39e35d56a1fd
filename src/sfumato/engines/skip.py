# SPDX-License-Identifier: Apache-2.0
"""Tests of one column, asked of what is stored: DuckDB can then skip rows before it reads the rest of them.

A test of a code is a test of the stored value, for the code is made from it alone: a category
has the code of its text, a number or a day the nearest code within its range. Proof: skip.proof.md.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from sfumato.engines.reading import Source, column_text, no_nan, quote, reading, text
from sfumato.metadata.column import Boolean, Category, Column, Date, Integer, Real, Text
from sfumato.plan.aggregate import read_value
from sfumato.plan.evaluate import evaluate
from sfumato.plan.relation import Filter, PerUnit, PublicJoin, Ranked, Relation, Scan, Semi, Union, UnitJoin
from sfumato.plan.scalar import And, Compare, Constant, Field, IsNull, Member, Not, Or, Scalar, children, leaves
from sfumato.plan.scope import expressions, nodes
from sfumato.plan.status import Raw

# A test that does more than compare is evaluated at each code, of so few.
_FEW = 2**10
# What is passed in more pieces than these is not asked of stored numbers.
_PIECES = 8
# Codes below this are in steps, and halves of them are floats.
_EXACT = 2**51

# A whole number as DuckDB prints it.
_NUMBER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)

Tests: TypeAlias = dict[str, tuple[str, ...]]
Run: TypeAlias = tuple[int, int]


def split(relation: Relation, sources: Mapping[str, Source]) -> tuple[Relation, Tests]:
    """The relation without the tests that can be asked of stored values, and these, by the column that they read.

    The name of a column is unique in a relation, so it tells which table is asked.

    Guarantees:
        a row passes the stored test where it passes the test of its code
    """
    match relation:
        case Scan():
            return relation, {}
        case Filter(source, predicate):
            return _split_filter(source, predicate, sources)
        case PublicJoin() | PerUnit() | Ranked():
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
            parts = [split(each, sources) for each in relation.sources]
            every = {name: listed for _, tests in parts for name, listed in tests.items()}
            return replace(relation, sources=tuple(each for each, _ in parts)), every


def _split_filter(source: Relation, predicate: Scalar, sources: Mapping[str, Source]) -> tuple[Relation, Tests]:
    inner, tests = split(source, sources)
    scan, rest = _source(source), []
    for each in conjuncts(predicate):
        column = None if scan is None else _only_column(each, scan)
        found = None if scan is None or column is None else stored_test(each, column, scan, sources[scan.table])
        if found is None or column is None:
            rest.append(each)
        else:
            tests[column.name] = (*tests.get(column.name, ()), found)
    if not rest:
        return inner, tests
    return Filter(inner, rest[0] if len(rest) == 1 else And(tuple(rest))), tests


def _source(relation: Relation) -> Scan | None:
    """The table each row of which is decided upon by itself: a row that a later test drops can be dropped there."""
    match relation:
        case Scan():
            return relation
        case Filter() | PublicJoin() | UnitJoin() | Semi():
            return _source(relation.source)
        case _:
            return None


def names_read(raw: Raw) -> frozenset[str]:
    """The columns that a question reads, in its relation or of its rows."""
    values = [key.value for key in raw.keys] + [read_value(each) for each in raw.aggregates]
    found = {leaf for value in values if value is not None for leaf in leaves(value.expression)}
    names = set()
    for each in nodes(raw.relation):
        readers = [reader for _, several in expressions(each) for reader in several]
        if isinstance(each, Ranked):
            readers += each.ties
        if isinstance(each, PublicJoin):
            names |= {column.name for column in (*each.table.columns, each.right)}
        found |= {leaf for reader in readers for leaf in leaves(reader)}
    return frozenset(names | {leaf.column.name for leaf in found if isinstance(leaf, Field)})


def conjuncts(predicate: Scalar) -> Iterator[Scalar]:
    """The tests that have to pass, all of them, for a predicate to pass."""
    if isinstance(predicate, And):
        for each in predicate.operands:
            yield from conjuncts(each)
    else:
        yield predicate


def _only_column(test: Scalar, scan: Scan) -> Column | None:
    """The column of a table, where a test reads it and nothing else."""
    read = {leaf.column for leaf in leaves(test) if isinstance(leaf, Field)}
    return next((column for column in scan.columns if read == {column}), None)


def stored_test(test: Scalar, column: Column, scan: Scan, source: Source) -> str | None:
    """SQL over the stored column that is TRUE where the test of its code is; None: there is no simple one."""
    kind, name = column.type, column.name.removeprefix(scan.prefix)
    if source.coded or isinstance(kind, Text):
        return None
    runs = passing(test, kind)
    if runs is None:
        return None
    if isinstance(kind, Category | Boolean):
        return _listed([word for word, code in kind.texts() if _within(code, runs)], name, source)
    if isinstance(kind, Integer | Real) and source.family(name) == "float":
        exact = max(abs(kind.lower_code), abs(kind.upper_code)) < _EXACT and len(runs) <= _PIECES
        return _any([_rounded(run, kind, reading(name, kind, source)) for run in runs]) if exact else None
    if isinstance(kind, Real):
        return None
    fits = source.is_short(name) if isinstance(kind, Integer) else source.types[name].upper() == "DATE"
    if not fits or len(runs) > _PIECES:
        return None
    found = _any([_between(run, kind, quote(name)) for run in runs])
    if not kind.missing:
        return found
    markers = ", ".join(text(marker) for marker in kind.missing)
    return f"({found} AND {column_text(name, source)} NOT IN ({markers}))"


def passing(test: Scalar, kind: Integer | Real | Date | Category | Boolean) -> list[Run] | None:
    """The runs of codes at which a test of one column is TRUE; None: too many to see, or it is TRUE of NULL."""
    low, high = kind.lower_code, kind.upper_code
    turns = _turns(test)
    if (turns is None and kind.size > _FEW) or _passes(test, None):
        return None
    # between two neighbours of these the test is what it is at both
    seen: Sequence[int] = range(low, high + 1)
    if turns is not None:
        near = {code + off for code in turns for off in (-1, 0, 1)}
        seen = sorted({low, high, *(code for code in near if low <= code <= high)})
    runs: list[Run] = []
    for code, before in zip(seen, (None, *seen), strict=False):
        if not _passes(test, code):
            continue
        if runs and runs[-1][1] == before:
            runs[-1] = (runs[-1][0], code)
        else:
            runs.append((code, code))
    return runs


def _passes(test: Scalar, code: int | None) -> bool:
    return evaluate(test, lambda leaf: code) is True


def _turns(test: Scalar) -> set[int] | None:
    """The codes with which a test compares its column; None: it does something else with it."""
    match test:
        case Constant() | IsNull(Field()):
            return set()
        case Compare(_, Field(), Constant(int(code))) | Compare(_, Constant(int(code)), Field()):
            return {code}
        case Member(Field(), codes):
            return {code for code in codes if isinstance(code, int)}
        case Not() | And() | Or():
            inner = [_turns(each) for each in children(test)]
            known = [each for each in inner if each is not None]
            return set().union(*known) if len(known) == len(inner) else None
        case _:
            return None


def _within(code: int, runs: Sequence[Run]) -> bool:
    return any(low <= code <= high for low, high in runs)


def _between(run: Run, kind: Integer | Date, raw: str) -> str:
    """A run of codes as stored values: what lies beyond a bound has the code of the bound."""
    low, high = (f"DATE '{kind.decode(code)}'" if isinstance(kind, Date) else str(code) for code in run)
    tests = [f"{raw} >= {low}"] * (run[0] > kind.lower_code) + [f"{raw} <= {high}"] * (run[1] < kind.upper_code)
    return f"({' AND '.join(tests)})" if tests else f"{raw} IS NOT NULL"


def _rounded(run: Run, kind: Integer | Real, read: str) -> str:
    """A run of codes as the numbers that are rounded to them, half to even; of those beyond a bound see ``_between``."""
    low, high = run
    tests = [f"{read} {'>' if low % 2 else '>='} {low - 0.5!r}::DOUBLE"] * (low > kind.lower_code)
    below = f"{read} {'<' if high % 2 else '<='} {high + 0.5!r}::DOUBLE"
    return f"({' AND '.join([*tests, below if high < kind.upper_code else no_nan(read)])})"


def _any(tests: Sequence[str]) -> str:
    return f"({' OR '.join(tests)})" if tests else "FALSE"


def _listed(words: Sequence[str], name: str, source: Source) -> str:
    """Whether the text of a stored value is one of these; of whole numbers, whether it is one of the numbers meant."""
    if source.is_short(name):
        meant = [word for word in words if _NUMBER.fullmatch(word) and -(2**63) <= int(word) < 2**63]
        return f"({quote(name)} IN ({', '.join(meant)}))" if meant else "FALSE"
    return f"({column_text(name, source)} IN ({', '.join(map(text, words))}))" if words else "FALSE"
