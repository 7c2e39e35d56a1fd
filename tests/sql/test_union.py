# SPDX-License-Identifier: Apache-2.0
"""UNION ALL: the columns of every arm in one type, and the unit kept."""

import pytest

from sfumato.errors import Refused
from sfumato.metadata.column import Category, Date, Real, Text
from sfumato.plan.relation import Union
from sfumato.plan.scalar import Constant, Lookup
from sfumato.sql import union as room

BOTH = "SELECT {} FROM (SELECT {} FROM events UNION ALL SELECT {} FROM users) AS u"


def union(ask, one, other, outer="COUNT(*)"):
    return ask(BOTH.format(outer, one, other)).raw


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("age AS x", "YEAR(born)", (10, 1999)),
        ("amount AS x", "1000", Real(0, 1000, step="0.5")),
        ("day AS x", "born", Date("1990-01-01", "2024-12-31")),
        ("region AS x", "age_band", Category("R01", "R02", "R03", "a", "b")),
        ("product AS x", "CASE WHEN age_band = 'a' THEN 'x' ELSE 'y' END", None),
    ],
)
def test_a_column_holds_the_values_of_every_arm(ask, one, other, kind):
    if kind is None:
        with pytest.raises(Refused, match="different kinds"):
            union(ask, one, other)
        return
    found = union(ask, f"user_id, {one}", f"user_id, {other}").relation
    assert isinstance(found, Union)
    (column,) = found.columns
    if isinstance(kind, tuple):
        assert (column.type.lower_code, column.type.upper_code) == kind
    else:
        assert column.type == kind
    assert [len(values) for values in found.values] == [1, 1]


def test_codes_are_brought_to_one_meaning(ask):
    found = union(ask, "amount AS x, region AS y", "1, age_band").relation
    (_, first), (one, second) = found.values
    assert one == Constant(2)
    assert second.table == (3, 4) and not isinstance(first, Lookup)


def test_texts_stay_texts(ask):
    found = ask(
        "SELECT COUNT(*) FROM (SELECT product FROM events UNION ALL SELECT product FROM events)"
    ).raw.relation
    assert found.columns[0].type == Text() and found.values[0] != () and len(found.sources) == 2


def test_the_unit_is_counted_over_all_arms(ask):
    asked = union(ask, "user_id AS who, age", "user_id, 0", "COUNT(DISTINCT who)")
    assert type(asked.aggregates[0]).__name__ == "CountUnits"


def test_three_arms_are_one_union(ask):
    arm = "SELECT user_id, age AS x FROM events"
    found = ask(
        f"SELECT SUM(x) FROM ({arm} UNION ALL {arm} UNION ALL (SELECT user_id, 3 FROM users)) AS u"
    ).raw.relation
    assert len(found.sources) == 3 and len({column.name for column in found.columns}) == 1


def test_limits_of_the_arms_add_up(ask):
    inner = "SELECT user_id, age AS x FROM events UNION ALL SELECT user_id, 3 FROM users"
    found = ask(
        f"SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM ({inner}) GROUP BY user_id)"
    ).raw.relation
    assert found.columns[0].column.type.upper_code == 51
    open_ = inner.replace("FROM users", "FROM events_unbounded")
    found = ask(
        f"SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM ({open_}) GROUP BY user_id)"
    ).raw.relation
    assert found.columns[0].column.type.upper_code == 2**31


@pytest.mark.parametrize(
    ("one", "other", "word"),
    [
        ("user_id, age", "user_id", "do not match"),
        ("user_id, age", "age_band, user_id", "do not match"),
        ("age", "user_id", "do not match"),
        ("user_id, region", "user_id, born", "different kinds"),
        ("user_id, UPPER(user_id) AS x", "user_id, age_band", "names single persons"),
    ],
)
def test_arms_that_do_not_match_are_refused(ask, one, other, word):
    with pytest.raises(Refused, match=word) as refusal:
        union(ask, one, other)
    assert refusal.value.remedy


@pytest.mark.parametrize("table", ["orders", "products", "days"])
def test_tables_of_other_units_are_refused(ask, table):
    column = {"orders": "price", "products": "size", "days": "steps"}[table]
    with pytest.raises(Refused, match="same units") as refusal:
        ask(f"SELECT COUNT(*) FROM (SELECT age FROM events UNION ALL SELECT {column} FROM {table})")
    assert refusal.value.remedy


@pytest.mark.parametrize("kind", ["UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
def test_another_set_operation_is_refused(ask, kind):
    for text in (
        f"SELECT COUNT(*) FROM (SELECT age FROM events {kind} SELECT age FROM events)",
        f"SELECT COUNT(*) FROM events {kind} SELECT 1",
    ):
        with pytest.raises(Refused, match="set operation") as refusal:
            ask(text)
        assert "UNION ALL" in refusal.value.remedy


def test_a_code_that_is_not_recoded_is_noticed(ask, monkeypatch):
    honest = union(ask, "region AS x", "age_band").relation.values
    monkeypatch.setattr(
        room,
        "unified",
        lambda values: (lambda scalar: values[0], [each.expression for each in values]),
    )
    assert union(ask, "region AS x", "age_band").relation.values != honest
