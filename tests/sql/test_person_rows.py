# SPDX-License-Identifier: Apache-2.0
"""Two tables of one person: which plan they become, and that neighbours keep to its distance.

test_statements compares these forms with DuckDB.
"""

from fractions import Fraction
from itertools import product

import pytest

import sfumato as sf
from sfumato.engines import reference
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration, UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountUnits, CountValues
from sfumato.plan.relation import Filter, Ranked, Semi, Union, UnitJoin, is_single
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.privacy.distance import Norm
from sfumato.query.cells import Units
from sfumato.query.choose import plan_for_price
from sfumato.query.pipeline import compile_plan
from sfumato.query.price import Price
from sfumato.sql import person_rows, understand
from tests.contracts.leaves import dense

FROM = "FROM people p LEFT JOIN visits v ON v.who = p.who"
STEPS = (
    "WITH f AS (SELECT who, MIN(y) AS d FROM visits WHERE x > 0 GROUP BY who), "
    "s AS (SELECT who, MIN(y) AS d FROM visits WHERE x > 1 GROUP BY who)"
)
FUNNEL = (
    "FROM people p LEFT JOIN f ON f.who = p.who AND f.d >= p.a LEFT JOIN s ON s.who = f.who "
    "AND s.d >= f.d"
)
STATEMENTS = (
    f"SELECT a, COUNT(*), COUNT(v.x), SUM(v.x) {FROM} GROUP BY a",
    f"SELECT COUNT(*), COUNT(v.who) {FROM} AND v.x > p.a GROUP BY v.x",
    f"SELECT COUNT(*), AVG(a) {FROM} AND v.x > 0 WHERE v.who IS NULL",
    f"SELECT COUNT(DISTINCT v.who), COUNT(DISTINCT p.who) FILTER (WHERE v.x > 0) {FROM}",
    "SELECT x, COUNT(DISTINCT CASE WHEN y > 0 THEN who END), COUNT(DISTINCT who), SUM(y) FROM visits GROUP BY x",
    "SELECT SUM(x) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.who = v.who AND p.a < v.x)",
    "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE p.who = v.who AND p.a < v.x)",
    "SELECT x, COUNT(*) FROM visits WHERE (who, x) IN (SELECT who, MIN(x) FROM visits GROUP BY who) GROUP BY x",
    "SELECT SUM(x) FROM visits v WHERE x > (SELECT AVG(w.x) FROM visits w WHERE w.who = v.who)",
    "SELECT f, COUNT(*), SUM(n) FROM (SELECT who, ARG_MIN(x, y) AS f, COUNT(*) AS n FROM visits GROUP BY who) t GROUP BY f",
    ("WITH n AS (SELECT who, x, ROW_NUMBER() OVER (PARTITION BY who ORDER BY y) AS k FROM visits) "
     "SELECT SUM(s.x - f.x) FROM n AS f JOIN n AS s ON s.who = f.who AND s.k = 2 WHERE f.k = 1"),
    f"{STEPS} SELECT COUNT(*), COUNT(f.who), COUNT(DISTINCT s.who), SUM(s.d) {FUNNEL}",
    f"{STEPS} SELECT s.d, COUNT(*) {FUNNEL} WHERE f.who IS NOT NULL GROUP BY s.d",
    "SELECT SUM(p.a), COUNT(*) FROM visits v LEFT JOIN people p ON p.who = v.who AND p.a < v.x",
    f"SELECT COUNT(DISTINCT CASE WHEN v.y > 0 THEN v.who END) {FROM}",
    "SELECT x, SUM(m - y), COUNT(*) FROM (SELECT x, y, MAX(y) OVER (PARTITION BY who) AS m FROM visits) GROUP BY x",
    "SELECT f, COUNT(*) FROM (SELECT FIRST_VALUE(x) OVER (PARTITION BY who ORDER BY y) AS f FROM visits) GROUP BY f",
    ("SELECT f, COUNT(*) FROM (SELECT DISTINCT who, LAST_VALUE(x) OVER (PARTITION BY who ORDER BY y ROWS BETWEEN "
    "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS f FROM visits) GROUP BY f"),
    "SELECT b, COUNT(*) FROM (SELECT LAG(x, 1, 2) OVER (PARTITION BY who ORDER BY y) AS b FROM visits) GROUP BY b",
)  # fmt: skip
KINDS = {name: sf.Integer(0, 2) for name in "xy"}


def dataset(relation=sf.AddRemove):
    return Dataset(
        "two",
        {
            "people": sf.Table(
                "p.csv", unit=sf.Unit("who", max_rows=1), columns={"a": sf.Integer(0, 1)}
            ),
            "visits": sf.Table(
                "v.csv", unit=sf.Unit("who", max_rows=2, max_groups=2), columns=KINDS
            ),
        },
        relation,
    )


def plan_of(text, data=None, norm=Norm.L1):
    data = data or dataset()
    return compile_plan(understand(text, data).raw, data, norm)


def contents():
    """What one unit may have: rows of people (more than declared, too) and of visits."""
    for ages in ((), (0,), (1,), (0, 1)):
        for visits in ((), ((2, 0),), ((0, 1), (2, 0)), ((1, 1), (1, 2), (2, 2), (0, 0))):
            yield ages, visits


def tables(*units):
    held = {"people": [], "visits": []}
    for who, (ages, visits) in units:
        held["people"] += [{"who": who, "a": age} for age in ages]
        held["visits"] += [{"who": who, "x": x, "y": y} for x, y in visits]
    return held


def far(plan, one, other, norm):
    for part, before, after in zip(plan.parts, one, other, strict=True):
        moves = [
            a - b
            for group in {*before, *after}
            for a, b in zip(
                dense(part.aggregate, before.get(group, ())),
                dense(part.aggregate, after.get(group, ())),
                strict=True,
            )
        ]
        yield part, sum(abs(move) if norm is Norm.L1 else move * move for move in moves)


def violations(text):
    """The neighbours whose integers differ by more than the plan claims, of every small dataset."""
    beside = ("q", ((1,), ((2, 1), (1, 0))))
    for norm, relation in product((Norm.L1, Norm.L2), (sf.AddRemove, sf.ReplaceOne)):
        plan = plan_of(text, dataset(relation), norm)
        found = {
            held: Reference(tables(("p", held), beside)).run(plan, "key") for held in contents()
        }
        without = Reference(tables(beside)).run(plan, "key")
        others = [without] if relation is sf.AddRemove else list(found.values())
        for one, other in product(found.values(), others):
            for part, moved in far(plan, one, other, norm):
                if moved > part.distance.value:
                    yield norm, relation, part, moved


@pytest.mark.parametrize("text", STATEMENTS)
def test_neighbours_keep_to_the_distance(text):
    assert not list(violations(text))


def test_rows_that_pass_a_condition_in_place_of_units_are_noticed(monkeypatch):
    text = "SELECT COUNT(DISTINCT who) FILTER (WHERE x > 0) FROM visits"
    integers = reference._Unit.integers

    def rows_that_pass(unit, aggregate, group):
        if isinstance(aggregate, CountUnitsWhere):
            return integers(unit, CountValues(aggregate.value), group)
        return integers(unit, aggregate, group)

    assert not list(violations(text))
    monkeypatch.setattr(reference._Unit, "integers", rows_that_pass)
    assert list(violations(text))


def test_groups_of_unknown_keys_are_shown_by_all_their_units():
    kinds = {"x": sf.Text(), "y": sf.Integer(0, 2)}
    unit = sf.Unit("who", max_rows=2, max_groups=2)
    data = Dataset("open", {"visits": sf.Table("v.csv", unit=unit, columns=kinds)})
    text = "SELECT x, COUNT(DISTINCT who) FILTER (WHERE y > 0) AS n FROM visits GROUP BY x"
    price = Price(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    planned = plan_for_price(understand(text, data), data, price, {})
    parts = [part.aggregate for part in planned.bounded.parts]
    assert parts[1:] == [CountUnits()] and isinstance(parts[0], CountUnitsWhere)
    assert len(set(map(type, planned.mechanisms))) == 2
    with pytest.raises(InvalidDeclaration, match="counts no units"):
        Units(planned.bounded, 0)


def test_a_layout_is_not_read_for_a_condition_of_units():
    data = dataset()
    counted = "SELECT COUNT(DISTINCT who) {} FROM visits"
    price = Price(epsilon=Fraction(1))
    for test, kept in (("", 1), ("FILTER (WHERE x > 0)", None)):
        question = understand(counted.format(test), data)
        planned = plan_for_price(question, data, price, {"visits": 4})
        assert (planned.bounded.tracked.kept is None) is (kept is None)
    assert "pass a condition" in " ".join(planned.notes)


def test_a_unit_that_counts_in_both_arms_is_seen_in_the_answer(monkeypatch):
    monkeypatch.setattr(person_rows, "Semi", lambda source, units, negated: source)
    held = tables(("p", ((1,), ((2, 0),))))
    (rows, *_) = Reference(held).run(plan_of(f"SELECT COUNT(*) {FROM}"), "key")
    assert sum(map(sum, rows.values())) == 2
    monkeypatch.undo()
    (rows, *_) = Reference(held).run(plan_of(f"SELECT COUNT(*) {FROM}"), "key")
    assert sum(map(sum, rows.values())) == 1


def test_a_join_of_one_row_to_many_is_a_union_joined_to_the_one():
    relation = understand(f"SELECT COUNT(v.x) {FROM}", dataset()).raw.relation
    assert isinstance(relation, UnitJoin) and is_single(relation.other)
    union = relation.source
    assert isinstance(union, Union) and union.exclusive
    assert isinstance(union.sources[1], Semi) and union.sources[1].negated
    # the limits of the larger arm, and one group for a key of the one row
    plan = plan_of(f"SELECT a, COUNT(v.x) {FROM} GROUP BY a")
    assert (plan.tracked.limits.rows, plan.parts[0].distance.value) == (2, 2)
    inner = plan_of("SELECT a, COUNT(v.x) FROM people p JOIN visits v USING (who) GROUP BY a")
    assert inner.parts[0].distance == plan.parts[0].distance


def test_only_what_is_read_is_in_the_union():
    names = {
        text: {column.name for column in understand(text, dataset()).raw.relation.source.columns}
        for text in (f"SELECT COUNT(v.x) {FROM}", f"SELECT COUNT(*) {FROM}")
    }
    assert list(names.values()) == [{"left_join.mark", "left_join.x"}, {"left_join.mark"}]
    every = understand(f"SELECT COUNT(y) FROM (SELECT v.* {FROM}) AS t", dataset()).raw.relation
    assert {"left_join.x", "left_join.y"} <= {column.name for column in every.source.columns}


def test_a_key_of_the_many_rows_may_be_missing():
    keys = understand(f"SELECT v.x, COUNT(*) {FROM} GROUP BY v.x", dataset()).raw.keys
    assert keys[0].missing and keys[0].codes == (0, 1, 2)


def test_tests_above_a_join_make_a_side_single():
    (text,) = [each for each in STATEMENTS if "s.x - f.x" in each]
    relation = understand(text, dataset()).raw.relation
    while not isinstance(relation, UnitJoin):
        relation = relation.source
    assert isinstance(relation.other, Filter) and isinstance(relation.other.source, Ranked)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT COUNT(*) FROM visits w LEFT JOIN visits v ON v.who = w.who", "rows multiply"),
        (f"SELECT COUNT(*) {FROM} WHERE v.who = 'p'", "names single persons|is compared"),
        ("SELECT COUNT(*) FROM people v LEFT JOIN visits v USING (who)", "under the name"),
        ("SELECT COUNT(*) FROM people p LEFT JOIN visits v ON v.x = p.a", "not on the unit"),
    ],
)  # fmt: skip
def test_any_other_form_is_refused(text, says):
    with pytest.raises(sf.SfumatoError, match=says):
        understand(text, dataset())
    assert issubclass(UnsupportedSql, sf.SfumatoError)
