# SPDX-License-Identifier: Apache-2.0
"""The least cost of a stated error."""

from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import synopsis
from sfumato.errors import InvalidNumber, TargetUnreachable, WrongUse
from sfumato.metadata.dataset import Dataset

COLUMNS = {"age": sf.Integer(0, 63), "sex": sf.Category("F", "M")}
DATA = Dataset("d", {"t": sf.Table("t.csv", columns=COLUMNS)})
ONE = synopsis.ranges("age")
BOTH = ONE * synopsis.cells("sex") + synopsis.cells("sex")


@pytest.mark.parametrize("wanted", [ONE, BOTH])
@pytest.mark.parametrize(("most", "grid"), [("epsilon", 10**6), ("rho", 10**9)])
@pytest.mark.parametrize("error", [20, synopsis.Worst("40.5")])
def test_no_smaller_cost_reaches_the_error(wanted, most, grid, error):
    found = synopsis.plan(DATA, "t", wanted, error=error, **{f"max_{most}": 10})
    cost = found.allowance.amount
    assert f"at {most} {float(cost):.9g}; nothing was charged" in repr(found)
    less = synopsis.plan(DATA, "t", wanted, **{most: cost - Fraction(1, grid)})
    if isinstance(error, synopsis.Worst):
        assert found.worst() <= 40.5 < less.worst()
    else:
        assert found.error() <= 20 < less.error()


def test_an_error_out_of_reach_is_refused_with_the_least(tmp_path):
    with pytest.raises(TargetUnreachable, match=r"the least is \+- "):
        synopsis.plan(DATA, "t", ONE, error=1, max_rho="0.001")
    table = sf.Table(pa.table({"age": [1, 2], "sex": ["F", "M"]}), columns=COLUMNS)
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(1, "1e-6"), ledger=tmp_path / "l.db"
    ) as session:
        with pytest.raises(TargetUnreachable):
            synopsis.measure(session, "t", ONE, error=1, max_epsilon="0.01")
        found = synopsis.measure(session, "t", BOTH, error=500, max_epsilon=1)
        assert found.plan.error() <= 500


@pytest.mark.parametrize(
    "how",
    [
        {"error": 5},
        {"error": 5, "max_rho": 1, "max_epsilon": 1},
        {"error": 5, "max_rho": 1, "rho": 1},
        {"max_rho": 1, "rho": 1},
        {"error": 0, "max_rho": 1},
        {"error": synopsis.Worst(-1), "max_rho": 1},
    ],
)
def test_what_is_no_wanted_error_is_refused(how):
    with pytest.raises((WrongUse, InvalidNumber)):
        synopsis.plan(DATA, "t", ONE, **how)
