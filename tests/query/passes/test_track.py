# SPDX-License-Identifier: Apache-2.0
"""The unit and the number of groups come from the declaration."""

import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountRows
from sfumato.plan.relation import Filter, Scan
from sfumato.plan.scalar import Constant
from sfumato.plan.status import Limits, Raw, Tracked
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes.track import MAX_GROUPS, declared, track

SEX = Column("sex", sf.Category("f", "m", missing="N"))
AGE = Column("age", sf.Integer(0, 9))


def context(unit=None, **others):
    table = sf.Table("nowhere.csv", unit=unit, columns={"sex": SEX.type, "age": AGE.type})
    return Context(Dataset("data", {"people": table, **others}), Norm.L1)


def by(*keys):
    return Raw(Scan("people"), keys, (CountRows(),))


def test_a_row_is_its_own_unit_without_limits():
    assert track(by(), context()) == Tracked(by(), None, Limits(None, None, None), 1)


def test_the_limits_are_those_of_the_unit():
    tracked = track(by(AGE), context(sf.Unit("person", max_rows=3, max_groups=2, max_rows_total=5)))
    assert (tracked.unit, tracked.limits, tracked.groups) == ("person", Limits(3, 2, 5), 10)


def test_the_unit_is_that_of_the_scanned_table_below_the_filters():
    other = sf.Table("else.csv", unit=sf.Unit("firm", max_rows=1))
    raw = Raw(Filter(Filter(Scan("firms"), Constant(True)), Constant(True)), (), (CountRows(),))
    assert track(raw, context(firms=other)).unit == "firm"


def test_missing_is_a_group_where_it_is_declared():
    assert (declared(SEX), declared(AGE)) == (3, 10)
    assert track(by(SEX, AGE), context()).groups == 30


def test_as_many_groups_as_allowed_and_no_more():
    assert track(by(Column("k", sf.Integer(1, MAX_GROUPS))), context()).groups == MAX_GROUPS
    with pytest.raises(UnsupportedSql, match=r"100,001.*each of which would be answered") as refusal:
        track(by(Column("k", sf.Integer(0, MAX_GROUPS))), context())
    assert "100,000" in refusal.value.allowed
    assert "fewer columns" in refusal.value.remedy
