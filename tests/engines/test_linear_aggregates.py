# SPDX-License-Identifier: Apache-2.0
"""Sums and what is made of them: two aggregates of a value share its sums."""

from math import prod

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines import linear_aggregates
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.linear_aggregates import clipped, fits, integers, sums
from sfumato.metadata.column import Column, Integer
from sfumato.plan.aggregate import (
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Sum,
    Variance,
)
from sfumato.plan.value import Value
from tests.contracts.verbatim import Verbatim

NAMED = [(-3, 4), (2, 9), (-9, -2), (0, 5000), (-(2**52), 2**52)]
CONNECTION = duckdb.connect()


def value(low, high):
    return Value.of(Column("x", Integer(low, high)))


def computed(aggregate, codes, limit, *, narrow=False):
    """What the SQL makes of the codes of one unit in one group."""
    names = {aggregate.value.expression: "v0"}
    cells = ", ".join(f"({'NULL' if code is None else code}::BIGINT)" for code in codes)
    listed = ", ".join(
        f"{printed(sql)} AS {name}" for name, sql in sums(aggregate, names, narrow=narrow).items()
    )
    read = ", ".join(map(printed, clipped(aggregate, names, limit, narrow=narrow)))
    found = CONNECTION.execute(
        f"SELECT {read} FROM (SELECT {listed} FROM (VALUES {cells}) AS t(v0))"
    ).fetchone()
    return [int(each) for each in found]


@settings(deadline=None)
@given(st.data(), st.sampled_from(NAMED), st.none() | st.integers(1, 4))
def test_the_integers_are_those_of_the_rows(data, bounds, limit):
    low, high = bounds
    codes = data.draw(st.lists(st.none() | st.integers(low, high), min_size=1, max_size=6))
    known = [code for code in codes if code is not None]
    coarse = -(-(high - low) // 2**26)
    top = -(-(high - low) // coarse)
    levels = [(code - low) // coarse for code in known]
    expected = {
        Mean: [sum(code - low for code in known), sum(high - code for code in known)],
        Variance: [
            sum(u * u for u in levels),
            sum(2 * u * (top - u) for u in levels),
            sum((top - u) ** 2 for u in levels),
        ],
    }
    for kind, whole in expected.items():
        heavy = limit is not None and len(known) > limit
        summed = [x * limit // len(known) if heavy else x for x in whole]
        for narrow in {False, fits(kind(value(low, high)), limit)}:
            assert computed(kind(value(low, high)), codes, limit, narrow=narrow) == summed
    reach = (limit or 0) * min(low, 0), (limit or 0) * max(high, 0)
    total = sum(known) if limit is None else min(max(sum(known), reach[0]), reach[1])
    assert computed(Sum(value(low, high)), codes, limit) == [total]
    assert computed(CountValues(value(low, high)), codes, limit) == [min(len(known), limit or 9)]


def test_what_fits_64_bits_is_computed_in_them():
    # 2^36 rows of a unit at either end of the range, and one more of the amount that fits
    widest = 2**62 // 2**36 // 7 - 1
    for low, high in ((0, widest), (-widest, 0)):
        for kind in (Sum, Mean):
            assert fits(kind(value(low, high)), 7)
            assert not fits(kind(value(low - 1, high + 1)), 7)
    assert fits(Variance(value(0, 2**10)), 15)
    assert not fits(Variance(value(0, 2**11)), 16)
    assert not fits(Mean(value(0, 1)), None)
    names = {value(0, widest).expression: "v0"}
    huge = [f"({2**36 - 1} * {end})::HUGEINT" for end in (0, widest)]
    for total in huge:
        given = f"(SELECT {2**36 - 1} AS m_v0, TRY_CAST({total} AS BIGINT) AS s_v0)"
        read = ", ".join(map(printed, clipped(Mean(value(0, widest)), names, 7, narrow=True)))
        assert CONNECTION.execute(f"SELECT {read} FROM {given}").fetchone() in (
            (0, 7 * widest),
            (7 * widest, 0),
        )


def test_aggregates_of_one_value_share_their_sums():
    names = {value(0, 9).expression: "v0"}
    shared = {}
    for aggregate in (
        CountRows(),
        CountUnits(),
        CountValues(value(0, 9)),
        Sum(value(0, 9)),
        Mean(value(0, 9)),
    ):
        shared |= sums(aggregate, names)
    texts = {name: printed(total) for name, total in shared.items()}
    assert texts == {"m_v0": "count(v0)", "s_v0": "coalesce(sum(v0), 0)"}


def test_a_variance_over_another_range_has_its_own_sums():
    field = value(0, 9).expression
    wider = Value("x", Integer(-1, 9), field)
    one, other = (set(sums(Variance(each), {field: "v0"})) for each in (value(0, 9), wider))
    assert one & other == {"m_v0"}


@pytest.mark.parametrize(
    "function",
    [
        sums,
        integers,
        lambda each, names: clipped(each, names, 1),
        lambda each, names: fits(each, 1),
    ],
)
def test_what_is_not_linear_is_refused(function):
    with pytest.raises(TypeError, match="not linear"):
        function(CountDistinct(value(0, 9)), {value(0, 9).expression: "v0"})


def test_a_wrong_sum_is_noticed(monkeypatch):
    assert computed(Mean(value(2, 9)), [2, 5, None], None) == [3, 11]
    monkeypatch.setattr(
        linear_aggregates, "_count", lambda name: {f"m_{name}": Verbatim("count(*)")}
    )
    assert computed(Mean(value(2, 9)), [2, 5, None], None) == [1, 20]
    assert prod(computed(CountValues(value(2, 9)), [2, None], None)) == 2
