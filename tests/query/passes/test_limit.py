# SPDX-License-Identifier: Apache-2.0
"""Limits that bind are kept, implied ones filled in, missing ones asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import MissingDeclaration
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountDistinct, CountRows, CountUnits
from sfumato.plan.owner import Owner
from sfumato.plan.relation import Computed, PerUnit, Scan, Summary, UnitJoin
from sfumato.plan.stages import Bounded, Limits, Part, Raw, Tracked
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.passes import Context
from sfumato.query.passes.limit import limit
from sfumato.query.stability import distance, refinement

CONTEXT = Context(Dataset("data", {"people": sf.Table("nowhere.csv")}), Norm.L1)
LETTER = Column("letter", sf.Category(*"abcd"))
ROWS, DISTINCT = (CountRows(),), (CountDistinct(Value.of(LETTER)),)


def tracked(limits, *, groups=4, aggregates=ROWS, unit="person"):
    scan = Scan("people", columns=(LETTER,), owner=Owner(("person",)))
    keys = (GroupKey(Value.of(LETTER), None if groups is None else (0, 1, 2, 3)),)
    return Tracked(Raw(scan, keys, aggregates), unit, Limits(*limits), groups)


def limited(limits, **facts):
    return limit(tracked(limits, **facts), CONTEXT).limits


def test_rows_as_units_need_no_limit():
    for groups in (4, None):
        plan = tracked((None, None, None), unit=None, groups=groups)
        assert limit(plan, CONTEXT) is plan


def test_limits_that_bind_are_kept():
    assert limited((2, 3, 5)) == Limits(2, 3, 5)


def test_one_group_needs_no_group_limit():
    assert limited((2, None, None), groups=1) == Limits(2, None, None)


def attributes(keys, limits=(2, None, None)):
    """Visits, each with the town and the letter of its person, who has one row.

    Grouped by some of them.
    """
    town, visit = Column("town", sf.Category(*"xyz")), Column("visit", sf.Category(*"abcd"))
    owner = Owner(("person",))
    people = PerUnit(
        Scan("people", "p.", (town,), owner), (), (Computed(town, Summary.MINIMUM, Value.of(town)),)
    )
    joined = UnitJoin(Scan("visits", "v.", (visit,), owner), people)
    known = {"town": town, "visit": visit}
    groups = tuple(GroupKey(Value.of(known[key]), (0, 1, 2)) for key in keys)
    return Tracked(Raw(joined, groups, ROWS), "person", Limits(*limits), 3 ** len(keys))


def test_keys_that_say_something_of_the_unit_need_no_group_limit_and_one_group_is_enough():
    assert limit(attributes(["town"]), CONTEXT).limits == Limits(2, 1, None)
    assert limit(attributes(["town"], (2, 3, None)), CONTEXT).limits == Limits(2, 1, None)
    for keys in (["visit"], ["town", "visit"]):
        assert limit(attributes(keys, (2, 2, None)), CONTEXT).limits == Limits(2, 2, None)
        with pytest.raises(MissingDeclaration, match="max_groups"):
            limit(attributes(keys), CONTEXT)


def test_a_unit_in_one_group_is_counted_whole():
    plan = limit(attributes(["town"], (2, 3, None)), CONTEXT)
    assert refinement(plan) == 1
    assert refinement(limit(attributes(["visit"], (2, 2, None)), CONTEXT)) > 1
    assert distance(CountRows(), plan, Norm.L1, sf.AddRemove, 1).value == 2


def test_a_group_limit_beyond_the_declared_groups_does_not_bind():
    assert limited((2, 4, None)) == Limits(2, None, None)
    assert limited((2, 9, None)) == Limits(2, None, None)


def test_a_group_limit_of_open_keys_always_binds():
    assert limited((2, 9, None), groups=None) == Limits(2, 9, None)
    assert limited((2, None, 3), groups=None) == Limits(2, 3, 3)
    assert limited((2, 9, 3), groups=None) == Limits(2, 3, 3)


def test_a_total_that_the_other_limits_imply_does_not_bind():
    assert limited((2, 3, 6)) == Limits(2, 3, None)
    assert limited((2, 3, 7)) == Limits(2, 3, None)
    assert limited((2, 3, 6), groups=None) == Limits(2, 3, None)


def test_a_total_limits_rows_and_groups_where_they_are_not_declared():
    assert limited((None, None, 3)) == Limits(3, 3, 3)
    assert limited((5, None, 3)) == Limits(3, 3, 3)


def test_distinct_units_need_no_row_limit():
    assert limited((None, 2, None), aggregates=(CountUnits(),)) == Limits(None, 2, None)


@pytest.mark.parametrize("groups", [4, None])
@pytest.mark.parametrize("limits", [(None, None, None), (2, None, None)])
def test_a_missing_group_limit_is_asked_for_by_name(limits, groups):
    with pytest.raises(MissingDeclaration, match="'person' has no max_groups") as refusal:
        limited(limits, groups=groups)
    assert "max_groups=" in refusal.value.allowed
    assert "Declare max_groups" in refusal.value.remedy


@pytest.mark.parametrize(
    "aggregates", [ROWS, DISTINCT, (CountUnits(), CountRows()), (CountUnits(), *DISTINCT)]
)
def test_a_missing_row_limit_is_asked_for_by_name(aggregates):
    with pytest.raises(MissingDeclaration, match="'person' has no max_rows"):
        limited((None, 2, None), aggregates=aggregates)


def integers(plan, rows):
    bounded = Bounded(
        plan, Norm.L1, 2**20, (Part(plan.raw.aggregates[0], Distance(Norm.L1, 1), 1),)
    )
    return Reference({"people": rows}).run(bounded, "key")


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 8)),
    st.lists(st.sampled_from("abcd"), max_size=12),
    st.sampled_from([ROWS, DISTINCT, (CountUnits(),)]),
    st.sampled_from([4, None]),
)
def test_dropping_what_cannot_bind_changes_nothing(limits, letters, aggregates, groups):
    rows, most, total = limits
    held = [{"person": "p", "letter": letter} for letter in letters]
    plan = limit(tracked(limits, aggregates=aggregates, groups=groups), CONTEXT)
    every = tracked(
        (min(rows, total), min(most, total, 4), total), aggregates=aggregates, groups=groups
    )
    assert integers(plan, held) == integers(every, held)
