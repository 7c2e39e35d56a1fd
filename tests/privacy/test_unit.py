# SPDX-License-Identifier: Apache-2.0
"""A unit needs its columns or a way to it, limits that are counts, and a text of its own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.privacy import AddRemove, Edge, Node, Relation, ReplaceOne, Unit, unit
from sfumato.privacy.unit import AUTO, Auto

LIMITS = ["max_rows", "max_groups", "max_rows_total"]
# names that try to imitate each other, and what stands around them in a contract
NAMES = st.text(alphabet='ab,. "()\\', min_size=1, max_size=9) | st.sampled_from(
    [
        "a",
        "b",
        "a, b",
        "(row)",
        "(public)",
        '("a")',
        '("a", "b")',
        '("a" as "b")',
        '("a" via "b.a" by "a")',
        'a" as "b',
    ]
)
BOUNDS = st.none() | st.just(AUTO) | st.integers(1, 2**31)


@st.composite
def units(draw):
    bounds = {name: draw(BOUNDS) for name in LIMITS}
    bounds["spellings_apart"] = draw(st.booleans())
    if draw(st.booleans()):
        path = f"{draw(st.sampled_from(['a', 'b']))}.{draw(NAMES)}"
        return Unit(draw(NAMES), **bounds, via=path, key=draw(st.none() | NAMES))
    columns = draw(st.lists(NAMES, min_size=1, max_size=3, unique_by=str.lower))
    return Unit(columns, **bounds, name=draw(st.none() | NAMES))


def identity(one):
    """All of a unit but its limits."""
    return one.columns, one.via, one.key, one.name, one.spellings_apart


@pytest.mark.parametrize("limits", [(1,), (1, 1), (None, None, 1), (9, 9, 1), (AUTO, AUTO, 1)])
def test_a_unit_has_one_row_where_its_limits_say_so(limits):
    assert Unit("person", *limits).once


@pytest.mark.parametrize("limits", [(), (2,), (1, 2), (1, AUTO), (AUTO, 1), (None, 1), (1, 2, 2)])
def test_else_a_unit_may_have_several(limits):
    assert not Unit("person", *limits).once


@given(st.text(min_size=1), st.integers(1, 2**31), st.none() | st.integers(1, 2**31))
@settings(deadline=None)
def test_a_unit_keeps_what_it_was_given(column, rows, groups):
    unit = Unit(column, max_rows=rows, max_groups=groups)
    assert (unit.column, unit.max_rows, unit.max_groups, unit.max_rows_total) == (
        column,
        rows,
        groups,
        None,
    )
    assert identity(unit) == ((column,), None, None, column, False)


def test_several_columns_name_a_unit_together():
    day = Unit(["person_id", "day"], max_rows=9, name="person_day")
    assert identity(day) == (("person_id", "day"), None, None, "person_day", False)
    assert day == Unit(("person_id", "day"), 9, name="person_day")
    assert (day.column, Unit(["person_id", "day"]).name) == ("person_id, day", "person_id, day")


def test_a_unit_can_be_that_of_another_table():
    visit = Unit("visit_id", via="visits.patient_id")
    assert identity(visit) == (("visit_id",), "visits.patient_id", "visit_id", None, False)
    assert visit.target == ("visits", "patient_id")
    assert Unit("visit", via="visits.patient_id", key="id").key == "id"
    assert Unit("id", via="t.a.b, c").target == ("t", "a.b, c")
    assert Unit("id").target is None


def test_spellings_that_are_declared_apart_are_part_of_the_contract():
    apart = Unit("id", spellings_apart=True)
    assert str(Unit("id")) == "id"
    assert str(apart) == '("id" spellings apart)'
    assert repr(apart) == "Unit('id', spellings_apart=True)"
    assert apart.limited(max_rows=1, max_groups=None, max_rows_total=None).spellings_apart
    link = Unit("visit", via="visits.patient", key="id", spellings_apart=True)
    assert str(link) == '("visit" via "visits.patient" by "id" spellings apart)'


@pytest.mark.parametrize("apart", [1, "yes", None], ids=repr)
def test_spellings_are_apart_or_not(apart):
    with pytest.raises(InvalidDeclaration, match="spellings_apart="):
        Unit("id", spellings_apart=apart)


@pytest.mark.parametrize("column", ["", None, 3, b"id", [], ["id", ""], ["id", 3], {"id"}])
def test_a_unit_without_the_name_of_a_column_is_refused(column):
    with pytest.raises(InvalidDeclaration, match="column"):
        Unit(column)


@pytest.mark.parametrize("columns", [["id", "id"], ["id", "day", "ID"]])
def test_a_column_is_named_once(columns):
    with pytest.raises(InvalidDeclaration, match="twice"):
        Unit(columns)


@pytest.mark.parametrize(
    "via", ["", "visits", "visits.", ".patient_id", ".", 3, ("visits", "patient_id")], ids=repr
)
def test_a_way_that_is_no_column_of_a_table_is_refused(via):
    with pytest.raises(InvalidDeclaration, match="via=") as caught:
        Unit("visit_id", via=via)
    assert "visits.patient_id" in caught.value.allowed


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"key": "id"}, "key='id' of a unit without via="),
        ({"key": 3, "via": "visits.patient_id"}, "key=3"),
        ({"key": "", "via": "visits.patient_id"}, "key=''"),
        ({"name": 3}, "name=3"),
        ({"name": ""}, "name=''"),
        ({"name": "patient", "via": "visits.patient_id"}, "the units of the other table"),
    ],
    ids=repr,
)
def test_a_key_or_a_name_that_means_nothing_is_refused(given, named):
    with pytest.raises(InvalidDeclaration, match=named):
        Unit("visit_id", **given)


def test_several_columns_cannot_be_looked_up():
    with pytest.raises(InvalidDeclaration, match="several columns"):
        Unit(["visit_id", "day"], via="visits.patient_id")


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", "auto", 2**31 + 1, float("nan")])
def test_a_limit_that_is_no_count_is_refused_by_name(name, value):
    with pytest.raises(InvalidDeclaration, match=f"{name} = ") as caught:
        Unit("id", **{name: value})
    assert "sf.AUTO" in caught.value.allowed


@pytest.mark.parametrize("name", LIMITS)
def test_the_extremes_of_a_limit_and_one_to_be_learnt_are_allowed(name):
    for limit in (1, 2**31, AUTO):
        assert getattr(Unit("id", **{name: limit}), name) == limit


@given(units(), BOUNDS, BOUNDS, BOUNDS)
@settings(deadline=None)
def test_other_limits_leave_the_unit_what_it_is(one, rows, groups, total):
    other = one.limited(max_rows=rows, max_groups=groups, max_rows_total=total)
    assert identity(other) == identity(one) and str(other) == str(one)
    assert (other.max_rows, other.max_groups, other.max_rows_total) == (rows, groups, total)


@given(units())
@settings(deadline=None)
def test_a_unit_shows_how_it_is_written(one):
    assert eval(repr(one), {"Unit": Unit, "AUTO": AUTO}) == one


def test_the_text_of_a_plain_unit_is_its_column():
    # what ledgers of version 0.1 hold
    assert [str(Unit(column, max_rows=3)) for column in ("person_id", "a, b", "visit id")] == [
        "person_id", "a, b", "visit id",
    ]  # fmt: skip
    assert str(Unit(["person_id", "day"])) == '("person_id", "day")'
    assert str(Unit("id", name="person_id")) == '("id" as "person_id")'
    assert (
        str(Unit("visit_id", via="visits.patient_id"))
        == '("visit_id" via "visits.patient_id" by "visit_id")'
    )
    assert str(Unit("(row)")) == '("(row)")'


@given(units(), units())
@settings(deadline=None)
def test_units_of_one_text_are_the_same(one, other):
    assert (str(one) == str(other)) == (identity(one) == identity(other))
    assert str(one) not in ("(row)", "(public)")


def test_texts_notice_names_that_are_not_quoted(monkeypatch):
    monkeypatch.setattr(unit, "_quoted", lambda text: text)
    assert str(Unit(["a", "b"], name="c")) == str(Unit("a, b", name="c"))
    assert str(Unit("a", name="b as c")) == str(Unit("a as b", name="c"))


def test_the_relations_are_two_and_named_for_the_contract():
    assert [each.value for each in Relation] == ["add-remove", "replace-one"]
    assert (AddRemove, ReplaceOne) == (Relation.ADD_REMOVE, Relation.REPLACE_ONE)


def test_auto_is_one_value_that_shows_its_name():
    assert (repr(AUTO), list(Auto), AUTO.value) == ("AUTO", [AUTO], "auto")


def test_an_edge_is_the_unordered_pair_of_two_ids():
    edge = Edge("a", "b")
    assert (edge.columns, edge.max_rows_total, edge.unordered) == (("a", "b"), 1, True)
    assert edge == Unit(["a", "b"], max_rows_total=1, unordered=True)
    assert str(edge) == '("a", "b" unordered)' != str(Unit(["a", "b"], max_rows_total=1))
    assert eval(repr(edge)) == edge
    assert str(Edge("a", "b", name="tie")) == '("a", "b" as "tie" unordered)'
    limits = {"max_rows": None, "max_groups": None, "max_rows_total": 3}
    assert edge.limited(**limits).unordered


def test_a_node_has_two_ends_in_a_table_that_lists_it():
    node = Node("a", "b", of="people")
    assert (node.ends, node.of) == (("a", "b"), "people")
    assert str(node) == '(node "a", "b" of "people")'
    assert eval(repr(node)) == node
    assert not isinstance(node, Unit)
    assert str(Node('a", "b', "c", of="people")) != str(Node("a", 'b", "c', of="people"))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Edge("a", "a"),
        lambda: Edge("a", "A"),
        lambda: Edge("a", ""),
        lambda: Edge("a", 3),
        lambda: Node("a", "a", of="people"),
        lambda: Node("", "b", of="people"),
        lambda: Node("a", "b", of=""),
        lambda: Node("a", "b", of=None),
        lambda: Unit("a", unordered=True),
        lambda: Unit(["a", "b", "c"], unordered=True),
        lambda: Unit(["a", "b"], unordered=1),
    ],
)
def test_ends_that_are_not_two_columns_are_refused(wrong):
    with pytest.raises(InvalidDeclaration):
        wrong()
