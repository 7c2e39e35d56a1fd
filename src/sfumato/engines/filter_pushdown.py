# SPDX-License-Identifier: Apache-2.0
"""Tests of one column, asked of what is stored: DuckDB can then skip rows before it reads the rest of them.

A test of a code is a test of the stored value, for the code is made from it alone: a category
has the code of its text, a number or a day the nearest code within its range. Proof: filter_pushdown.proof.md.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from sfumato.engines.value_sql import Source, column_text, no_nan, quote, reading, text
from sfumato.errors import unknown
from sfumato.metadata.column import Boolean, Category, Column, Date, Integer, Real, Text
from sfumato.plan.aggregate import read_value
from sfumato.plan.evaluate import evaluate
from sfumato.plan.relation import (
    Filter,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Union,
    UnitJoin,
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

# A test that does more than compare is evaluated at each code, of so few.
_FEW = 2**10
# So many nodes are evaluated at codes, of a whole test; one that takes more is left where it is.
_STEPS = 2**14
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
        case _:
            raise unknown(relation)


def _split_filter(
    source: Relation, predicate: Scalar, sources: Mapping[str, Source]
) -> tuple[Relation, Tests]:
    inner, tests = split(source, sources)
    scan, rest = _source(source), []
    for each in conjuncts(predicate):
        column = None if scan is None else _only_column(each, scan)
        found = (
            None
            if scan is None or column is None
            else stored_test(each, column, scan, sources[scan.table])
        )
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
        case PerUnit() | Ranked() | Union():
            return None
        case _:
            raise unknown(relation)


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
        passed = {code for low, high in runs for code in range(low, high + 1)}
        return _listed([word for word, code in kind.texts() if code in passed], name, source)
    if isinstance(kind, Integer | Real) and source.family(name) == "float":
        exact = max(abs(kind.lower_code), abs(kind.upper_code)) < _EXACT and len(runs) <= _PIECES
        return (
            _any([_rounded(run, kind, reading(name, kind, source)) for run in runs])
            if exact
            else None
        )
    if isinstance(kind, Real):
        return None
    fits = (
        source.is_short(name) if isinstance(kind, Integer) else source.types[name].upper() == "DATE"
    )
    if not fits or len(runs) > _PIECES:
        return None
    found = _any([_between(run, kind, quote(name)) for run in runs])
    if not kind.missing:
        return found
    markers = ", ".join(text(marker) for marker in kind.missing)
    return f"({found} AND {column_text(name, source)} NOT IN ({markers}))"


def passing(test: Scalar, kind: Integer | Real | Date | Category | Boolean) -> list[Run] | None:
    """The runs of codes at which a test of one column is TRUE; None: too many to see, or it is TRUE of NULL."""
    if kind.size > _FEW and _turns(test) is None:
        return None
    if _evaluated(test) * kind.size > _STEPS or _passes(test, None):
        return None
    truth = _truth(test, kind.lower_code, kind.upper_code)
    return None if truth is None else truth[0]


def _truth(test: Scalar, low: int, high: int) -> tuple[list[Run], list[Run]] | None:
    """The runs of codes at which a test is TRUE, and at which it is FALSE (else NULL); None: it is no test everywhere."""
    match test:
        case Not(inner):
            found = _truth(inner, low, high)
            return None if found is None else found[::-1]
        case And(operands) | Or(operands):
            parts = [
                each for operand in operands if (each := _truth(operand, low, high)) is not None
            ]
            if len(parts) < len(operands):
                return None
            true, false = [each for each, _ in parts], [each for _, each in parts]
            if isinstance(test, And):
                return _shared(true, low, high), _either(false)
            return _either(true), _shared(false, low, high)
        case Member(Field(), codes) if all(isinstance(code, int) for code in codes):
            runs = _either(
                [[(code, code)] for code in codes if isinstance(code, int) and low <= code <= high]
            )
            return runs, _left_out(runs, low, high)
        case _:
            return _asked(test, low, high)


def _asked(test: Scalar, low: int, high: int) -> tuple[list[Run], list[Run]] | None:
    """``_truth`` of a test that is asked where it can change: between two neighbours of its constants it cannot."""
    turns = _turns(test)
    seen: Sequence[int] = range(low, high + 1)
    if turns is not None:
        near = {code + off for code in turns for off in (-1, 0, 1)}
        seen = sorted({low, high, *(code for code in near if low <= code <= high)})
    values = [evaluate(test, lambda leaf, code=code: code) for code in seen]  # type: ignore[misc]
    if not all(value is None or isinstance(value, bool) for value in values):
        return None
    runs: dict[object, list[Run]] = {True: [], False: [], None: []}
    for place, (code, value) in enumerate(zip(seen, values, strict=True)):
        listed = runs[value]
        same = place > 0 and values[place - 1] is value
        listed.append((listed.pop()[0], code) if same else (code, code))
    return runs[True], runs[False]


def _either(parts: Sequence[Sequence[Run]]) -> list[Run]:
    """The codes that are in some of several lists of runs."""
    merged: list[Run] = []
    for low, high in sorted(chain.from_iterable(parts)):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged


def _shared(parts: Sequence[Sequence[Run]], low: int, high: int) -> list[Run]:
    """The codes that are in all of several lists of runs: not in what some of them leave out."""
    return _left_out(_either([_left_out(each, low, high) for each in parts]), low, high)


def _left_out(runs: Sequence[Run], low: int, high: int) -> list[Run]:
    """The codes of a range that are in no run of an ascending list."""
    ends = [low - 1, *(end for _, end in runs)]
    starts = [*(start for start, _ in runs), high + 1]
    return [
        (end + 1, start - 1) for end, start in zip(ends, starts, strict=True) if end + 1 < start
    ]


def _passes(test: Scalar, code: int | None) -> bool:
    return evaluate(test, lambda leaf: code) is True


def _evaluated(test: Scalar) -> int:
    """How many nodes of a test are evaluated at every code: those of what does more than compare."""
    if isinstance(test, Not | And | Or):
        return sum(map(_evaluated, children(test)))
    return 0 if _turns(test) is not None else _nodes(test)


def _nodes(test: Scalar) -> int:
    return 1 + sum(map(_nodes, children(test)))


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
            turns: set[int] = set()
            for each in children(test):
                inner = _turns(each)
                if inner is None:
                    return None
                turns |= inner
            return turns
        case _:
            return None


def _between(run: Run, kind: Integer | Date, raw: str) -> str:
    """A run of codes as stored values: what lies beyond a bound has the code of the bound."""
    low, high = (
        f"DATE '{kind.decode(code)}'" if isinstance(kind, Date) else str(code) for code in run
    )
    tests = [f"{raw} >= {low}"] * (run[0] > kind.lower_code) + [f"{raw} <= {high}"] * (
        run[1] < kind.upper_code
    )
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
        meant = [
            word for word in words if _NUMBER.fullmatch(word) and -(2**63) <= int(word) < 2**63
        ]
        return f"({quote(name)} IN ({', '.join(meant)}))" if meant else "FALSE"
    return f"({column_text(name, source)} IN ({', '.join(map(text, words))}))" if words else "FALSE"
