# SPDX-License-Identifier: Apache-2.0
"""A prepared layout is read where no part needs more noise, and the notes say so."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountDistinct, CountRows, CountUnits, Mean, Quantiles, Sum
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import (
    Computed,
    Filter,
    PerUnit,
    PublicJoin,
    Scan,
    Semi,
    Sort,
    Summary,
    UnitJoin,
    first,
)
from sfumato.plan.scalar import Constant, Field, IsNull
from sfumato.plan.stages import Limits, Raw, Tracked
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes.layout import layout, layout_notes
from sfumato.query.passes.limit import limit
from sfumato.query.passes.prune import prune
from sfumato.query.passes.track import track
from sfumato.query.pipeline import compile_plan
from tests.contracts.effort import examples
from tests.query.test_stability import asked

LETTER, NUMBER = Column("letter", sf.Category(*"abcd")), Column("number", sf.Integer(0, 9))
BY_LETTER = (GroupKey(Value.of(LETTER), (0, 1, 2, 3)),)
VALUE = Value.of(NUMBER)
MEDIAN = Quantiles(VALUE, (Fraction(1, 2),))


def dataset(unit):
    columns = {"letter": LETTER.type, "number": NUMBER.type}
    tables = {
        "visits": sf.Table("v.csv", unit=unit, columns=columns),
        "wards": sf.Table("w.csv", columns=columns, public=True),
        "homes": sf.Table("h.csv", unit=unit, columns=columns),
    }
    return Dataset("data", tables)


def scan(data, table="visits"):
    return Scan(
        table,
        "" if table == "visits" else "w.",
        (LETTER, NUMBER) if table == "visits" else (),
        owner_of(data, table),
    )


HOME = Column("homes.letter", LETTER.type)


def joined(data, order=()):
    """Visits, each with a row of its person in another table."""
    homes = first(
        Scan("homes", "homes.", (HOME,), owner_of(data, "homes")), order, (Field(HOME),), "rank"
    )
    return UnitJoin(scan(data), homes)


COUNTED = Computed(Column("count", sf.Integer(0, 9)), Summary.COUNT)


def other_scan(data):
    """The table once more, under names of its own."""
    columns = (Column("other.letter", LETTER.type), Column("other.number", NUMBER.type))
    return Scan("visits", "other.", columns, owner_of(data, "visits"))


def chosen(
    *aggregates,
    limits=(2, 2),
    keys=BY_LETTER,
    norm=Norm.L1,
    kept=4,
    through=lambda source, data: source,
):
    """What is read of a layout, if it is."""
    data = dataset(sf.Unit("person", *limits))
    raw = Raw(through(scan(data), data), keys, aggregates)
    return compile_plan(raw, data, norm, {"visits": kept}).tracked.kept


def test_a_sample_of_all_that_the_limits_allow_costs_laplace_noise_nothing():
    assert (
        chosen(CountRows(), Sum(VALUE), Mean(VALUE), CountUnits(), CountDistinct(VALUE), MEDIAN)
        == 4
    )


@pytest.mark.parametrize(
    "aggregate", [CountRows(), Sum(VALUE), Mean(VALUE), MEDIAN, CountDistinct(VALUE)]
)
def test_gaussian_noise_would_pay_for_all_rows_in_one_group(aggregate):
    # s^2 T^2 against s^2 R^2 G: 16 against 8, but 4 against 8
    assert chosen(aggregate, norm=Norm.L2, kept=4) is None
    assert chosen(aggregate, norm=Norm.L2, kept=2) == 2


def test_gaussian_noise_pays_nothing_more_in_one_group_or_for_units():
    assert chosen(CountRows(), Mean(VALUE), MEDIAN, keys=(), norm=Norm.L2) == 4
    assert chosen(CountUnits(), norm=Norm.L2) == 4


def test_one_part_that_needs_more_noise_decides():
    assert chosen(CountUnits(), CountRows(), norm=Norm.L2) is None


def test_only_row_by_row():
    def semi(source, data):
        return Semi(source, other_scan(data))

    def filtered_and_joined(source, data):
        return PublicJoin(
            Filter(source, IsNull(Field(NUMBER))),
            scan(data, "wards"),
            Constant(1),
            Column("w.number", NUMBER.type),
        )

    def per_unit(source, data):
        return PerUnit(source, (), (COUNTED,))

    assert chosen(CountRows(), through=filtered_and_joined) == 4
    assert chosen(CountRows(), through=semi) is None
    assert chosen(CountRows(), keys=(), through=per_unit) is None


def test_only_tables_with_a_unit_and_a_layout():
    data = dataset(None)
    raw = Raw(scan(data), BY_LETTER, (CountRows(),))
    assert compile_plan(raw, data, Norm.L1, {"visits": 4}).tracked.kept is None
    data = dataset(sf.Unit("person", 2, 2))
    raw = Raw(scan(data), BY_LETTER, (CountRows(),))
    assert compile_plan(raw, data, Norm.L1, {"other": 4}).tracked.kept is None
    assert compile_plan(raw, data, Norm.L1).tracked.kept is None


def test_a_join_to_any_row_of_the_unit_is_read_of_both_layouts():
    data, kept = dataset(sf.Unit("person", 2, 2)), {"visits": 4, "homes": 1}
    by_home = (GroupKey(Value.of(HOME), (0, 1, 2, 3)),)
    plan = compile_plan(Raw(joined(data), by_home, (CountRows(), Mean(VALUE))), data, Norm.L2, kept)
    # a person is in the one group of its home: two rows there, in both norms
    assert [plan.tracked.counted(part.aggregate) for part in plan.parts] == [2, 2]
    assert [part.distance.value for part in plan.parts] == [4, (2 * 9) ** 2]
    in_order = Raw(joined(data, (Sort(Field(HOME)),)), by_home, (CountRows(),))
    for raw, less in (
        (in_order, kept),
        (Raw(joined(data), by_home, (CountRows(),)), {"visits": 4}),
    ):
        assert compile_plan(raw, data, Norm.L1, less).tracked.kept is None


@pytest.mark.parametrize(
    ("limits", "read"),
    [((1,), 4), ((1, 1), 4), ((9, 9, 1), 4), ((1, 2), None), ((2,), None), ((None, 1), None)],
)
@pytest.mark.parametrize("negated", [False, True])
def test_units_are_looked_up_in_layouts_of_tables_with_one_row_of_each(limits, read, negated):
    kept = {"visits": 4, "homes": 1}
    data = dataset(sf.Unit("person", 2, 2))
    homes = sf.Table("h.csv", unit=sf.Unit("person", *limits), columns={"letter": LETTER.type})
    data = Dataset("data", {**data.tables, "homes": homes})
    home = Scan("homes", "homes.", (HOME,), owner_of(data, "homes"))
    summed = PerUnit(home, (), (COUNTED,))

    def chosen_of(relation, kept=kept):
        return compile_plan(
            Raw(relation, BY_LETTER, (CountRows(),)), data, Norm.L1, kept
        ).tracked.kept

    deep = UnitJoin(scan(data), first(Semi(other_scan(data), home, negated), (), (), "rank"))
    for relation in (
        Semi(scan(data), home, negated),
        Semi(scan(data), Filter(home, IsNull(Field(HOME))), negated),
        Filter(Semi(scan(data), home, negated), IsNull(Field(NUMBER))),
        deep,
    ):
        assert chosen_of(relation) == read
        assert chosen_of(relation, {"visits": 4}) is None
    # of a row that is any of the unit's nothing has to be declared; a summary of its rows is
    # another thing
    assert chosen_of(Semi(scan(data), first(home, (), (), "rank"), negated)) == 4
    assert (
        chosen_of(Semi(scan(data), first(home, (Sort(Field(HOME)),), (), "rank"), negated)) is None
    )
    assert chosen_of(Semi(scan(data), summed, negated)) is None
    assert chosen_of(Semi(Semi(scan(data), home), other_scan(data), negated)) is None


def per_noise(plan):
    """What each part asks of the noise, in lattice steps: L1, or L2 squared."""
    fine = plan.refinement if plan.norm is Norm.L1 else plan.refinement**2
    for part in plan.parts:
        if part.distance.norm is Norm.LINF:
            steps = part.distance.value / plan.refinement
            yield (steps if plan.norm is Norm.L1 else steps**2) * part.groups
        else:
            yield part.distance.value / fine


@settings(deadline=None, max_examples=examples(4))
@given(asked(), st.integers(1, 12), st.sampled_from((Norm.L1, Norm.L2)))
def test_a_layout_is_read_only_where_no_part_needs_more_noise(case, kept, norm):
    (raw, data), _ = case
    source, found = compile_plan(raw, data, norm), compile_plan(raw, data, norm, {"people": kept})
    if data.tables["people"].unit is None:
        assert found == source
        return
    least = zip(per_noise(found), per_noise(source), strict=True)
    assert all(one <= other for one, other in least)
    context = Context(data, norm, {"people": kept})
    tracked = limit(track(prune(raw, context), context), context)
    assert found.tracked.kept == layout(tracked, context).kept
    if norm is Norm.L1:
        assert found.tracked.kept == kept, (
            "of as many rows as the limits allow, a sum is no farther"
        )


def test_a_layout_of_more_rows_is_counted_up_to_the_limits():
    data = dataset(sf.Unit("person", 2, 2))
    plan = compile_plan(
        Raw(scan(data), BY_LETTER, (CountRows(), CountUnits())), data, Norm.L1, {"visits": 99}
    )
    assert [plan.tracked.counted(part.aggregate) for part in plan.parts] == [4, 2]
    assert [part.distance.value for part in plan.parts] == [4, 2]


def test_a_sample_is_no_part_of_another_question():
    data = dataset(sf.Unit("person", 2, 2))
    summed = Semi(scan(data), PerUnit(other_scan(data), (), (COUNTED,)))
    semi, plain = (Raw(each, (), (CountRows(),)) for each in (summed, scan(data)))
    for raw, unit, kept in ((semi, "person", 4), (plain, None, 4), (plain, "person", 0)):
        with pytest.raises(ValueError, match="one by one"):
            Tracked(raw, unit, Limits(2, 2, None), 1, kept)


def test_the_notes_say_what_was_read_and_why():
    data = dataset(sf.Unit("person", 2, 2))
    simple = Raw(scan(data), BY_LETTER, (CountRows(),))
    summed = PerUnit(scan(data), (), (COUNTED,))
    kept = {"visits": 4}

    def notes(raw, norm, kept=kept):
        return layout_notes(compile_plan(raw, data, norm, kept), data, kept)

    assert notes(simple, Norm.L1) == (
        "The prepared layout of visits was read: no part needs more noise for it.",
    )
    assert notes(simple, Norm.L2) == (
        "The prepared layout of visits was not read: its fixed sample would need more noise.",
    )
    assert notes(Raw(summed, (), (CountRows(),)), Norm.L1) == (
        "The prepared layout of visits was not read: the question combines the rows of a unit before it counts them.",
    )
    assert notes(simple, Norm.L1, {}) == ()
    both = Raw(joined(data), BY_LETTER, (CountRows(),))
    assert notes(both, Norm.L1) == ("The prepared layout of visits was not read: homes has none.",)
    assert notes(both, Norm.L1, {"visits": 4, "homes": 1}) == (
        "The prepared layout of visits, homes was read: no part needs more noise for it.",
    )
    looked_up = Raw(Semi(scan(data), other_scan(data)), BY_LETTER, (CountRows(),))
    assert notes(looked_up, Norm.L1) == (
        "The prepared layout of visits was not read: of visits it has a sample only, where any row of a unit counts.",
    )
