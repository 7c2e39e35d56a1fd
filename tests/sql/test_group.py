# SPDX-License-Identifier: Apache-2.0
"""GROUP BY: the declared groups of each key, open keys, and grouping sets."""

import pytest

from sfumato.errors import Refused, UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.plan.scalar import Key
from sfumato.plan.value import GroupKey, Value
from sfumato.sql import group
from tests.sql.conftest import EVENTS

V = {name: Value.of(Column(name, kind)) for name, kind in EVENTS.items()}


def keys(ask, by, select="COUNT(*)"):
    return ask(f"SELECT {select} FROM events GROUP BY {by}").raw.keys


def sets(ask, by):
    return ask(f"SELECT COUNT(*) FROM events GROUP BY {by}").output.sets


@pytest.mark.parametrize(
    ("by", "key"),
    [
        ("region", GroupKey(V["region"], (0, 1, 2), missing=True)),
        ("smoker", GroupKey(V["smoker"], (0, 1))),
        ("age", GroupKey(V["age"], tuple(range(10, 21)))),
        ("product", GroupKey(V["product"], None)),
        ("amount", GroupKey(V["amount"], tuple(range(401)))),
    ],
)
def test_a_column_is_a_key_with_its_declared_values(ask, by, key):
    assert keys(ask, by) == (key,)


@pytest.mark.parametrize(
    ("by", "codes", "missing"),
    [
        ("age % 3", (0, 1, 2), False),
        ("age * 5", (10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20), False),
        ("FLOOR(age / 5)", (2, 3, 4), False),
        ("LOWER(region)", (0, 1, 2), True),
        ("LENGTH(region)", (3,), True),
        ("COALESCE(region, 'none')", (0, 1, 2, 3), False),
        ("age > 12", (0, 1), False),
        ("region = 'R01'", (0, 1), True),
        ("QUARTER(day)", (1, 2, 3, 4), False),
        ("WIDTH_BUCKET(amount, 10, 100, 3)", (0, 1, 2, 3, 4), False),
        ("CASE WHEN age < 12 THEN 'young' WHEN age > 18 THEN 'old' END", (0, 1), True),
        ("day - DATE '2024-12-30'", tuple(range(-364, 2)), False),
    ],
)
def test_a_computed_key_has_the_groups_that_it_can_give(ask, by, codes, missing):
    (key,) = keys(ask, by)
    assert (key.codes, key.missing) == (codes, missing)


def test_a_key_beside_an_outer_join_has_a_group_of_those_without(ask):
    joined = "events e {} JOIN users u ON e.user_id = u.user_id GROUP BY u.age_band"
    assert not ask(f"SELECT COUNT(*) FROM {joined.format('')}").raw.keys[0].missing
    assert ask(f"SELECT COUNT(*) FROM {joined.format('LEFT')}").raw.keys[0].missing
    assert (
        ask("SELECT COUNT(*) FROM events e LEFT JOIN products p USING (product) GROUP BY p.kind")
        .raw.keys[0]
        .missing
    )


def test_the_same_key_twice_is_one(ask):
    assert len(keys(ask, "region, events.region, 2", "COUNT(*), region")) == 1
    assert len(keys(ask, "UPPER(region), upper(region)")) == 1


def test_group_by_all_is_every_column_that_is_no_aggregate(ask):
    asked = ask("SELECT region, COUNT(*), age + 1 AS older, 'x' FROM events GROUP BY ALL")
    assert [key.value.name for key in asked.raw.keys] == ["region", "age + 1"]
    assert [item.expression for item in asked.output.items][::2] == [Key(0), Key(1)]


@pytest.mark.parametrize(
    ("by", "wanted"),
    [
        ("region, smoker", ()),
        ("ROLLUP(region, smoker)", ((0, 1), (0,), ())),
        ("CUBE(region, smoker)", ((0, 1), (0,), (1,), ())),
        ("region, ROLLUP(smoker)", ((0, 1), (0,))),
        ("GROUPING SETS ((region, smoker), (smoker), ())", ((0, 1), (1,), ())),
        ("GROUPING SETS (region, ROLLUP(smoker))", ((0,), (1,), ())),
        ("GROUPING SETS ((region), (region))", ()),
        ("ROLLUP((region, smoker), age)", ((0, 1, 2), (0, 1), ())),
        ("ROLLUP(region), CUBE(smoker)", ((0, 1), (0,), (1,), ())),
        ("()", ()),
        ("GROUPING SETS ((region), (region, smoker))", ((0,), (0, 1))),
    ],
)
def test_grouping_sets_are_those_of_the_standard(ask, by, wanted):
    assert sets(ask, by) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MEDIAN(age) FROM events GROUP BY ROLLUP(region)",
        "SELECT COUNT(DISTINCT user_id) FROM events GROUP BY ROLLUP(region)",
        "SELECT COUNT(DISTINCT age) FROM events GROUP BY ROLLUP(region)",
        "SELECT COUNT(*) FROM events GROUP BY ROLLUP(product)",
        "SELECT COUNT(*) FROM events GROUP BY GROUPING SETS ((region), (product))",
    ],
)
def test_totals_are_added_up_of_counts_and_sums_alone(ask, text):
    with pytest.raises(UnsupportedSql, match="adds up the groups after the noise") as refusal:
        ask(text)
    assert "one question for each grouping" in refusal.value.remedy
    assert ask(
        "SELECT STDDEV(age), AVG(age), SUM(age), COUNT(age) FROM events GROUP BY ROLLUP(region)"
    ).output.sets


@pytest.mark.parametrize(
    "by",
    [
        "user_id",
        "1",
        "u",
        "ROLLUP(user_id)",
        "GROUPING SETS ((user_id), (region))",
        "region, user_id",
        "ALL",
    ],
)
def test_the_unit_is_no_key_however_it_is_written(ask, by):
    with pytest.raises(Refused, match="makes every group one person") as refusal:
        ask(f"SELECT user_id AS u, COUNT(*) FROM events GROUP BY {by}")
    assert "sub-query that groups by user_id" in refusal.value.remedy


@pytest.mark.parametrize(
    "by",
    [
        "UPPER(user_id)",
        "user_id || 'x'",
        "COALESCE(user_id, 'x')",
        "CASE WHEN smoker THEN user_id END",
    ],
)
def test_nothing_of_the_unit_is_a_key(ask, by):
    with pytest.raises(Refused, match="user_id names single persons"):
        ask(f"SELECT COUNT(*) FROM events GROUP BY {by}")


def test_a_part_of_a_unit_of_two_columns_is_a_key(ask):
    (key,) = ask("SELECT day, AVG(steps) FROM days GROUP BY day").raw.keys
    assert key.size == 31


def test_the_number_of_sets_is_limited(ask):
    with pytest.raises(UnsupportedSql, match="CUBE of more than 6"):
        ask(
            "SELECT COUNT(*) FROM events GROUP BY CUBE(region, smoker, age, day, amount, product, YEAR(day))"
        )
    with pytest.raises(UnsupportedSql, match="grouping sets"):
        ask(
            "SELECT COUNT(*) FROM events GROUP BY CUBE(region, smoker, age), CUBE(region, smoker, age), CUBE(day, age)"
        )


def test_a_unit_let_through_is_noticed(ask, monkeypatch):
    monkeypatch.setattr(group, "_require_key", lambda node, scope: None)
    with pytest.raises((pytest.fail.Exception, AssertionError)):
        test_the_unit_is_no_key_however_it_is_written(ask, "user_id")


def test_group_by_all_in_a_sub_query_is_the_keys_that_it_names(ask):
    inner = "SELECT user_id, COUNT(*) AS n FROM events GROUP BY"
    every, named = (
        ask(f"SELECT AVG(n) FROM ({inner} {keys}) AS t").raw for keys in ("ALL", "user_id")
    )
    assert every == named
