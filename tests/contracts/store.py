# SPDX-License-Identifier: Apache-2.0
"""What every store owes the ledger: inherit, and give ``open_store``."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from sfumato.ledger.journal import GENESIS, chained
from sfumato.ledger.store.base import (
    COMMITTED,
    EXECUTING,
    FORFEITED,
    RESERVED,
    AccountRow,
    AnswerRow,
    ChargeRow,
    Store,
)

ACCOUNT = AccountRow("d", '{"c":1}', '{"g":1}', '{"s":0}')
CHARGE = ChargeRow("c1", "d", "owner", RESERVED, "q1", "s1", '{"e":1}', '{"k":1}', "")


class StoreContract:
    """The suite. ``reopen`` closes and opens the same place again."""

    @pytest.fixture
    def store(self, open_store: Callable[[], Store]) -> Store:
        """A store with one account and one charge."""
        opened = open_store()
        with opened.transaction():
            opened.put_account(ACCOUNT)
            opened.put_charge(CHARGE)
        return opened

    def test_an_empty_store_holds_nothing(self, open_store: Callable[[], Store]) -> None:
        store = open_store()
        assert store.last_entry() is None
        assert (list(store.entries()), store.accounts(), list(store.charges()), list(store.answers())) == (
            [],
            [],
            [],
            [],
        )
        assert (store.account("d"), store.charge("c1"), store.answer("q1")) == (None, None, None)
        assert store.first_answer("s1") is None

    def test_rows_come_back_as_they_went_in(self, store: Store) -> None:
        assert (store.account("d"), store.accounts()) == (ACCOUNT, [ACCOUNT])
        assert (store.charge("c1"), list(store.charges())) == (CHARGE, [CHARGE])

    def test_an_account_put_again_changes_what_is_spent_and_nothing_else(self, store: Store) -> None:
        with store.transaction():
            store.put_account(AccountRow("d", "other", "other", '{"s":1}'))
        assert store.account("d") == replace(ACCOUNT, spent='{"s":1}')

    def test_a_charge_put_again_changes_its_state_and_reason_and_nothing_else(self, store: Store) -> None:
        with store.transaction():
            store.put_charge(replace(CHARGE, state=FORFEITED, reason="engine", cost="other", question="other"))
        assert store.charge("c1") == replace(CHARGE, state=FORFEITED, reason="engine")

    def test_charges_are_found_by_state_in_the_order_they_came(self, store: Store) -> None:
        with store.transaction():
            for name, state in (("c3", EXECUTING), ("c2", COMMITTED), ("c0", EXECUTING)):
                store.put_charge(replace(CHARGE, id=name, state=state))
        assert [row.id for row in store.charges()] == ["c1", "c3", "c2", "c0"]
        assert [row.id for row in store.charges(EXECUTING)] == ["c3", "c0"]
        assert [row.id for row in store.charges(RESERVED, COMMITTED)] == ["c1", "c2"]

    def test_a_transaction_that_fails_leaves_nothing(self, store: Store) -> None:
        with suppress(RuntimeError), store.transaction():
            store.put_account(replace(ACCOUNT, spent="lost"))
            store.put_charge(replace(CHARGE, id="lost"))
            store.put_answer(CHARGE, b"lost")
            raise RuntimeError
        assert (store.account("d"), store.charge("lost"), store.answer("q1")) == (ACCOUNT, None, None)

    def test_the_journal_is_kept_in_order(self, store: Store) -> None:
        entries = [chained(1, "now", "thaw", {"a": 1}, GENESIS)]
        entries.append(chained(2, "now", "thaw", {"a": 2}, entries[0].hash))
        with store.transaction():
            for entry in entries:
                store.append(entry)
        assert list(store.entries()) == entries
        assert store.last_entry() == entries[1]

    def test_answers_are_bytes_and_the_first_of_a_statement_stays_the_first(self, store: Store) -> None:
        later = replace(CHARGE, id="c2", question="q2")
        with store.transaction():
            store.put_charge(later)
            store.put_answer(CHARGE, b"\x00first")
            store.put_answer(later, b"second")
        assert (store.answer("q1"), store.answer("q2"), store.first_answer("s1")) == (
            b"\x00first",
            b"second",
            b"\x00first",
        )
        assert list(store.answers()) == [
            AnswerRow("c1", "q1", "s1", b"\x00first"),
            AnswerRow("c2", "q2", "s1", b"second"),
        ]

    def test_failures_are_counted_by_analyst_until_they_are_seen(self, store: Store) -> None:
        with store.transaction():
            for index, reason in enumerate(["engine", "crash", "interrupted", ""]):
                store.put_charge(replace(CHARGE, id=f"f{index}", state=FORFEITED, reason=reason))
            store.put_charge(replace(CHARGE, id="other", analyst="other", state=FORFEITED, reason="engine"))
            store.put_charge(replace(CHARGE, id="paid", state=COMMITTED, reason="engine"))
        assert (store.failures("d", "owner"), store.failures("d", "other"), store.failures("e", "owner")) == (2, 1, 0)
        with store.transaction():
            assert store.acknowledge("d") == 5
        assert store.failures("d", "owner") == 0

    def test_what_was_written_is_there_when_it_is_opened_again(
        self, store: Store, open_store: Callable[[], Store]
    ) -> None:
        store.close()
        again = open_store()
        assert (again.account("d"), again.charge("c1")) == (ACCOUNT, CHARGE)
