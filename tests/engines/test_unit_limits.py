# SPDX-License-Identifier: Apache-2.0
"""The limits of a unit are those of the reference: each one that is wrong is noticed."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import unit_limits
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.privacy.distance import Norm
from tests.contracts.conformance import noticed
from tests.contracts.people import EXACTLY
from tests.contracts.verbatim import Verbatim, changed

_weight, _weighed, _most = unit_limits._weight, unit_limits.weighed, unit_limits.most_rows
_kept, _by = unit_limits.kept, unit_limits.group_order
OTHER = {Norm.L1: Norm.L2, Norm.L2: Norm.L1}
MUTANTS = {
    "one group for each unit": ("is_spread", lambda plan: False),
    "no weight": ("most_rows", lambda plan: None),
    "a row more before it is weighed": (
        "most_rows",
        lambda plan: None if _most(plan) is None else _most(plan) + 1,
    ),
    "the weight of the other norm": (
        "weighed",
        lambda plan, pairs, norm, windows: _weighed(plan, pairs, OTHER[norm], windows=windows),
    ),
    "a weight rounded up": (
        "_weight",
        lambda plan, norm, most: Verbatim(f"({printed(_weight(plan, norm, most))} + 1)"),
    ),
    "units within their limits that lose weight": changed(
        unit_limits, "weighed", "coalesce(weight, ", "coalesce(weight - 1, "
    ),
    "units beyond their limits that are left as they are": changed(
        unit_limits, "weighed", "WHERE weight < ", "WHERE -weight > "
    ),
    "squares that are not added up": changed(
        unit_limits, "weighed", "least(n, 2) * least(n, 2)", "least(n, 2)"
    ),
    "one group more": ("kept", lambda plan: None if _kept(plan) is None else _kept(plan) + 1),
    "groups in order of the keys": ("group_order", lambda plan: _by(plan)[1:]),
    "a tie for two groups": (
        "group_order",
        lambda plan: (Verbatim("h % 2"), Verbatim("k0 NULLS LAST")),
    ),
    "groups of all units together": changed(unit_limits, "placed", "PARTITION BY unit", ""),
    "rows counted before they are cut": changed(
        unit_limits, "weighed", "sum(least(n, 2))", "sum(n)"
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_limit_is_noticed(monkeypatch, mutant):
    monkeypatch.setattr(unit_limits, *MUTANTS[mutant])
    assert noticed(DuckDB)


def test_the_least_of_the_limits_that_are_set():
    assert unit_limits.least(3, None, 2) == 2
    assert unit_limits.least(None, None) is None


def test_a_limit_that_is_not_set_cuts_nothing():
    for cut in (unit_limits.cut_to, unit_limits.at_most):
        with pytest.raises(AssertionError, match="limit"):
            cut(unit_limits.ROWS, None)


def test_a_unit_whose_total_no_type_holds_counts_nothing(monkeypatch, tmp_path):
    rows = pa.table({"u": ["a", "a", "b"], "k": ["x", "y", "x"]})
    table = sf.Table(rows, unit=sf.Unit("u", 2, 2), columns={"k": sf.Category(*"wxyz")})
    budget = sf.Budget(10**6)
    monkeypatch.setattr(unit_limits, "_weight", lambda *_: Verbatim("CAST(NULL AS BIGINT)"))
    with sf.connect({"t": table}, dataset="d", budget=budget, ledger=tmp_path / "l") as session:
        answer = session.query("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=EXACTLY)
    assert [count for _, count in answer.rows] == pytest.approx([0] * 4, abs=0.01)
