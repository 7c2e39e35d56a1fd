# SPDX-License-Identifier: Apache-2.0
"""The reference engine against integers worked out by hand, and against pandas."""

import hashlib
import math
import struct
from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.reference import Reference, rows_of
from sfumato.metadata.column import Column, Integer, Text
from sfumato.plan.aggregate import (
    CodeQuantiles,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.plan.owner import Owner
from sfumato.plan.relation import Filter, Scan, Semi
from sfumato.plan.scalar import Compare, Comparison, Constant, Field
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm
from tests.contracts.world import FINE, by, plan
from tests.engines.conftest import flat

KEY = "key"
LETTER, NUMBER = (
    Column("letter", sf.Category("a", "b", "c", "d")),
    Column("number", sf.Integer(-5, 3, missing="N")),
)
WORD = Column("word", Text())
COLUMNS = (LETTER, NUMBER, WORD)
OWNED, FREE = Scan("t", "", COLUMNS, Owner(("who",))), Scan("t", "", COLUMNS)
VALUE, WORDS = Value.of(NUMBER), Value.of(WORD)


def ask(rows, relation, *aggregates, **options):
    bounded = plan(relation, *aggregates, **options)
    return flat(bounded, Reference({"t": rows}).run(bounded, KEY))


def person(name, letters, numbers, words=None):
    words = words or [None] * len(letters)
    return [
        {"who": name, "letter": letter, "number": number, "word": word}
        for letter, number, word in zip(letters, numbers, words, strict=True)
    ]


def words(text):
    """md5 of a text as four numbers of 32 bits."""
    return struct.unpack(">4I", hashlib.md5(text.encode()).digest())


def place(unit, held, key=KEY):
    """Where what a unit holds stands, from the numbers of the sampling key, of the unit and of what
    is held.
    """
    (constant, *factors), (a, b, _, _) = words(key), words(f"{key}|{held}")
    low, middle, high = (unit % 2**64 // 2**shift % 2**22 for shift in (0, 22, 44))
    # the last piece of a number below zero has its sign
    high += (unit < 0) * (2**22 - 2**20)
    y = constant + factors[0] * low + factors[1] * middle + factors[2] * high
    return (a * y + b) % (2**31 - 1) >> 7


def first(kept, groups, name):
    """The groups that come first in the order of a unit."""
    unit = int.from_bytes(hashlib.md5(name.encode()).digest(), "big") >> 68
    return sorted(groups, key=lambda group: place(unit, group))[:kept]


def test_rows_as_units_are_added_up():
    rows = person(None, "aab?", [3, "-9", "N", 1])
    # values 3, -5 (moved to the bound), missing, 1; above the lower bound: 8 + 0 + 6, below the
    # upper: 0 + 8 + 2 levels of one code: 8, 0, 6 of 8: squares 64 + 0 + 36, twice the products 0 +
    # 0 + 24, squares below 0 + 64 + 4
    found = ask(
        rows,
        FREE,
        CountRows(),
        CountValues(VALUE),
        Sum(VALUE),
        Mean(VALUE),
        Variance(VALUE),
        CountUnits(),
    )
    assert found == {(): (4, 3, -1, 14, 10, 100, 24, 68, 4)}
    assert ask(rows, FREE, CountDistinct(VALUE), Quantiles(VALUE, (Fraction(1, 2),))) == {
        # a leaf and its weight in turn
        (): (3, 0, 1, 6, 1, 8, 1)
    }


def test_groups_are_of_declared_values_only():
    rows = [*person(None, "aab?", [3, -9, "N", 1]), {"letter": None, "number": 1}]
    assert ask(rows, FREE, CountRows(), keys=(by(FREE, "letter"),)) == {(0,): (2,), (1,): (1,)}
    some = GroupKey(Value.of(LETTER), (1, 3))
    assert ask(rows, FREE, CountRows(), keys=(some,)) == {(1,): (1,)}


def test_missing_is_a_group_where_it_is_declared():
    rows = person(None, "aaa", [1, "N", None])
    assert ask(rows, FREE, CountRows(), keys=(by(FREE, "number", missing=True),)) == {
        (None,): (2,),
        (1,): (1,),
    }
    assert ask(rows, FREE, CountRows(), keys=(GroupKey(VALUE, (), True),)) == {(None,): (2,)}


def test_an_open_key_has_every_value_for_a_group():
    rows = person(None, "aab", [1, 2, 1], ["x", None, "y"])
    assert ask(rows, FREE, CountRows(), keys=(by(FREE, "word"),)) == {("x",): (1,), ("y",): (1,)}
    assert ask(
        rows, FREE, CountRows(), keys=(GroupKey(VALUE, None), by(FREE, "word", missing=True))
    ) == {
        (1, "x"): (1,),
        (1, "y"): (1,),
        (2, None): (1,),
    }


def test_nothing_is_no_group():
    assert ask([], FREE, CountRows(), Mean(VALUE)) == {}
    assert ask([], OWNED, CountRows(), Mean(VALUE), limits=(1, 1, 1)) == {}


def test_rows_beyond_the_limit_are_clipped():
    rows = person("p", "aaaa", [3, 3, 3, 1]) + person("q", "a", [-5])
    # p: 2 rows, 2 values, sum 10 clipped to 6, pair (30, 2) of 4 values weighed to 2: (15, 1); q
    # adds (0, 8)
    found = ask(
        rows,
        OWNED,
        CountRows(),
        CountValues(VALUE),
        Sum(VALUE),
        Mean(VALUE),
        limits=(2, None, None),
    )
    assert found == {(): (3, 3, 1, 15, 9)}
    # p's triple (3 * 64 + 36, 24, 4) of 4 weighed to 2; q adds (0, 0, 64)
    assert ask(rows, OWNED, Variance(VALUE), limits=(2, None, None)) == {(): (114, 12, 66)}


def test_a_mean_counts_the_values_and_not_the_rows():
    rows = person("p", "aaa", [3, 3, "N"])
    # two values are within the limit, three rows are not
    assert ask(rows, OWNED, CountRows(), Mean(VALUE), limits=(2, None, None)) == {(): (2, 16, 0)}


@pytest.mark.parametrize(
    ("norm", "weight"), [(Norm.L1, FINE // 2), (Norm.L2, math.isqrt(FINE**2 // 2))]
)
def test_groups_beyond_the_limit_are_weighed_down(norm, weight):
    rows = person("p", "abcd", [3, 3, 3, 3]) + person("q", "ab", [1, 1])
    found = ask(
        rows,
        OWNED,
        CountRows(),
        keys=(by(OWNED, "letter"),),
        limits=(1, 2, None),
        norm=norm,
        fine=FINE,
    )
    assert found == {
        (0,): (weight + FINE,),
        (1,): (weight + FINE,),
        (2,): (weight,),
        (3,): (weight,),
    }


@pytest.mark.parametrize(("norm", "share"), [(Norm.L1, Fraction(4, 5)), (Norm.L2, Fraction(8, 9))])
def test_a_unit_of_few_rows_is_in_more_groups_than_the_limit(norm, share):
    # limits of 2 rows in 2 groups are 4 rows, or squares of 8: three rows in three groups are
    # within, 2 + 2 + 1 are not
    rows = person("p", "aabbc", [1, 1, 1, 1, 1]) + person("q", "abc", [1, 1, 1])
    found = ask(
        rows,
        OWNED,
        CountRows(),
        keys=(by(OWNED, "letter"),),
        limits=(2, 2, None),
        norm=norm,
        fine=FINE,
    )
    weight = (
        math.floor(share * FINE) if norm is Norm.L1 else math.isqrt(math.floor(share * FINE**2))
    )
    assert found == {(0,): (2 * weight + FINE,), (1,): (2 * weight + FINE,), (2,): (weight + FINE,)}


def test_a_total_weighs_all_rows_of_a_unit():
    rows = person("p", "aabb", [1, 1, 1, 1])
    found = ask(rows, OWNED, CountRows(), keys=(by(OWNED, "letter"),), limits=(2, 2, 3), fine=FINE)
    assert found == {(0,): (2 * (FINE * 3 // 4),), (1,): (2 * (FINE * 3 // 4),)}


def test_distinct_units_keep_the_first_groups_by_keyed_hash():
    rows = person("p", "abcd", [1, 1, 1, 1])
    expected = {(code,): (1,) for code in sorted(first(2, range(4), "p"))}
    for limits in ((None, 2, None), (None, None, 2), (None, 3, 2)):
        assert (
            ask(rows, OWNED, CountUnits(), keys=(by(OWNED, "letter"),), limits=limits) == expected
        )


def test_of_open_groups_a_unit_counts_in_the_first_alone():
    rows = person("p", "aaaaaa", [1, 1, 1, 1, 1, 1], ["x", "x", "y", "y", "z", "z"])
    kept = sorted(first(2, "xyz", "p"))
    # two groups of two rows: a total of 3 weighs the 4 rows that are kept, and groups that are kept
    # are not weighed
    found = ask(
        rows,
        OWNED,
        CountRows(),
        CountUnits(),
        keys=(by(OWNED, "word"),),
        limits=(None, 2, 3),
        fine=FINE,
    )
    assert found == {(word,): (2 * (FINE * 3 // 4), FINE) for word in kept}


def test_a_distinct_count_keeps_the_first_values_by_keyed_hash():
    rows = person("p", "aaa", [1, 1, 1], ["x", "y", "z"]) + person("q", "a", [1], [None])
    kept = first(2, "xyz", "p")
    assert ask(rows, OWNED, CountDistinct(WORDS), limits=(2, None, None)) == {(): (2,)}
    # another unit with one of the values that p keeps adds nothing, with the other one it adds it
    for word in "xyz":
        more = rows + person("r", "a", [1], [word])
        assert ask(more, OWNED, CountDistinct(WORDS), limits=(2, None, 5)) == {
            (): (2 + (word not in kept),)
        }


@pytest.mark.parametrize(
    "unit", [0, 1, -1, 2**22 - 1, 2**22, 2**44, -(2**44), 2**63 - 1, -(2**63), 1_000_003]
)
def test_a_unit_that_is_a_number_is_that_number(unit):
    rows = person(str(unit), "abcd", [1, 1, 1, 1])
    expected = sorted(sorted(range(4), key=lambda group: place(unit, group))[:2])
    assert ask(rows, OWNED, CountUnits(), keys=(by(OWNED, "letter"),), limits=(None, 2, None)) == {
        (code,): (1,) for code in expected
    }


@pytest.mark.parametrize(
    "name", ["01", "+1", "-0", "1.0", "", " 1", "٣", str(2**63), str(-(2**63) - 1), "1e3"]
)
def test_any_other_unit_is_what_its_text_makes_it(name):
    rows = person(name, "abcd", [1, 1, 1, 1])
    found = ask(rows, OWNED, CountUnits(), keys=(by(OWNED, "letter"),), limits=(None, 2, None))
    assert found == {(code,): (1,) for code in sorted(first(2, range(4), name))}


def test_a_distinct_count_is_of_the_first_groups():
    rows = person("p", "abcd", [1, 2, 3, 1])
    found = ask(
        rows, OWNED, CountDistinct(VALUE), keys=(by(OWNED, "letter"),), limits=(1, 2, None), fine=6
    )
    assert found == {(code,): (6,) for code in sorted(first(2, range(4), "p"))}


def test_leaves_are_weighed_and_cut():
    rows = person("p", "aaab", [-5, 3, 3, "N"])
    # weight 2/3, for two rows of the three within the row limit; of three values two count: each
    # floor((2f/3) 2 / 3)
    share = 2 * FINE // 3 * 2 // 3
    leaves = [0, share, 8, 2 * share]
    for norm in (Norm.L1, Norm.L2):
        found = ask(
            rows, OWNED, Quantiles(VALUE, (Fraction(1, 2),)), keys=(by(OWNED, "letter"),), limits=(2, 1, None), norm=norm, fine=FINE
        )  # fmt: skip
        assert found == {(0,): tuple(leaves)}


def test_leaves_have_as_many_codes_as_the_plan_says():
    wide = Column("number", Integer(0, 5_000))
    scan = Scan("t", "", (wide,))
    rows = [{"number": 4}, {"number": 5}, {"number": 9_999}]
    for leaf, found in ((5, (0, 1, 1, 1, 1000, 1)), (1, (4, 1, 5, 1, 5000, 1))):
        quantiles = CodeQuantiles(Value.of(wide), (Fraction(1, 2),), leaf)
        assert ask(rows, scan, quantiles)[()] == found


def test_a_tie_goes_to_null():
    rows = person("p", "aa", [1, 1], ["N", None])
    key = by(OWNED, "word", missing=True)
    assert ask(rows, OWNED, CountUnits(), keys=(key,), limits=(None, 1, None)) == {(None,): (1,)}


def test_rows_without_a_unit_are_nobodys():
    rows = person(None, "ab", [1, 1]) + person("p", "a", [1])
    assert ask(rows, OWNED, CountRows(), limits=(2, None, None)) == {(): (1,)}


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-5, 3)), min_size=1, max_size=30))
def test_unbounded_sums_are_those_of_pandas(pairs):
    frame = pd.DataFrame(pairs, columns=["letter", "number"])
    above = Filter(FREE, Compare(Comparison.GT, Field(NUMBER), Constant(-3)))
    found = ask(
        frame.to_dict("records"), above, CountRows(), Sum(VALUE), keys=(by(FREE, "letter"),)
    )
    kept = frame[frame.number > -3].groupby("letter").number.agg(["size", "sum"])
    assert found == {
        ("abcd".index(letter),): (row["size"], row["sum"]) for letter, row in kept.iterrows()
    }


def test_the_statement_says_what_it_would_run():
    other = Scan("other", "", (), Owner(("who",)))
    bounded = plan(Semi(OWNED, other), CountRows())
    assert Reference({}).statement(bounded) == "plain Python over other, t"


def test_rows_of_columns():
    assert rows_of({"a": [1, 2], "b": "xy"}) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    with pytest.raises(ValueError, match="zip"):
        rows_of({"a": [1], "b": "xy"})
