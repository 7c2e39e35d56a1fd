# SPDX-License-Identifier: Apache-2.0
"""Windows over all rows of one person are values of that person; test_statements compares them
with DuckDB.
"""

import pytest

from sfumato.errors import Refused
from sfumato.plan.relation import PerUnit, Summary, UnitJoin, is_single
from sfumato.sql import person_windows
from tests.sql.test_statements import ALIKE, engine, meant, told

OVER = "OVER (PARTITION BY user_id"
ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_ = engine


def relation_of(ask, item, more=""):
    text = (
        f"SELECT COUNT(w) FROM (SELECT user_id, {item} AS w FROM events {more}) WHERE w IS NOT NULL"
    )
    return ask(text).raw.relation.source


@pytest.mark.parametrize(
    ("item", "summaries"),
    [
        (f"COUNT(*) {OVER})", [Summary.COUNT]),
        (f"SUM(amount) {OVER})", [Summary.SUM]),
        (f"SUM(amount) FILTER (WHERE smoker) {OVER})", [Summary.SUM]),
        (f"MAX(day) {OVER}) - MIN(day) {OVER})", [Summary.MAXIMUM, Summary.MINIMUM]),
    ],
)
def test_an_aggregate_of_all_rows_of_a_unit_is_that_of_a_sub_query(ask, item, summaries):
    relation = relation_of(ask, item)
    found = []
    while isinstance(relation, UnitJoin):
        assert isinstance(relation.other, PerUnit) and is_single(relation.other)
        assert not relation.outer
        found += [computed.summary for computed in relation.other.columns]
        relation = relation.source
    assert found == summaries[::-1]


def test_conditions_of_the_rows_hold_for_the_rows_of_the_window(ask):
    relation = relation_of(ask, f"COUNT(*) {OVER})", "WHERE smoker")
    assert relation.other.source.predicate is not None
    assert relation.source.predicate is not None


@pytest.mark.parametrize(
    ("item", "descending"),
    [
        (f"FIRST_VALUE(region) {OVER} ORDER BY day)", [False]),
        (f"FIRST_VALUE(region) {OVER} ORDER BY day DESC {ROWS})", [True]),
        (f"LAST_VALUE(region) {OVER} ORDER BY day {ROWS})", [True, True]),
        (f"LAST_VALUE(product) {OVER} ORDER BY day DESC {ROWS})", [True, False]),
    ],
)
def test_the_first_and_the_last_value_are_of_one_row(ask, item, descending):
    relation = relation_of(ask, item)
    assert isinstance(relation, UnitJoin) and is_single(relation.other)
    assert [sort.descending for sort in relation.other.source.order] == descending


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (f"LAST_VALUE(region) {OVER} ORDER BY day)", "a part of a unit's rows"),
        (f"FIRST_VALUE(region) {OVER} ORDER BY day ROWS 1 PRECEDING)", "a part of a unit's rows"),
        (f"LAST_VALUE(region) {OVER} ORDER BY day ROWS UNBOUNDED PRECEDING)", "a part of"),
        (f"FIRST_VALUE(user_id) {OVER} ORDER BY day)", "names single persons"),
        (f"MEDIAN(amount) {OVER})", "within one unit"),
        (f"SUM(amount) {OVER} ROWS 1 PRECEDING)", "not part of the language"),
        ("SUM(amount) OVER (PARTITION BY region)", "reaches across units"),
        ("FIRST_VALUE(amount) OVER (PARTITION BY region ORDER BY day)", "reaches across units"),
    ],
)
def test_another_window_is_refused(ask, item, words):
    with pytest.raises(Refused, match=words):
        relation_of(ask, item)


def test_distinct_comes_after_the_windows(ask):
    item = f"FIRST_VALUE(region) {OVER} ORDER BY day)"
    text = f"SELECT w, COUNT(*) FROM (SELECT DISTINCT user_id, {item} AS w FROM events) GROUP BY w"
    relation = ask(text).raw.relation
    assert isinstance(relation, PerUnit) and len(relation.keys) == 1
    assert isinstance(relation.source, UnitJoin)


def test_the_last_value_of_an_order_without_its_missing_values_is_noticed(engine, monkeypatch):
    """NULL is last in both directions, so the last row is not the first of the other direction."""
    (text,) = [each for each in ALIKE if "LAST_VALUE(day)" in each]
    assert meant(text) == told(engine, text)
    own = person_windows.IsNull
    monkeypatch.setattr(person_windows, "IsNull", lambda operand: own(own(operand)))
    assert meant(text) != told(engine, text)
