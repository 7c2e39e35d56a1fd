# SPDX-License-Identifier: Apache-2.0
"""The door of synopses: one column or several, and what is refused."""

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.query.session import Session
from sfumato.synopsis import Plan, Synopsis, Tables, TablesPlan, cells, measure, plan, ranges

TABLE = sf.Table(
    pa.table({"v": [1, 2, 2], "s": ["F", "F", "M"]}),
    columns={"v": sf.Integer(0, 7), "s": sf.Category("F", "M")},
)
DATA = Dataset("d", {"t": TABLE})


def opened(folder: Path) -> Session:
    return sf.connect({"t": TABLE}, dataset="d", budget=sf.Budget(10**6), ledger=folder / "l.db")


def test_one_column_and_several_are_told_apart(tmp_path):
    assert isinstance(plan(DATA, "t", ranges("v"), rho=1), Plan)
    assert isinstance(plan(DATA, "t", ranges("v") + cells("v"), rho=1), TablesPlan)
    with opened(tmp_path) as session:
        one = measure(session, "t", ranges("v"), epsilon=90_000)
        both = measure(session, "t", cells("v", "s"), epsilon=90_000)
    assert isinstance(one, Synopsis)
    assert isinstance(both, Tables)
    assert one.answer("v = 2").value == pytest.approx(2, abs=0.1)
    assert both.answer("v = 2 AND s = 'M'").value == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("wanted", [ranges("v"), cells("v", "s")])
def test_a_strategy_is_one_of_the_plan(tmp_path, wanted):
    with opened(tmp_path) as session:
        names = [each.name for each in plan(DATA, "t", wanted, epsilon=1).candidates]
        for name in names:
            assert measure(session, "t", wanted, epsilon=1, strategy=name).task
        with pytest.raises(WrongUse, match=names[0]):
            measure(session, "t", wanted, epsilon=1, strategy="best")


def test_what_is_no_workload_is_refused():
    with pytest.raises(WrongUse, match="workload"):
        plan(DATA, "t", "v", rho=1)
