# SPDX-License-Identifier: Apache-2.0
"""What ended leases leave: voided where nothing was read, forfeited where something may have
been.
"""

import pytest

from sfumato.ledger import Ledger
from sfumato.ledger import closing as room
from sfumato.ledger.closing import close_overdue
from sfumato.ledger.store.base import EXECUTING, FORFEITED, RESERVED, VOIDED, Rows
from sfumato.ledger.verify import verify
from tests.contracts.charges import charges, in_state, state_of


def close(ledger: Ledger, until: int | None) -> int:
    def transaction(rows: Rows) -> int:
        return close_overdue(rows, until, "d", "expired")

    return ledger.store.write(transaction)


def test_what_was_only_reserved_is_voided_and_the_rest_is_forfeited(ledger: Ledger) -> None:
    first, second = in_state(ledger, RESERVED, "a"), in_state(ledger, EXECUTING, "b")
    assert close(ledger, None) == 2
    assert (state_of(ledger, first), state_of(ledger, second)) == (VOIDED, FORFEITED)
    assert {row.reason for row in charges(ledger)} == {"expired"}
    balance = ledger.balance("d")
    assert (balance.spent.epsilon, balance.reserved.epsilon) == (10**11, 0)
    assert verify(ledger).problems == ()


def test_a_lease_that_has_not_ended_is_left_alone(ledger: Ledger) -> None:
    charge = in_state(ledger, EXECUTING)
    (row,) = charges(ledger)
    assert close(ledger, row.lease_until - 1) == 0
    assert state_of(ledger, charge) == EXECUTING
    assert close(ledger, row.lease_until) == 1


def test_one_unit_closes_so_many_and_no_more(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_AT_ONCE", 2)
    for each in range(5):
        in_state(ledger, RESERVED, f"q{each}")
    assert [close(ledger, None) for _ in range(4)] == [2, 2, 1, 0]
