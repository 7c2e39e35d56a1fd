# SPDX-License-Identifier: Apache-2.0
"""Statements of the grammar without noise, against plain DuckDB: how far they may be apart, and
what is.

What is not compared, or not exactly, and why:

* a statement that is refused has no answer, and one with a line of ``bias`` about a test or a
  divisor says
  itself that it may be decided otherwise;
* constants whose product overflows in plain DuckDB, which then gives no answer;
* a value may differ by the rounding that the plan states, or a millionth of its range, and by what
  floats lose;
* a column without a declared step is read on steps of its range, half of which each value may be
  off;
* a sum of no rows is 0 here and NULL in DuckDB, for whether there is a row is private;
* a quantile is one row's value here, so it is DuckDB's discrete one, up to half a leaf; which leaf
  the noise selects is
  shown by the tests of the mechanism (grid.proof.md), and MIN and MAX are quantiles of 0.5%;
* a NULL among the operands decides LEAST and GREATEST here, and is skipped by DuckDB;
* rows whose key is NULL are in no group unless the declaration says ``missing=``, so plain
  statements leave them out;
* limits do not bind, for what they change is stated as bias and not as a number; groups that are
  not declared are left to
  the tests of thresholds, which decide which of them are shown.
"""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from random import Random

import duckdb

from sfumato.engines.duckdb import DuckDB
from sfumato.errors import Refused
from sfumato.metadata.column import Category, Text
from sfumato.plan.aggregate import Quantiles, Variance
from sfumato.plan.question import Question
from sfumato.plan.scalar import Estimate, Field, leaves
from sfumato.privacy.distance import Norm
from sfumato.query.estimate import TOTAL
from sfumato.query.table import Group
from sfumato.sql import understand
from tests.contracts.grammar import Statement, Writer
from tests.contracts.random_tables import LETTERS, World, world
from tests.contracts.unnoised import rows_unnoised

# What a value may be off by without a word: this part of its range; and what floats lose.
_UNTOLD, _FLOATS = Fraction(1, 10**6), Fraction(1, 10**10)


@dataclass
class Found:
    """What a run has seen."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def compare(seed: int, worlds: int, each: int) -> Found:
    """So many statements over so many random tables, in both norms."""
    found = Found()
    for place in range(worlds):
        random = Random(seed * 1_000_003 + place)
        here = world(random)
        with closing(here.plain), closing(DuckDB(here.dataset.tables)) as engine:
            for _ in range(each):
                _compare_one(
                    found,
                    here,
                    engine,
                    Writer(random, here).statement(),
                    random.choice(list(_NORMS)),
                )
    return found


_NORMS = (Norm.L1, Norm.L2)


def _compare_one(
    found: Found, here: World, engine: DuckDB, statement: Statement, norm: Norm
) -> None:
    try:
        question = understand(statement.ours, here.dataset)
        cells = rows_unnoised(question, here.dataset, engine, norm)
    except Refused as refusal:
        found.counts[f"refused: {str(refusal).splitlines()[0][:60]}"] += 1
        return
    if question.bias:
        found.counts["a test is told to be uncertain"] += 1
        return
    try:
        plain = here.plain.execute(statement.plain).fetchall()
    except duckdb.OutOfRangeException:
        found.counts["constants that plain DuckDB cannot multiply"] += 1
        return
    found.counts["compared"] += 1
    rows = {row[: statement.keys]: row[statement.keys :] for row in plain}
    lacking = rows.keys() - {_shown(question, codes) for codes, _ in cells}
    if lacking:
        found.wrong.append(f"{statement.ours}\n  no row for {lacking}")
    for codes, ours in cells:
        key = _shown(question, codes)
        count, *theirs = rows.get(key, (0, *[None] * len(ours)))
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if not _agree(question, place, statement.kinds[place], int(count), (one, other)):
                shown = one if one is None else float(one)
                found.wrong.append(
                    f"{statement.ours}\n  {key}, column {place}: {shown} where DuckDB has {other}"
                )


def _is_decimal(leaf: object) -> bool:
    return isinstance(leaf, Field) and leaf.column.name == "z"


def _shown(question: Question, codes: Group) -> tuple[object, ...]:
    """The keys of a row as DuckDB has them: NULL where a grouping set has no such key."""
    kinds = [key.value.type for key in question.raw.keys]
    keys: list[object] = []
    for kind, code in zip(kinds, codes, strict=True):
        if isinstance(kind, Category) and isinstance(code, int):
            keys.append(LETTERS[code])
        else:
            keys.append(None if code is TOTAL else code)
    return tuple(keys)


def _agree(
    question: Question, place: int, kind: str, count: int, cells: tuple[Fraction | None, object]
) -> bool:
    one, other = cells
    if kind in ("rows", "count"):
        return (one or 0) == (other or 0)
    if other is None or not isfinite(other):
        # nothing of a sum is 0
        return not one
    if one is None:
        return False
    return abs(one - Fraction(other)) <= allowed(question, place) * (count if kind == "sum" else 1)


def allowed(question: Question, place: int) -> Fraction:
    """How far a value may be off: what is told, or a millionth of its range.

    And what floats lose of it.
    """
    expression = question.output.items[place].expression
    assert isinstance(expression, Estimate), "a column of the grammar is an aggregate"
    aggregate = question.raw.aggregates[expression.index]
    value = aggregate.read
    assert value is not None and not isinstance(value.type, Text), "asked of numbers"
    width = (value.type.upper_code - value.type.lower_code) * value.type.step
    largest = max(abs(value.type.upper_code), abs(value.type.lower_code)) * value.type.step
    told = (
        value.rounding if value.rounding > width * _UNTOLD else min(value.rounding, width * _UNTOLD)
    )
    # decimals on a lattice that nobody declared, of which every answer says that they are rounded
    told += max(
        (each.column.type.step / 2 for each in leaves(value.expression) if _is_decimal(each)),
        default=0,
    )
    if isinstance(aggregate, Quantiles):
        # the middle of a leaf stands for all of its codes
        told += Fraction(aggregate.coarse - 1, 2) * value.type.step
    if isinstance(aggregate, Variance):
        told += aggregate.reading(1).rounding
        # the square root of what floats lose of a square
        return told + (width + largest) / 10**5
    return told + largest * _FLOATS
