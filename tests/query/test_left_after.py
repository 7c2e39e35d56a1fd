# SPDX-License-Identifier: Apache-2.0
"""What a preview says of what is left, against hand arithmetic."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.accounting.budget_gates import Charge, Gates
from sfumato.ledger.balance import Balance
from sfumato.ledger.store.base import AccountRow
from sfumato.ledger.store.sqlite import SQLite
from sfumato.query import choose
from sfumato.query.cost import Cost
from sfumato.query.left_after import CLOSES, left_lines, left_now

# Limits of epsilon 2 and rho 0.5, in the ledger's integers.
GATES = Gates(2 * 10**12, 5 * 10**11, 10**18, None)
PURE = Gates(10**12, None, 0, None)


def test_both_gates_are_shown_before_and_after() -> None:
    spent = Balance(GATES, Charge(5 * 10**11, 125 * 10**9, 0), Charge(25 * 10**10, 3125 * 10**7, 0))
    assert left_lines([spent], Cost("0.5", "0.125", "0", ()).charge) == [
        "left now    epsilon 1.25 (pure gate), rho 0.34375 (zCDP gate)",
        "left after  epsilon 0.75 (pure gate), rho 0.21875 (zCDP gate)",
    ]


def test_the_least_of_all_accounts_that_pay_counts() -> None:
    both = [Balance(GATES), Balance(PURE)]
    assert left_lines(both, Cost("0.25", "0.03125", "0", ()).charge) == [
        "left now    epsilon 1 (pure gate)",
        "left after  epsilon 0.75 (pure gate)",
    ]


def test_a_rho_that_closes_the_pure_gate_is_warned_of_once() -> None:
    cost = Cost("unbounded", "0.25", "0", ()).charge
    assert left_lines([Balance(GATES)], cost) == [
        "left now    epsilon 2 (pure gate), rho 0.5 (zCDP gate)",
        "left after  pure gate closed, rho 0.25 (zCDP gate)",
        CLOSES,
    ]
    closed = Balance(GATES, Charge(None, 10**11, 0))
    assert left_lines([closed], cost) == [
        "left now    pure gate closed, rho 0.4 (zCDP gate)",
        "left after  pure gate closed, rho 0.15 (zCDP gate)",
    ]


def test_what_no_gate_can_pay_is_too_little() -> None:
    lines = left_lines([Balance(GATES)], Cost("3", "4.5", "0", ()).charge)
    assert lines[1] == "left after  too little epsilon (pure gate), too little rho (zCDP gate)"


def test_a_charge_with_delta_says_what_is_left_of_delta() -> None:
    # GATES has 1e-6 for events, in multiples of 1e-24
    cost = Cost("0.5", "0.125", "4e-7", ()).charge
    spent = Balance(GATES, Charge(0, 0, 2 * 10**17))
    now, after = left_lines([spent, Balance(GATES)], cost)
    assert now.endswith("(zCDP gate), delta 0.0000008")
    assert after.endswith("(zCDP gate), delta 0.0000004")
    _, after = left_lines([Balance(GATES, Charge(0, 0, 7 * 10**17))], cost)
    assert after.endswith("rho 0.375 (zCDP gate), too little delta")


def test_previews_of_a_session_say_it_until_it_is_closed(tmp_path: Path) -> None:
    table = sf.Table(pa.table({"a": [1, 2, 3]}), columns={"a": sf.Integer(0, 9)})
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(2), ledger=tmp_path / "l.db"
    ) as session:
        shown = session.preview("SELECT COUNT(*) AS n FROM t", epsilon="0.5")
        assert "left now    epsilon 2 (pure gate)\nleft after  epsilon 1.5 (pure gate)" in repr(
            shown
        )
        session.query("SELECT COUNT(*) AS n FROM t", epsilon="0.5")
        # as it is when it is shown
        assert "left now    epsilon 1.5 (pure gate)" in shown._repr_html_()
    assert "left" not in repr(shown)
    assert left_now(None, shown.cost.charge) == []


def test_a_preview_reads_each_account_once_and_computes_its_cost_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = sf.Table(pa.table({"a": [1, 2, 3]}), columns={"a": sf.Integer(0, 9)})
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(2), ledger=tmp_path / "l.db"
    ) as session:
        shown = session.preview("SELECT COUNT(*) AS n FROM t", epsilon="0.5")
        read: list[str] = []
        peek, cost_of, costs = SQLite.peek, choose.cost_of, []

        def peeked(store: SQLite, account_id: str) -> AccountRow | None:
            read.append(account_id)
            return peek(store, account_id)

        def computed(*arguments: Any) -> Cost:
            costs.append(arguments)
            return cost_of(*arguments)

        monkeypatch.setattr(SQLite, "peek", peeked)
        monkeypatch.setattr(choose, "cost_of", computed)
        assert "left after  epsilon 1.5" in repr(shown)
    assert len(read) == len(set(read)) > 1 and read[0] == "d"
    assert len(costs) == 1


def test_previews_of_fits_say_it_too(tmp_path: Path) -> None:
    from sfumato import learning as ln
    from sfumato import synthetic as sy

    rows = pa.table({"a": [1, 2, 3], "y": [True, False, True]})
    table = sf.Table(rows, columns={"a": sf.Integer(0, 9), "y": sf.Boolean()})
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(2, "1e-6"), ledger=tmp_path / "l.db"
    ) as session:
        fit = ln.preview(session, ln.NaiveBayes(bins=4), "SELECT a, y FROM t", label="y", epsilon=1)
        rows_made = sy.preview(session, "t", rho="0.01")
        for shown in (repr(fit), repr(rows_made)):
            assert "left now    epsilon 2 (pure gate), rho " in shown
        assert CLOSES in repr(rows_made) and CLOSES not in repr(fit)
