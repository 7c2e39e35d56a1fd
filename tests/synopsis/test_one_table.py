# SPDX-License-Identifier: Apache-2.0
"""Several tables in one charge are refused by name, with what to do instead."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.synopsis import Spine, cells, census_plan, plan
from sfumato.synopsis.one_table import require_one_table

COLUMNS = {"county": sf.Category("a", "b"), "sex": sf.Category("F", "M")}
TOWN = Dataset(
    "town",
    {name: sf.Table(f"{name}.csv", columns=COLUMNS) for name in ("persons", "households")},
)
SPINE = Spine("nation > county", pa.table({"nation": ["n", "n"], "county": ["a", "b"]}))
BOTH = ("persons", "households")


@pytest.mark.parametrize("several", [BOTH, list(BOTH), dict.fromkeys(BOTH, 1)])
def test_several_tables_are_refused_by_name(several):
    found = []
    with pytest.raises(WrongUse) as refused:
        census_plan(TOWN, several, SPINE, tables={"county": ["sex"]}, rho=1)
    found.append(refused.value)
    with pytest.raises(WrongUse) as refused:
        plan(TOWN, several, cells("sex"), rho=1)
    found.append(refused.value)
    for error in found:
        assert "'persons', 'households'" in str(error) and "their costs add up" in str(error)


def test_one_table_passes():
    require_one_table("persons")
    assert census_plan(TOWN, "persons", SPINE, tables={"county": ["sex"]}, rho=1)
