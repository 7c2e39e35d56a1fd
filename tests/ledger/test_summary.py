# SPDX-License-Identifier: Apache-2.0
"""What happened to a dataset, gathered for people."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.errors import LedgerUnavailable
from sfumato.ledger import Ledger
from sfumato.ledger.store.base import COMMITTED, FORFEITED
from sfumato.ledger.summary import asked_statements, summary
from sfumato.privacy import Budget
from tests.contracts.charges import contract, in_state, opened, paid, pure

OLD = Path(__file__).parent / "data" / "format-1.sqlite"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = opened(tmp_path / "l.db")
    ledger.adopt(contract(Budget(2), "e"), Budget(2))
    paid(
        ledger,
        replace(pure("0.1", "one", analyst="ann"), purpose="research"),
        b'{"statement":"SELECT 1"}',
    )
    paid(ledger, pure("0.1", "two"), b"no JSON")
    paid(ledger, pure("0.1", "three", dataset="e"))
    in_state(ledger, "forfeited", "four")
    in_state(ledger, "voided", "five")
    ledger.freeze("d", purpose="research", reason="stop")
    return ledger


def test_what_was_released_comes_newest_first_with_its_sql(ledger: Ledger) -> None:
    found = summary(ledger, "d").released
    assert [(each.scope.analyst, each.statement, each.state) for each in found] == [
        ("owner", "", FORFEITED),
        ("owner", "", COMMITTED),
        ("ann", "SELECT 1", COMMITTED),
    ]
    assert {each.cost.epsilon for each in found} == {10**11}


def test_statements_are_those_of_the_answers_of_the_dataset(ledger: Ledger) -> None:
    paid(ledger, pure("0.1", "six"), b'{"statement":"SELECT 1"}')
    paid(ledger, pure("0.1", "seven"), b'{"statement":"SELECT 2"}')
    paid(ledger, pure("0.1", "eight", dataset="e"), b'{"statement":"SELECT 3"}')
    assert asked_statements(ledger, "d") == ["SELECT 1", "SELECT 2"]
    assert asked_statements(ledger, "e") == ["SELECT 3"]


def test_the_acts_of_the_owner_come_newest_first(ledger: Ledger) -> None:
    assert [(act.kind, act.account) for act in summary(ledger, "d").acts] == [
        ("freeze", "d/research"),
        ("account", "d"),
    ]


def test_charges_are_counted_by_account(ledger: Ledger) -> None:
    found = summary(ledger, "d")
    assert [found.paid[each] for each in ("d", "d/research", "d/unstated", "d/unstated/owner")] == [
        3,
        1,
        2,
        2,
    ]
    assert [each.scope.id for each in found.standings] == sorted(
        ["d", "d/research", "d/research/ann", "d/unstated", "d/unstated/owner"]
    )


def test_the_ledger_is_verified_on_the_way(ledger: Ledger) -> None:
    assert summary(ledger, "d").report.problems == ()
    row = ledger.store.peek("d")
    ledger.store.write(lambda rows: rows.put_account(row._replace(frozen="x")))
    assert summary(ledger, "d").report.problems != ()


def test_a_dataset_that_is_not_there_has_no_summary(ledger: Ledger) -> None:
    with pytest.raises(LedgerUnavailable, match="no account of dataset 'f'"):
        summary(ledger, "f")


def test_what_format_1_wrote_is_told_too(tmp_path: Path) -> None:
    shutil.copy(OLD, tmp_path / "l.db")
    found = summary(Ledger.open(tmp_path / "l.db"), "d")
    assert found.acts[-1].kind == "account"
    assert [act.kind for act in found.acts].count("thaw") == 1
    assert len(found.released) == 8


def test_only_the_latest_are_kept(ledger: Ledger) -> None:
    for number in range(45):
        ledger.freeze("d", purpose="p", reason=str(number))
    acts = summary(ledger, "d").acts
    assert [act.body["reason"] for act in acts] == [str(number) for number in range(44, 4, -1)]
