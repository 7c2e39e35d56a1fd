# SPDX-License-Identifier: Apache-2.0
"""What a session says of its budget: also what is reserved, and the epsilon of a rho."""

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.accounting.budget_gates import Charge
from sfumato.learning import Additive, fit
from sfumato.query.account import amount_text, reserved_text
from tests.contracts.charges import pure


def session(folder: Path, delta: str = "2e-6") -> sf.Session:
    rows = pa.table({"a": list(range(100)), "y": [False, True] * 50})
    table = sf.Table(rows, columns={"a": sf.Integer(0, 99), "y": sf.Boolean()})
    return sf.connect({"t": table}, dataset="d", budget=sf.Budget(2, delta), ledger=folder / "l.db")


def test_what_a_stopped_run_reserves_is_shown(tmp_path: Path) -> None:
    def stop(place: int, places: int) -> None:
        raise KeyboardInterrupt

    with session(tmp_path) as opened:
        assert "reserved" not in repr(opened.budget)
        with pytest.raises(KeyboardInterrupt):
            fit(
                opened,
                Additive(),
                "SELECT a, y FROM t",
                label="y",
                epsilon=1,
                delta="1e-6",
                progress=stop,
            )
        budget = opened.budget
    reserved = "epsilon 1, rho 0.028012809385, delta 0.000001"
    assert f"reserved  {reserved}: for questions and runs that have not ended" in repr(budget)
    assert "<td>reserved</td>" in budget._repr_html_()
    # spent 0 and left 0 of epsilon 2 could not both be: the reserved 1 explains it
    assert budget.to_json()["reserved"]["epsilon"] == "1"
    assert budget.spent == "0" and budget.left == 1


def test_what_the_asker_reserved_is_shown_below_an_own_limit(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        ledger = opened._ledger
        ledger.allocate("d", sf.Budget(1), purpose="unstated", analyst="owner")
        ledger.reserve(pure("0.1", dataset="d"))
        own = repr(opened.budget).splitlines()[-2]
    assert own == (
        "          reserved epsilon 0.1, rho 0.005: for questions and runs that have not ended"
    )


def test_a_rho_is_shown_with_its_epsilon_at_the_delta_of_the_budget(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        assert opened.budget.planned == 0
        opened.query("SELECT COUNT(*) AS n FROM t", rho="0.02")
        budget = opened.budget
    # zCDP of 0.02 at delta 1e-6, half of the budget's: 0.8924 at order 24
    assert budget.planned is not None and 0.89 < budget.planned < 0.9
    assert "at delta 0.000002 if fixed in advance" in repr(budget)
    assert "unbounded" not in repr(budget) + budget._repr_html_()


def test_a_pure_account_has_no_epsilon_at_a_delta(tmp_path: Path) -> None:
    with session(tmp_path, "0") as opened:
        assert opened.budget.planned is None
        assert opened.budget.to_json()["planned"] is None


def test_an_amount_without_a_pure_epsilon_is_told_by_its_rho() -> None:
    half = 10**12 // 2
    assert amount_text(Charge(None, half, 0)) == "rho 0.5"
    assert reserved_text(Charge(None, half, 10**18)).startswith("rho 0.5, delta 0.000001: ")
