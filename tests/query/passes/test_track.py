# SPDX-License-Identifier: Apache-2.0
"""The unit, its limits and the number of groups come from the declarations.

What mixes units is refused.
"""

from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.errors import MissingDeclaration, UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountRows
from sfumato.plan.owner import Owner, owner_of
from sfumato.plan.relation import (
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Scan,
    Semi,
    Union,
    UnitJoin,
    first,
)
from sfumato.plan.scalar import Constant, Member
from sfumato.plan.stages import Limits, Raw, Tracked
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes import track as module
from sfumato.query.passes.track import MAX_GROUPS, track

AGE = Column("age", sf.Integer(0, 9))
SEX = Column("sex", sf.Category("f", "m"))
DATASET = Dataset(
    "hospital",
    {
        "patients": sf.Table("p.csv", unit=sf.Unit("id", max_rows=1, max_groups=1)),
        "visits": sf.Table("v.csv", unit=sf.Unit("patient", 3, 2, 5, name="id")),
        "drugs": sf.Table("d.csv", unit=sf.Unit("visit", via="visits.patient", max_rows=7)),
        "firms": sf.Table("f.csv", unit=sf.Unit("firm", max_rows=1)),
        "rows": sf.Table("r.csv"),
        "others": sf.Table("o.csv"),
        "prices": sf.Table("c.csv", public=True),
        "learnt": sf.Table("l.csv", unit=sf.Unit("id", 1, sf.AUTO)),
    },
)
CONTEXT = Context(DATASET, Norm.L1)
COUNT = (CountRows(),)


def scan(table):
    return Scan(table, f"{table}.", owner=owner_of(DATASET, table))


PATIENTS, VISITS, DRUGS, FIRMS, ROWS, OTHERS, PRICES, LEARNT = map(scan, DATASET.tables)
RANK = Column("rank", sf.Integer(1, 9))
ONE = PerUnit(VISITS, (), ())


def tracked(relation, *keys, aggregates=COUNT):
    return track(Raw(relation, keys, aggregates), CONTEXT)


def key(column, codes):
    return GroupKey(Value.of(column), codes)


def test_a_row_is_its_own_unit_without_limits():
    assert tracked(ROWS) == Tracked(Raw(ROWS, (), COUNT), None, Limits(None, None, None), 1)


@pytest.mark.parametrize(
    ("relation", "limits"),
    [
        (VISITS, (3, 2, 5)),
        (DRUGS, (7, None, None)),
        (Filter(VISITS, Constant(True)), (3, 2, 5)),
        (PublicJoin(VISITS, PRICES, Constant(1), AGE), (3, 2, 5)),
        (KeyJoin(VISITS, PATIENTS, Constant(1), AGE), (3, 2, 5)),
        (UnitJoin(VISITS, ONE), (3, 2, 5)),
        (Semi(VISITS, PATIENTS), (3, 2, 5)),
        (PerUnit(VISITS, ((AGE, Value("v", AGE.type, Constant(1))),), ()), (3, 2, 5)),
        (Ranked(VISITS, (), (), RANK), (3, 2, 5)),
        (Union((VISITS, PATIENTS), ((), ()), ()), (4, 3, None)),
        (Union((VISITS, VISITS), ((), ()), ()), (6, 4, 10)),
        (Union((VISITS, ONE), ((), ()), ()), (4, 3, 6)),
        (Union((VISITS, DRUGS), ((), ()), ()), (10, None, None)),
        (FIRMS, (1, None, 1)),
        (Union((FIRMS, FIRMS), ((), ()), ()), (2, 2, 2)),
        (ONE, (1, 1, 1)),
        (first(VISITS, (), (), "r"), (1, 1, 1)),
        (Filter(ONE, Constant(True)), (1, 1, 1)),
        (Filter(Ranked(VISITS, (), (), RANK), Member(Constant(1), (2,))), (3, 2, 5)),
    ],
)
def test_limits_are_those_of_the_rows_and_one_where_a_unit_has_one_row(relation, limits):
    found = tracked(relation)
    unit = "firm" if relation in (FIRMS, Union((FIRMS, FIRMS), ((), ()), ())) else "id"
    assert (found.unit, found.limits) == (unit, Limits(*limits))


def test_the_number_of_groups_is_that_of_the_declared_keys():
    assert tracked(ROWS, key(SEX, (0, 1)), key(AGE, (1, 4, 7))).groups == 6
    assert tracked(ROWS, GroupKey(Value.of(SEX), (0, 1), missing=True)).groups == 3
    assert tracked(ROWS, key(SEX, (0, 1)), key(AGE, None)).groups is None


def test_as_many_groups_as_allowed_and_no_more():
    wide = Column("k", sf.Integer(0, MAX_GROUPS))
    every = tuple(range(MAX_GROUPS + 1))
    assert tracked(ROWS, key(wide, every[1:])).groups == MAX_GROUPS
    with pytest.raises(
        UnsupportedSql, match=r"100,001.*each of which would be answered"
    ) as refusal:
        tracked(ROWS, key(wide, every))
    assert "100,000" in refusal.value.allowed
    assert "fewer columns" in refusal.value.remedy


MIXED = {
    "two units": Semi(VISITS, FIRMS),
    "a unit and rows": UnitJoin(VISITS, PerUnit(ROWS, (), ())),
    "deep below": Semi(VISITS, Semi(PATIENTS, Filter(ROWS, Constant(True)))),
    "side by side": Union((VISITS, FIRMS), ((), ()), ()),
}


@pytest.mark.parametrize("name", MIXED)
def test_tables_of_different_units_are_never_mixed(name, monkeypatch):
    with pytest.raises(UnsupportedSql, match="Tables of different units") as refusal:
        tracked(MIXED[name])
    assert "name=" in refusal.value.remedy and "via=" in refusal.value.remedy
    monkeypatch.setattr(module, "_unit", lambda relation, dataset: "id")
    tracked(MIXED[name])


@pytest.mark.parametrize(
    "relation", [Semi(ROWS, ROWS), PerUnit(ROWS, (), ()), Union((ROWS, OTHERS), ((), ()), ())]
)
def test_rows_as_units_allow_no_question_about_several_rows(relation):
    with pytest.raises(UnsupportedSql, match="several rows of a unit") as refusal:
        tracked(relation)
    assert "sf.Unit" in refusal.value.remedy


def test_rows_as_units_are_filtered_and_joined_to_public_tables():
    relation = PublicJoin(Filter(ROWS, Constant(True)), PRICES, Constant(1), AGE)
    assert tracked(relation).unit is None


@pytest.mark.parametrize("relation", [PRICES, Filter(PRICES, Constant(True)), Semi(VISITS, PRICES)])
def test_a_public_table_by_itself_is_refused(relation):
    with pytest.raises(UnsupportedSql, match=r"'prices'.* is public: read it directly"):
        tracked(relation)


@pytest.mark.parametrize(
    "table", [ROWS, VISITS, replace(VISITS, owner=None), replace(PRICES, owner=Owner(("id",)))]
)
def test_a_join_on_a_value_is_to_a_public_table(table):
    for source in (VISITS, ROWS):
        with pytest.raises(UnsupportedSql, match="A join to the private table") as refusal:
            tracked(PublicJoin(source, table, Constant(1), AGE))
        assert "public=True" in refusal.value.allowed


@pytest.mark.parametrize(
    "wrong",
    [
        replace(VISITS, owner=None),
        replace(VISITS, owner=Owner(("visit",))),
        replace(ROWS, owner=Owner(("id",))),
    ],
)
def test_every_private_row_has_the_declared_owner(wrong):
    for relation in (wrong, Semi(PATIENTS, wrong), UnitJoin(PATIENTS, PerUnit(wrong, (), ()))):
        with pytest.raises(TypeError, match="declared owner"):
            tracked(relation)


def test_a_limit_still_to_be_learnt_is_asked_of_the_session():
    with pytest.raises(
        MissingDeclaration, match=r"max_groups of table 'learnt' is sf\.AUTO"
    ) as refusal:
        tracked(LEARNT)
    assert "session.query" in refusal.value.remedy
    # where a unit has one row, nothing has to be learnt
    assert tracked(PerUnit(LEARNT, (), ())).limits == Limits(1, 1, 1)
