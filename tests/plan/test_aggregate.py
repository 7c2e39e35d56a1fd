# SPDX-License-Identifier: Apache-2.0
"""How many integers an aggregate has, and the most that a row adds to them."""

import inspect
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.metadata.column import Column
from sfumato.plan.aggregate import (
    CodeQuantiles,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Linear,
    Mean,
    Quantiles,
    Sum,
    Variance,
    quantiles,
)
from sfumato.plan.relation import Scan
from sfumato.plan.stages import Bounded, Limits, Part, Raw, Tracked
from sfumato.plan.value import Value
from sfumato.privacy.distance import Distance, Norm
from sfumato.query import stability
from tests.contracts.leaves import dense

HALF = (Fraction(1, 2),)
TEXT = Value.of(Column("x", sf.Text()))


def number(low, high, **more):
    return Value.of(Column("x", sf.Integer(low, high) if not more else sf.Real(low, high, **more)))


SIGNED, POSITIVE, HALVES = number(-7, 3), number(2, 9), number(-1, 4, step="0.5")
TRUTH = Value.of(Column("x", sf.Boolean()))
WIDE, DAYS = number(0, 5000), Value.of(Column("x", sf.Date("2019-01-01", "2019-12-31")))


@pytest.mark.parametrize(
    ("aggregate", "integers", "most", "positive"),
    [
        (CountRows(), 1, 1, True),
        (CountValues(TEXT), 1, 1, True),
        (CountUnits(), 1, 1, True),
        (CountDistinct(TEXT), 1, 1, True),
        (Sum(SIGNED), 1, 7, False),
        (Sum(POSITIVE), 1, 9, True),
        (Sum(HALVES), 1, 8, False),
        (Sum(TRUTH), 1, 1, True),
        (Mean(SIGNED), 2, 10, True),
        (Mean(POSITIVE), 2, 7, True),
        (Mean(HALVES), 2, 10, True),
        (Mean(TRUTH), 2, 1, True),
        (Variance(SIGNED), 3, 100, True),
        (Variance(TRUTH), 3, 1, True),
        (Variance(WIDE), 3, 5000**2, True),
        # 5000 codes in levels of 5
        (Variance(WIDE, 2**10), 3, 10**6, True),
        (Quantiles(SIGNED, HALF), 11, 1, True),
        (Quantiles(DAYS, HALF), 365, 1, True),
        (CodeQuantiles(WIDE, HALF), 5001, 1, True),
        # 5001 codes in leaves of 5
        (CodeQuantiles(WIDE, HALF, 5), 1001, 1, True),
    ],
)
def test_the_most_that_a_row_adds(aggregate, integers, most, positive):
    assert (aggregate.width, aggregate.largest, aggregate.never_negative) == (
        integers,
        most,
        positive,
    )


def test_an_aggregate_reads_one_value_or_none():
    assert [each.read for each in (CountRows(), CountUnits(), Sum(WIDE))] == [
        None,
        None,
        WIDE,
    ]


@given(st.integers(-(2**40), 2**40), st.integers(1, 2**41))
def test_levels_are_at_most_a_millionth_and_hold_every_code(low, whole):
    value = number(low, low + whole)
    spread = Variance(value)
    assert (spread.levels - 1) * spread.coarse < whole <= spread.levels * spread.coarse
    assert spread.levels <= 2**26 and Mean(value).levels == whole
    assert spread.coarse == 1 or spread.coarse * 10**6 < whole


@given(st.integers(-(2**40), 2**40), st.integers(1, 2**41), st.integers(1, 2**20))
def test_leaves_hold_every_code_once(low, whole, leaf):
    grid = CodeQuantiles(number(low, low + whole), HALF, leaf)
    assert (grid.leaves - 1) * leaf <= whole < grid.leaves * leaf


def test_quantiles_of_few_codes_keep_the_class_that_their_answers_were_stored_with():
    few, many = number(1, 1024), number(0, 1024)
    assert quantiles(few, HALF) == Quantiles(few, HALF)
    assert quantiles(many, HALF) == CodeQuantiles(many, HALF, leaf=1, ends=False)
    assert quantiles(few, HALF, ends=True) == CodeQuantiles(few, HALF, ends=True)
    assert quantiles(few, HALF, leaf=2) == CodeQuantiles(few, HALF, leaf=2)
    # the answers of before had leaves of several codes
    with pytest.raises(ValueError, match="wide"):
        Quantiles(many, HALF)
    with pytest.raises(ValueError, match="at least one code"):
        CodeQuantiles(many, HALF, leaf=0)


def integers(aggregate, code):
    """What one row adds, by the reference engine."""
    raw = Raw(Scan("t", columns=(Column("x", aggregate.value.type),)), (), (aggregate,))
    plan = Bounded(
        Tracked(raw, None, Limits(None, None, None), 1),
        Norm.L1,
        1,
        (Part(aggregate, Distance(Norm.L1, 1), 1),),
    )
    value = str(Fraction(code) * aggregate.value.step)
    (found,) = Reference({"t": [{"x": str(float(Fraction(value)))}]}).run(plan, "key")
    return dense(aggregate, found.get((), ()))


def within(aggregate):
    """Whether no code in range adds more than the largest, nor lowers what is never negative."""
    kind = aggregate.value.numeric
    added = [integers(aggregate, code) for code in range(kind.lower_code, kind.upper_code + 1)]
    return all(
        len(each) == aggregate.width
        and sum(map(abs, each)) <= aggregate.largest
        and (min(each) >= 0 or not aggregate.never_negative)
        for each in added
    )


EVERY = [
    make(value)
    for make in (CountValues, CountDistinct, Sum, Mean, Variance)
    for value in (SIGNED, HALVES)
]


@pytest.mark.parametrize("aggregate", [*EVERY, Quantiles(SIGNED, HALF)])
def test_no_row_adds_more_than_the_largest(aggregate):
    assert within(aggregate)


@pytest.mark.parametrize("aggregate", [Mean(SIGNED), Variance(SIGNED)])
def test_the_parts_of_a_row_always_add_up_to_the_largest(aggregate):
    assert {sum(integers(aggregate, code)) for code in range(-7, 4)} == {aggregate.largest}


@pytest.mark.parametrize("aggregate", [Mean(SIGNED), Variance(SIGNED)])
def test_too_small_a_range_is_noticed(aggregate, monkeypatch):
    kind = type(aggregate)
    honest = kind.largest.fget
    monkeypatch.setattr(kind, "largest", property(lambda one: honest(one) - 1))
    assert not within(aggregate)


@pytest.mark.parametrize(
    "unsaid", ["width", "largest", "never_negative", "read", "title", "reading", "row"]
)
def test_an_aggregate_that_leaves_something_unsaid_has_no_default(unsaid):
    said = {name: value for name, value in vars(Sum).items() if not name.startswith("__")}
    del said["value"], said[unsaid]
    unheard = type("Unheard", (Linear,), {**said, "__slots__": ()})()
    with pytest.raises(NotImplementedError):
        getattr(unheard, unsaid)(1)
    # what the proof asks of each part before anything is charged
    if unsaid in ("largest", "width", "never_negative"):
        assert unsaid in _contribution_asks()


def _contribution_asks():
    """The names that the distance of a part is computed from."""
    source = inspect.getsource(stability._contribution) + inspect.getsource(stability._replaced)
    return {name for name in ("largest", "width", "never_negative") if f".{name}" in source}


@pytest.mark.parametrize("aggregate", [Sum(SIGNED), Mean(SIGNED), Variance(SIGNED)])
def test_the_integers_of_a_row_are_those_that_engines_add(aggregate):
    assert all(aggregate.row(code) == integers(aggregate, code) for code in range(-7, 4))


def test_an_aggregate_says_what_it_counts():
    counted = [kind(SIGNED).counts for kind in (CountValues, CountDistinct, Sum, Mean, Variance)]
    assert [CountRows().counts, CountUnits().counts, *counted] == [
        "rows",
        "units",
        "rows",
        "values",
        "",
        "",
        "",
    ]
