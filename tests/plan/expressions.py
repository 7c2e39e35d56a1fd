# SPDX-License-Identifier: Apache-2.0
"""Random expressions of every node, the rows that they are read of, and SQLite as their oracle."""

import sqlite3

from hypothesis import strategies as st

import sfumato as sf
from sfumato.metadata.column import Column
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    ChangeCase,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    DatePart,
    DateTrunc,
    Extreme,
    Field,
    FloorDivide,
    IsNull,
    Like,
    Lookup,
    Member,
    Not,
    Operation,
    Or,
    Part,
    Quotient,
    Substring,
    Trim,
)

X = Column("x", sf.Integer(-5, 7))
Y = Column("y", sf.Integer(0, 3))
SHARE = Column("share", sf.Real(-1, 2, step="0.5"))
KIND = Column("kind", sf.Category("a", "b", "c"))
YES = Column("yes", sf.Boolean())
DAY = Column("day", sf.Date("1969-11-28", "1970-01-05"))
NAME = Column("name", sf.Text())
COLUMNS = (X, Y, SHARE, KIND, YES, DAY, NAME)
TEXTS_OF_ROWS = ("", "a", "ab", "A", "a_", "50%", "ä")

SMALL = st.integers(-3, 4)
WHOLE = [Part.YEAR, Part.QUARTER, Part.MONTH, Part.WEEK, Part.DAY]
EXACT = (Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY)


def pairs(inner):
    return st.lists(inner, min_size=2, max_size=3).map(tuple)


def branches(tests, results):
    return st.lists(st.tuples(tests, results), min_size=1, max_size=2).map(tuple)


LEAVES = st.one_of(
    st.sampled_from([Field(column) for column in (X, Y, SHARE, KIND, YES, DAY)]),
    st.one_of(SMALL, st.none()).map(Constant),
)
DAYS = st.sampled_from(
    [Field(DAY), Arithmetic(Operation.ADD, Field(DAY), Field(Y)), Constant(None)]
)
TABLES = st.lists(st.one_of(SMALL, st.none()), max_size=4).map(tuple)
WORDS = st.one_of(
    st.just(Field(NAME)),
    st.sampled_from(["", "a", "Ab", "b"]).map(Constant),
    st.just(Constant(None)),
)
NAMES = st.one_of(
    WORDS,
    st.builds(Trim, st.one_of(WORDS, st.just(Constant("  a b "))), st.booleans(), st.booleans()),
    st.tuples(st.just(Field(NAME)), WORDS).map(Coalesce),
    st.builds(
        Case,
        st.tuples(st.tuples(st.just(IsNull(Field(X))), st.just(Field(NAME)))),
        WORDS,
    ),
    st.builds(ChangeCase, WORDS, st.booleans()),
    st.builds(Substring, WORDS, st.integers(1, 3), st.integers(0, 2)),
)


def numbers(depth):
    if not depth:
        return LEAVES
    inner, tests = numbers(depth - 1), truths(depth - 1)
    return st.one_of(
        LEAVES,
        st.builds(Arithmetic, st.sampled_from(EXACT), inner, inner),
        st.builds(Quotient, inner, inner),
        st.builds(FloorDivide, inner, st.integers(1, 4)),
        st.builds(Extreme, st.booleans(), pairs(inner)),
        st.builds(Coalesce, pairs(inner)),
        st.builds(Case, branches(tests, inner), inner),
        st.builds(Lookup, inner, SMALL, TABLES),
        st.builds(DatePart, st.sampled_from(Part), DAYS),
        st.builds(DateTrunc, st.sampled_from(WHOLE), DAYS),
    )


def truths(depth):
    basic = st.one_of(
        st.one_of(st.booleans(), st.none()).map(Constant),
        st.builds(IsNull, st.one_of(LEAVES, NAMES)),
        st.builds(Compare, st.sampled_from(Comparison), LEAVES, LEAVES),
    )
    if not depth:
        return basic
    inner, amounts = truths(depth - 1), numbers(depth - 1)
    return st.one_of(
        basic,
        st.builds(Compare, st.sampled_from(Comparison), amounts, LEAVES),
        st.builds(Compare, st.sampled_from(Comparison), NAMES, NAMES),
        st.builds(
            Member,
            amounts,
            st.lists(SMALL, max_size=3).map(lambda found: tuple(sorted(set(found)))),
        ),
        st.builds(Member, NAMES, st.just(("A", "a"))),
        st.builds(Like, NAMES, st.sampled_from(["", "%", "a%", "_", "%a_", "50%"])),
        st.builds(Not, inner),
        st.builds(And, pairs(inner)),
        st.builds(Or, pairs(inner)),
    )


NUMBERS, TEXTS, TESTS = numbers(3), NAMES, truths(3)


def values(column):
    """Every code, or some texts, and NULL."""
    kind = column.type
    if column is NAME:
        return (*TEXTS_OF_ROWS, None)
    return (*range(kind.lower_code, kind.upper_code + 1), None)


ROWS = st.fixed_dictionaries({column.name: st.sampled_from(values(column)) for column in COLUMNS})


def reader(row):
    return lambda leaf: row[leaf.column.name]


# --- SQLite: truncating division, NULL from a zero divisor, MIN and MAX that NULL spreads through -


def sqlite_value(expression, row):
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA case_sensitive_like = ON")
    try:
        cells = ", ".join(f":{name} AS {name}" for name in row)
        return connection.execute(
            f"SELECT {sql(expression)} FROM (SELECT {cells})", row
        ).fetchone()[0]
    finally:
        connection.close()


def sql(expression):
    match expression:
        case Field(column):
            return column.name
        case Constant(value):
            return (
                {None: "NULL", True: "1", False: "0"}.get(value, repr(value))
                if value != ""
                else "''"
            )
        case Arithmetic(op, left, right) | Compare(op, left, right):
            return f"({sql(left)} {op.value} {sql(right)})"
        case Quotient(left, right):
            return f"({sql(left)} / {sql(right)})"
        case FloorDivide(operand, divisor):
            return f"CAST(floor({sql(operand)} / {divisor}.0) AS INTEGER)"
        case Extreme(greatest, operands):
            return f"{'max' if greatest else 'min'}({', '.join(map(sql, operands))})"
        case Coalesce(operands):
            return f"coalesce({', '.join(map(sql, operands))})"
        case Case(options, otherwise):
            tests = " ".join(f"WHEN {sql(test)} THEN {sql(result)}" for test, result in options)
            return f"(CASE {tests} ELSE {sql(otherwise)} END)"
        case Lookup(operand, first, table):
            entries = " ".join(
                f"WHEN {first + place} THEN {sql(Constant(code))}"
                for place, code in enumerate(table)
            )
            return (
                f"(CASE {sql(operand)} {entries} ELSE NULL END)"
                if table
                else f"({sql(operand)} + NULL)"
            )
        case And(operands) | Or(operands):
            return "(" + f" {type(expression).__name__.upper()} ".join(map(sql, operands)) + ")"
        case Not(operand):
            return f"(NOT {sql(operand)})"
        case IsNull(operand):
            return f"({sql(operand)} IS NULL)"
        case Member(operand, found):
            # SQLite alone says FALSE of NULL IN ()
            test = f"{sql(operand)} IN ({', '.join(map(repr, found))})" if found else "0"
            return f"(CASE WHEN {sql(operand)} IS NULL THEN NULL ELSE {test} END)"
        case Like(operand, pattern):
            return f"({sql(operand)} LIKE {pattern!r})"
        case ChangeCase(operand, upper):
            return f"{'upper' if upper else 'lower'}({sql(operand)})"
        case Substring(operand, start, length):
            return f"substr({sql(operand)}, {start}, {length})"
        case Trim(operand, start, end):
            trimmed = f"ltrim({sql(operand)}, ' ')" if start else sql(operand)
            return f"rtrim({trimmed}, ' ')" if end else trimmed
        case DatePart(part, operand):
            return part_of(part, f"date({sql(operand)} * 86400, 'unixepoch')")
        case DateTrunc(part, operand):
            return trunc_of(part, sql(operand))


def part_of(part, date):
    month = f"CAST(strftime('%m', {date}) AS INTEGER)"
    weekday = f"((CAST(strftime('%w', {date}) AS INTEGER) + 6) % 7 + 1)"
    # the week of a day is that of its Thursday, counted from the year's first
    thursday = f"date({date}, '-3 days', 'weekday 4')"
    return {
        Part.YEAR: f"CAST(strftime('%Y', {date}) AS INTEGER)",
        Part.QUARTER: f"(({month} + 2) / 3)",
        Part.MONTH: month,
        Part.WEEK: f"((CAST(strftime('%j', {thursday}) AS INTEGER) - 1) / 7 + 1)",
        Part.DAY: f"CAST(strftime('%d', {date}) AS INTEGER)",
        Part.WEEKDAY: weekday,
    }[part]


def trunc_of(part, code):
    date = f"date({code} * 86400, 'unixepoch')"
    first = {
        Part.YEAR: f"date({date}, 'start of year')",
        Part.QUARTER: f"date({date}, 'start of month', '-' || ((strftime('%m', {date}) - 1) % 3) || ' months')",
        Part.MONTH: f"date({date}, 'start of month')",
        Part.WEEK: f"date({date}, '-6 days', 'weekday 1')",
        Part.DAY: date,
    }[part]
    return f"CAST(julianday({first}) - 2440587.5 AS INTEGER)"
