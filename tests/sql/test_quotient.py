# SPDX-License-Identifier: Apache-2.0
"""A comparison of a quotient says of every row what exact fractions say."""

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Comparison, compares
from sfumato.plan.value_range import confine
from sfumato.sql import quotient, understand
from sfumato.sql.quotient import against, between
from sfumato.sql.typed import Number, Ratio, read
from tests.contracts.effort import examples

KINDS = st.sampled_from(
    [
        sf.Integer(0, 9), sf.Integer(-4, 5), sf.Integer(-9, -2), sf.Integer(1, 10**6), sf.Integer(0, 10**5), sf.Integer(0, 2**52),
        sf.Real(-2, 3, step="0.25"), sf.Real(0, 100, step="0.01"), sf.Real(0, 1),
    ]
)  # fmt: skip
OPERATORS = st.sampled_from(list(Comparison))
CONSTANTS = st.one_of(
    st.fractions(-3, 3, max_denominator=12),
    st.decimals(-2, 2, places=16).map(Fraction),
    st.sampled_from(
        [
            Fraction(0),
            Fraction(10**40),
            Fraction(-1, 10**30),
            Fraction(3, 200),
            Fraction("0.3333333333"),
        ]
    ),
)


def column(name, kind):
    return read(Column(name, kind))


def codes_of(kind):
    return st.one_of(
        st.none(),
        st.integers(kind.lower_code, kind.upper_code),
        st.sampled_from([kind.lower_code, kind.upper_code]),
    )


def value(row, test):
    return evaluate(test, lambda leaf: row[leaf.column.name])


def exact(row, ratio):
    one, other = (row[each.expression.column.name] for each in (ratio.above, ratio.below))
    return (
        None
        if one is None or not other
        else Fraction(one * ratio.above.step) / (other * ratio.below.step)
    )


def agrees(row, op, ratio, constant):
    found = exact(row, ratio)
    return value(row, against(op, ratio, constant)) is (
        None if found is None else compares(op, found, constant)
    )


@settings(deadline=None, max_examples=examples(4))
@given(st.data(), KINDS, KINDS, OPERATORS)
def test_a_quotient_compares_with_a_constant_as_the_exact_numbers_do(data, one, other, op):
    ratio = Ratio(column("a", one), column("b", other))
    row = {"a": data.draw(codes_of(one)), "b": data.draw(codes_of(other))}
    # the very quotient is the constant at which a comparison can go wrong
    near = exact(row, ratio) or Fraction(0)
    constant = data.draw(st.one_of(CONSTANTS, st.just(near), st.just(near + Fraction(1, 10**9))))
    assume(
        constant.limit_denominator(10**9) == constant
        or max(other.upper_code, -other.lower_code) < 2**31
    )
    confine(against(op, ratio, constant))
    assert agrees(row, op, ratio, constant)


@settings(deadline=None, max_examples=examples(4))
@given(st.data(), st.tuples(KINDS, KINDS, KINDS, KINDS), OPERATORS)
def test_two_quotients_compare_as_the_exact_numbers_do(data, kinds, op):
    one, other = (
        Ratio(column(f"a{at}", kinds[at]), column(f"b{at}", kinds[at + 2])) for at in (0, 1)
    )
    row = {
        f"{name}{at}": data.draw(codes_of(kinds[at + 2 * (name == "b")]))
        for name in "ab"
        for at in (0, 1)
    }
    test = between(
        op, *(Number(each.above.expression, Fraction(1), ratio=each) for each in (one, other))
    )
    assume(test is not None)
    confine(test)
    left, right = exact(row, one), exact(row, other)
    assert value(row, test) is (
        None if left is None or right is None else compares(op, left, right)
    )


@settings(deadline=None)
@given(st.data(), KINDS, KINDS, OPERATORS)
def test_a_quotient_compares_with_a_column(data, one, other, op):
    ratio, third = Ratio(column("a", one), column("b", other)), column("c", sf.Integer(-5, 5))
    row = {
        "a": data.draw(codes_of(one)),
        "b": data.draw(codes_of(other)),
        "c": data.draw(st.integers(-5, 5)),
    }
    test = between(op, Number(ratio.above.expression, Fraction(1), ratio=ratio), third)
    assume(test is not None)
    found = exact(row, ratio)
    assert value(row, test) is (None if found is None else compares(op, found, row["c"]))


@pytest.mark.parametrize("op", [Comparison.GE, Comparison.LT, Comparison.EQ])
def test_a_constant_that_is_rounded_is_noticed(monkeypatch, op):
    ratio = Ratio(column("a", sf.Integer(0, 10**5)), column("b", sf.Integer(0, 10**6)))
    rows = [{"a": 3, "b": shown} for shown in (199, 200, 201)]
    assert all(agrees(each, op, ratio, Fraction(3, 200)) for each in rows)
    honest = quotient.floored
    monkeypatch.setattr(
        quotient, "floored", lambda below, value: honest(below, value.limit_denominator(100))
    )
    assert not all(agrees(each, op, ratio, Fraction(3, 200)) for each in rows)


COLUMNS = {"clicks": sf.Integer(0, 10**5), "shown": sf.Integer(0, 10**6)}
DATA = Dataset("ads", {"ads": sf.Table("ads.csv", columns=COLUMNS)})


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("clicks / NULLIF(shown, 0) > 0.015", lambda a, b: 200 * a > 3 * b),
        ("100 * clicks / NULLIF(shown, 0) >= 1.5", lambda a, b: 200 * a >= 3 * b),
        ("-clicks / NULLIF(shown, 0) * 100 <= -1.5", lambda a, b: 200 * a >= 3 * b),
        ("1 - clicks / NULLIF(shown, 0) < 0.985", lambda a, b: 200 * a > 3 * b),
        ("0.015 < clicks / NULLIF(shown, 0)", lambda a, b: 200 * a > 3 * b),
        ("clicks / NULLIF(shown, 0) = 0.015", lambda a, b: 200 * a == 3 * b),
        (
            "clicks / NULLIF(shown, 0) BETWEEN 0.01 AND 0.015",
            lambda a, b: 100 * a >= b and 200 * a <= 3 * b,
        ),
        ("clicks / NULLIF(shown, 0) IN (0.015, 0.5)", lambda a, b: 200 * a == 3 * b or 2 * a == b),
    ],
)
def test_a_rate_in_a_test_is_exact(text, meant):
    test = understand(f"SELECT COUNT(*) FROM ads WHERE {text}", DATA).raw.relation.predicate
    for clicks, shown in [
        (3, 200),
        (2, 200),
        (4, 200),
        (15, 1000),
        (14, 1000),
        (16, 1000),
        (10**5, 10**6),
        (1, 2),
        (0, 7),
    ]:
        assert value({"clicks": clicks, "shown": shown}, test) is meant(clicks, shown)
    assert value({"clicks": 5, "shown": 0}, test) is None
