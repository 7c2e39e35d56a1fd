# SPDX-License-Identifier: Apache-2.0
"""WHERE: tests of rows in one filter, tests of units as semi-joins, and nothing that looks at other
units.
"""

import pytest

import sfumato as sf
from sfumato.errors import Refused, UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.plan.relation import Filter, PerUnit, Scan, Semi
from sfumato.plan.scalar import And, Compare, Comparison, Constant, Field, Member
from sfumato.sql import understand
from sfumato.sql import where as room
from sfumato.sql.parse import parse
from sfumato.sql.where import conjuncts

FROM = "SELECT COUNT(*) FROM events e WHERE "
USERS = "user_id IN (SELECT user_id FROM users WHERE age_band = 'b')"


def relation(ask, test):
    return ask(FROM + test).raw.relation


@pytest.mark.parametrize(
    ("test", "negated"),
    [
        (USERS, False),
        ("NOT " + USERS, True),
        (USERS.replace(" IN ", " NOT IN "), True),
        ("NOT (NOT " + USERS + ")", False),
        ("((" + USERS + "))", False),
        ("EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id AND u.age_band = 'b')", False),
        (
            "NOT EXISTS (SELECT * FROM users WHERE e.user_id = users.user_id AND (age_band = 'b'))",
            True,
        ),
        ("EXISTS (SELECT 1 FROM users WHERE user_id = e.user_id AND age_band = 'b')", False),
    ],
)
def test_a_test_of_units_is_a_semi_join(ask, test, negated):
    found = relation(ask, test)
    assert isinstance(found, Semi) and found.negated is negated and isinstance(found.source, Scan)
    assert isinstance(found.units, Filter)
    assert found.units.predicate == Member(Field(found.units.source.columns[0]), (1,))


def test_units_are_found_by_what_their_rows_add_up_to(ask):
    found = relation(
        ask, "user_id IN (SELECT user_id FROM events GROUP BY user_id HAVING COUNT(*) > 2)"
    )
    assert isinstance(found.units.source, PerUnit)


def test_tests_of_rows_and_of_units_stand_together(ask):
    found = relation(
        ask,
        f"age > 12 AND {USERS} AND smoker AND NOT EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id)",
    )
    assert isinstance(found, Semi) and found.negated
    assert isinstance(found.source, Semi) and not found.source.negated
    assert isinstance(found.source.source.predicate, And)


def test_the_rank_of_a_row_is_tested_right_above_it(ask):
    ranked = "(SELECT user_id, age, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) AS rn FROM events)"
    found = ask(f"SELECT COUNT(*) FROM {ranked} WHERE age > 12 AND rn = 1").raw.relation
    assert isinstance(found.predicate, Compare)
    assert found.source.predicate == Member(Field(found.source.source.column), (1,))
    other = ask(f"SELECT COUNT(*) FROM {ranked} WHERE rn <= 2").raw.relation
    assert other.predicate == Compare(Comparison.LE, Field(other.source.column), Constant(2))


def test_conjuncts_are_what_must_all_hold():
    (node,) = parse("SELECT (a AND (b OR c)) AND ((d) AND NOT e) FROM t").expressions
    assert [each.sql() for each in conjuncts(node)] == [
        "b OR c" if each == "(b OR c)" else each for each in ("a", "b OR c", "d", "NOT e")
    ]


@pytest.mark.parametrize(
    ("test", "word"),
    [
        (f"{USERS} OR smoker", "test of units"),
        (f"CASE WHEN {USERS} THEN TRUE ELSE FALSE END", "test of units"),
        ("EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id) = TRUE", "test of units"),
        ("region IN (SELECT age_band FROM users)", "another column than the unit"),
        ("user_id IN (SELECT age_band FROM users)", "another column than the unit"),
        ("age IN (SELECT user_id FROM users)", "another column than the unit"),
        ("user_id IN (SELECT user_id, age_band FROM users)", "another column than the unit"),
        ("user_id IN (SELECT price FROM orders)", "another column than the unit"),
        ("user_id IN (SELECT product FROM products)", "another column than the unit"),
        ("EXISTS (SELECT 1 FROM users)", "does not look for the same unit"),
        (
            "EXISTS (SELECT 1 FROM users u WHERE u.age_band = 'b')",
            "does not look for the same unit",
        ),
        (
            "EXISTS (SELECT 1 FROM users u WHERE u.user_id = user_id)",
            "does not look for the same unit",
        ),
        (
            "EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.product)",
            "does not look for the same unit",
        ),
        (
            "EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id OR TRUE)",
            "does not look for the same unit",
        ),
        (
            "EXISTS (SELECT 1 FROM orders o WHERE o.quantity = e.user_id)",
            "does not look for the same unit",
        ),
        (
            "EXISTS (SELECT 1 FROM events u WHERE u.user_id = e.user_id AND u.day > e.day)",
            "more than the unit",
        ),
        (
            "EXISTS (SELECT 1 FROM events u WHERE u.user_id = e.user_id AND e.age > 12)",
            "more than the unit",
        ),
        ("(user_id, age) NOT IN (SELECT user_id, MIN(age) FROM events GROUP BY user_id)", "NOT IN"),
        (
            "(user_id, age) IN (SELECT user_id, age FROM events)",
            "more than the unit",
        ),
        (
            "EXISTS (SELECT COUNT(*) FROM users u WHERE u.user_id = e.user_id HAVING COUNT(*) > 1)",
            "sub-query",
        ),
        ("EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id LIMIT 2)", "LIMIT"),
        ("EXISTS (SELECT 1 FROM users UNION ALL SELECT 2)", "set operation"),
        ("user_id = ANY (SELECT user_id FROM users)", "ANY or ALL"),
    ],
)
def test_what_looks_at_more_than_the_unit_is_refused(ask, test, word):
    with pytest.raises(Refused, match=word) as refusal:
        relation(ask, test)
    assert refusal.value.remedy


def test_units_of_another_kind_are_refused():
    homes = {
        "people": sf.Table("p.csv", unit=sf.Unit("id")),
        "homes": sf.Table("h.csv", unit=sf.Unit("id", name="home")),
    }
    with pytest.raises(
        UnsupportedSql, match="'people' and 'homes' are not about the same units"
    ) as refusal:
        understand(
            "SELECT COUNT(*) FROM people WHERE id IN (SELECT id FROM homes)", Dataset("d", homes)
        )
    assert "name=" in refusal.value.remedy


def test_a_test_that_is_not_asked_to_be_the_unit_is_noticed(ask, monkeypatch):
    with pytest.raises(Refused):
        relation(ask, "EXISTS (SELECT 1 FROM users)")
    monkeypatch.setattr(room, "range", lambda *ignored: [], raising=False)
    assert isinstance(relation(ask, "EXISTS (SELECT 1 FROM users)"), Semi)
