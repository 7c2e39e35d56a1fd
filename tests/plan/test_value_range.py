# SPDX-License-Identifier: Apache-2.0
"""Every value lies in the span, one operation's span is exact, and a wrong rule is caught."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.plan import value_range as ranges
from sfumato.plan.evaluate import FIRST_DAY, LAST_DAY, evaluate
from sfumato.plan.relation import Filter, PerUnit, PublicJoin, Scan, Sort, Union
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
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
    Key,
    Like,
    Lookup,
    Member,
    Not,
    Operation,
    Part,
    Quotient,
    leaves,
)
from sfumato.plan.value import Value
from sfumato.plan.value_range import confine, is_text, span
from tests.contracts.effort import examples
from tests.plan.expressions import (
    DAY,
    KIND,
    NAME,
    NUMBERS,
    ROWS,
    TESTS,
    TEXTS,
    X,
    Y,
    reader,
    values,
)


def outside(expression, row):
    found, value = ranges.span(expression), evaluate(expression, reader(row))
    return value is not None and (found is None or not found[0] <= value <= found[1])


@settings(max_examples=examples(4), deadline=None)
@given(NUMBERS, ROWS)
def test_no_row_leads_outside_the_span(expression, row):
    assert not outside(expression, row)


def column(name, low, high):
    return Column(name, sf.Integer(low, high))


# Bounds of every sign: two columns whose operations meet each corner.
BOUNDS = [(-4, -2), (-3, 0), (-2, 3), (0, 2), (1, 4)]
OF_TWO = [
    *(lambda one, other, op=op: Arithmetic(op, one, other) for op in list(Operation)[:3]),
    Quotient,
    lambda one, other: Extreme(True, (one, other)),
    lambda one, other: Extreme(False, (one, other)),
    lambda one, other: Coalesce((one, other)),
    lambda one, other: Case(((Compare(Comparison.LT, one, other), one),), other),
    lambda one, other: FloorDivide(Arithmetic(Operation.ADD, one, other), 3),
]


@pytest.mark.parametrize("make", OF_TWO)
def test_the_span_of_one_operation_is_attained(make):
    for one, other in product(BOUNDS, BOUNDS):
        expression = make(Field(column("one", *one)), Field(column("other", *other)))
        codes = [range(low, high + 1) for low, high in (one, other)]
        found = [evaluate(expression, reader({"one": a, "other": b})) for a, b in product(*codes)]
        if isinstance(expression, Coalesce):
            found += codes[1]
        reached = [value for value in found if value is not None]
        exact = (min(reached), max(reached)) if reached else None
        if isinstance(expression, Case):
            # the test is not looked into
            exact = min(one[0], other[0]), max(one[1], other[1])
        assert span(expression) == exact


@pytest.mark.parametrize("first", range(-8, 9))
def test_the_span_of_a_table_is_that_of_the_entries_in_reach(first):
    expression = Lookup(Field(X), first, (3, None, -2, 9))
    found = [
        value
        for code in values(X)[:-1]
        if (value := evaluate(expression, reader({"x": code}))) is not None
    ]
    assert span(expression) == ((min(found), max(found)) if found else None)


@pytest.mark.parametrize("node", [DatePart, DateTrunc])
@pytest.mark.parametrize("part", [Part.YEAR, Part.QUARTER, Part.MONTH, Part.WEEK, Part.DAY])
def test_the_span_of_dates(node, part):
    found = [evaluate(node(part, Field(DAY)), reader({"day": code})) for code in values(DAY)[:-1]]
    low, high = span(node(part, Field(DAY)))
    assert low <= min(found) and max(found) <= high
    if node is DateTrunc or part is Part.YEAR:
        assert (low, high) == (min(found), max(found))


@pytest.mark.parametrize(
    "expression",
    [
        Constant(None),
        Arithmetic(Operation.ADD, Constant(None), Field(X)),
        Extreme(True, (Field(X), Constant(None))),
        Quotient(Field(X), Constant(0)),
        FloorDivide(Constant(None), 2),
        Coalesce((Constant(None), Constant(None))),
        Case(((Constant(True), Constant(None)),), Constant(None)),
        Lookup(Constant(None), 0, (1,)),
        DatePart(Part.MONTH, Constant(None)),
        DateTrunc(Part.MONTH, Constant(None)),
    ],
)
def test_what_is_always_null_has_no_span(expression):
    assert span(expression) is None
    assert all(evaluate(expression, reader({"x": code})) is None for code in values(X))


WIDE = Field(column("wide", 0, 2**40))
HUGE = Arithmetic(Operation.MULTIPLY, WIDE, WIDE)
LARGEST = Arithmetic(Operation.MULTIPLY, Field(column("half", -(2**31), 2**31)), Constant(2**31))


def test_no_intermediate_result_leaves_64_bits():
    assert span(LARGEST) == (-(2**62), 2**62)
    for beyond in (HUGE, Arithmetic(Operation.ADD, LARGEST, Constant(1)), FloorDivide(HUGE, 2**30)):
        with pytest.raises(UnsupportedSql, match="62 bits") as refusal:
            span(beyond)
        assert "LEAST" in refusal.value.remedy


HIDDEN = {
    "a comparison": Compare(Comparison.GT, HUGE, Constant(0)),
    "a membership": Member(HUGE, (1,)),
    "below connectives": And((Constant(True), Not(IsNull(HUGE)))),
    "the test of a text": Like(
        Case(((Compare(Comparison.GT, HUGE, Constant(0)), Constant("a")),), Field(NAME)), "a"
    ),
    "a text's fallback": Member(
        Coalesce((Field(NAME), Case(((IsNull(HUGE), Constant("")),), Constant("a")))), ("",)
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_large_result_hides_nowhere(name, monkeypatch):
    test = HIDDEN[name]
    for refused in (
        lambda: confine(test),
        lambda: Filter(Scan("people"), test),
        lambda: span(Case(((test, Constant(1)),), Constant(0))),
    ):
        with pytest.raises(UnsupportedSql):
            refused()
    monkeypatch.setattr(ranges, "span", lambda expression: (0, 0))
    confine(test)


@given(st.one_of(TESTS, TEXTS))
def test_small_tests_are_accepted(expression):
    confine(expression)


LARGE = 2**62 + 1
CONSTANTS = {
    "constant": Constant(LARGE),
    "of a choice": Coalesce((Field(X), Constant(-LARGE))),
    "of a test": Compare(Comparison.GT, Field(X), Constant(LARGE)),
    "of a text": Case(
        ((Compare(Comparison.GT, Field(X), Constant(LARGE)), Constant("a")),), Constant("b")
    ),
    "member": Not(Member(Field(X), (0, LARGE))),
    "member of texts and codes": And((Member(Field(NAME), ("a",)), Member(Field(X), (-LARGE,)))),
    "table": Lookup(Field(X), 100, (0, LARGE)),
    "start of a table": Lookup(Field(X), LARGE, (0,)),
    "divisor": FloorDivide(Field(X), LARGE),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_no_constant_leaves_64_bits(name, monkeypatch):
    with pytest.raises(UnsupportedSql, match="62 bits"):
        confine(CONSTANTS[name])
    monkeypatch.setattr(ranges, "_LARGEST", LARGE)
    confine(CONSTANTS[name])


def test_a_constant_is_held_to_its_bits_wherever_a_plan_takes_one():
    large = Constant(LARGE)
    for make in (
        lambda: Sort(large),
        lambda: PublicJoin(Scan("t"), Scan("p"), large, X),
        lambda: Filter(Scan("t"), Member(Field(X), (LARGE,))),
        lambda: Union((Scan("t"),), ((large,),), (X,)),
        lambda: PerUnit(
            Scan("t"), ((X, Value("k", X.type, Constant(None))), (X, Value("k", X.type, large))), ()
        ),
    ):
        with pytest.raises(UnsupportedSql, match="62 bits"):
            make()


@given(TEXTS, ROWS)
def test_a_text_is_a_text_on_every_row(expression, row):
    assert is_text(expression)
    assert isinstance(evaluate(expression, reader(row)), str | None)


def test_what_is_no_text_is_told_apart():
    assert not is_text(Field(X))
    assert is_text(Case(((Constant(True), Constant("a")),), Constant("b")))
    assert is_text(Coalesce((Constant(None), Constant("a"))))
    # a choice of codes, of nothing, or of both kinds
    assert not is_text(Case(((Constant(True), Field(X)),), Constant(None)))
    assert not is_text(Coalesce((Constant(None), Constant(None))))
    assert not is_text(Coalesce((Field(NAME), Field(X))))
    assert not is_text(Compare(Comparison.EQ, Constant("a"), Constant("a")))


@pytest.mark.parametrize(
    "expression",
    [
        Field(NAME),
        Constant("a"),
        Constant(True),
        Compare(Comparison.EQ, Field(X), Field(Y)),
        IsNull(Field(X)),
        Key(0),
        Arithmetic(Operation.DIVIDE, Field(X), Field(Y)),
    ],
)
def test_what_has_no_code_has_no_span(expression):
    with pytest.raises(TypeError):
        span(expression)


@pytest.mark.parametrize("node", [DatePart, DateTrunc])
def test_days_beyond_the_calendar_are_refused(node):
    last = Field(Column("end", sf.Date("9999-01-01", "9999-12-31")))
    assert span(node(Part.YEAR, last)) is not None
    for beyond in (
        Arithmetic(Operation.ADD, last, Constant(1)),
        Constant(FIRST_DAY - 1),
        Constant(LAST_DAY + 1),
    ):
        with pytest.raises(UnsupportedSql, match="years 1 to 9999"):
            span(node(Part.WEEK, beyond))


# --- mutants ------------------------------------------------------------------------------


def ends_only(op, left, right):
    """Products bounded by the products of equal ends."""
    if op is Operation.MULTIPLY:
        return left[0] * right[0], left[1] * right[1]
    return honest_arithmetic(op, left, right)


def subtracts_ends(op, left, right):
    return (
        (left[0] - right[0], left[1] - right[1])
        if op is Operation.SUBTRACT
        else honest_arithmetic(op, left, right)
    )


def divides_ends(left, right):
    sizes = [honest_quotient(left, (each, each)) for each in right if each]
    return min(low for low, _ in sizes), max(high for _, high in sizes)


def truncated(expression):
    if isinstance(expression, FloorDivide):
        low, high = ranges.span(expression.operand)
        return int(low / expression.divisor), int(high / expression.divisor)
    return honest_of_one(expression)


def first_entry(expression):
    if isinstance(expression, Lookup):
        codes = [each for each in expression.table[:1] if each is not None]
        return min(codes), max(codes)
    return honest_of_one(expression)


def days_not_moved(expression):
    return (
        ranges.span(expression.operand)
        if isinstance(expression, DateTrunc)
        else honest_of_one(expression)
    )


def last_of(spans):
    return spans[-1]


def greatest_span(expression):
    if isinstance(expression, Extreme):
        spans = [ranges.span(each) for each in expression.operands]
        choose = max if expression.greatest else min
        return choose(spans)
    return honest_span(expression)


honest_arithmetic, honest_quotient, honest_of_one = (
    ranges._arithmetic,
    ranges._quotient,
    ranges._of_one,
)
honest_span = ranges._span
MUTANTS = {
    "products of equal ends": (
        "_arithmetic",
        ends_only,
        Arithmetic(Operation.MULTIPLY, Field(X), Field(X)),
    ),
    "differences of equal ends": (
        "_arithmetic",
        subtracts_ends,
        Arithmetic(Operation.SUBTRACT, Field(X), Field(Y)),
    ),
    "divisors at the ends alone": ("_quotient", divides_ends, Quotient(Constant(7), Field(X))),
    "division toward zero": ("_of_one", truncated, FloorDivide(Field(X), 2)),
    "the first entry alone": ("_of_one", first_entry, Lookup(Field(KIND), 0, (1, 2, 3))),
    "days left where they are": ("_of_one", days_not_moved, DateTrunc(Part.YEAR, Field(DAY))),
    "the last branch alone": ("_hull", last_of, Coalesce((Field(X), Field(Y)))),
    "the greatest span": ("_span", greatest_span, Extreme(True, (Field(X), Field(Y)))),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_caught(name, monkeypatch):
    function, broken, expression = MUTANTS[name]
    columns = list(dict.fromkeys(leaf.column for leaf in leaves(expression)))
    names = [column.name for column in columns]
    rows = [dict(zip(names, codes, strict=True)) for codes in product(*map(values, columns))]
    assert not any(outside(expression, row) for row in rows)
    monkeypatch.setattr(ranges, function, broken)
    assert any(outside(expression, row) for row in rows)
