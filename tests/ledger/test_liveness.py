# SPDX-License-Identifier: Apache-2.0
"""A ledger that is being filled, or has moved, is not opened."""

from datetime import timedelta
from pathlib import Path

import pytest

from sfumato.errors import LedgerIncomplete, LedgerMoved, LedgerUnavailable, WrongUse
from sfumato.ledger import Ledger, liveness
from sfumato.ledger.store.base import LOSS, SUCCESSOR, UNFINISHED
from tests.contracts.charges import opened


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        (UNFINISHED, LedgerUnavailable, "is not ready: something was not finished"),
        (SUCCESSOR, LedgerMoved, "has moved to 'something'"),
        (LOSS, LedgerIncomplete, "may have forgotten what was spent: something"),
    ],
)
def test_a_ledger_that_must_not_charge_is_not_opened(
    tmp_path: Path, name: str, error: type[Exception], says: str
) -> None:
    ledger = opened(tmp_path / "l.db")
    ledger.store.write(lambda rows: rows.put_about(name, "something"))
    ledger.close()
    with pytest.raises(error, match=says):
        Ledger.open(tmp_path / "l.db")
    # who only looks may look
    assert Ledger.open(tmp_path / "l.db", read_only=True).balance("d").spent.epsilon == 0


def test_a_ledger_that_did_not_ask_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.ledger.spend.require_live", lambda _: None)
    with pytest.raises(pytest.fail.Exception):
        test_a_ledger_that_must_not_charge_is_not_opened(
            tmp_path, SUCCESSOR, LedgerMoved, "has moved"
        )


def test_a_session_that_is_open_while_the_ledger_moves_opens_no_account_and_thaws_none(
    tmp_path: Path,
) -> None:
    ledger = opened(tmp_path / "l.db")
    ledger.store.write(lambda rows: rows.put_about(SUCCESSOR, "elsewhere"))
    with pytest.raises(LedgerMoved):
        ledger.thaw("d")
    assert liveness.moved_reason("x") != liveness.recovered_reason("x")


@pytest.mark.parametrize(
    "lease", [timedelta(0), timedelta(seconds=-1), timedelta(microseconds=999)]
)
def test_a_lease_is_positive(tmp_path: Path, lease: timedelta) -> None:
    with pytest.raises(WrongUse, match="lease="):
        Ledger.open(tmp_path / "l.db", lease=lease)
    assert liveness.lease_milliseconds(timedelta(milliseconds=1)) == 1
