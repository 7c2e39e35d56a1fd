# SPDX-License-Identifier: Apache-2.0
"""An auditor of a ledger on a server, who may only SELECT."""

from collections.abc import Iterator

import psycopg
import pytest

from sfumato.errors import LedgerBusy, LedgerCorrupt, LedgerMissing, LedgerReadOnly, LedgerTooNew
from sfumato.ledger import Ledger, verify
from sfumato.ledger.store.format import FORMAT
from sfumato.ledger.store.postgres_reader import PostgresReader
from sfumato.ledger.summary import summary
from sfumato.privacy import Budget
from tests.contracts.charges import contract, in_state, paid, pure


@pytest.fixture
def auditor(database: str) -> Iterator[str]:
    """The address of a ledger for a role that may only SELECT.

    A dead process left a charge open.
    """
    ledger = Ledger.open(database)
    ledger.adopt(contract(Budget(1)), Budget(1))
    paid(ledger, pure("0.1", "one"), b"answer", released=("p",))
    in_state(ledger, "executing", "two")
    ledger.close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS auditor")
        connection.execute("CREATE ROLE auditor LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA sfumato TO auditor")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA sfumato TO auditor")
        # a lease that has ended: whoever may write would close the charge
        connection.execute("UPDATE sfumato.charge SET lease_until = 1 WHERE state = 'executing'")
    yield database.replace("sfumato@", "auditor@", 1)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP OWNED BY auditor")
        connection.execute("DROP ROLE auditor")


def test_a_role_that_may_only_select_is_enough(auditor: str) -> None:
    ledger = Ledger.open(auditor, read_only=True)
    assert verify(ledger).problems == ()
    assert len(summary(ledger, "d").released) == 1
    assert [each.scope.id for each in ledger.accounts()] == ["d", "d/unstated", "d/unstated/owner"]
    kinds = ledger.store.read(lambda rows: [each.kind for each in rows.entries("d")])
    assert kinds == ["account", "reserve", "execute", "commit", "reserve", "execute"]
    assert ledger.standing("d").reserved.epsilon == 10**11
    ledger.close()


def test_an_opening_that_writes_would_be_noticed(auditor: str) -> None:
    with pytest.raises(LedgerReadOnly):
        Ledger.open(auditor)


def test_what_would_change_it_is_refused(database: str, auditor: str) -> None:
    for address in (auditor, database):
        ledger = Ledger.open(address, read_only=True)
        store = ledger.store
        for act in (
            lambda: ledger.reserve(pure("0.1", "three")),  # noqa: B023
            lambda: store.read(lambda rows: rows.lock(["d"])),  # noqa: B023
            lambda: store.read(lambda rows: rows.put_account(rows.account("d"))),  # noqa: B023
        ):
            with pytest.raises(LedgerReadOnly, match="opened to be read"):
                act()
        ledger.close()


def test_an_older_or_a_newer_format_is_refused_by_name(database: str, auditor: str) -> None:
    for number, error in ((FORMAT - 1, LedgerReadOnly), (FORMAT + 1, LedgerTooNew)):
        with psycopg.connect(database) as connection:
            connection.execute(
                "UPDATE sfumato.meta SET value = %s WHERE name = 'version'", (str(number),)
            )
        with pytest.raises(error, match=f"format {number}"):
            PostgresReader(auditor)


def test_what_is_no_ledger_is_refused(database: str) -> None:
    with pytest.raises(LedgerMissing):
        PostgresReader(database)
    with psycopg.connect(database) as connection:
        connection.execute("CREATE SCHEMA sfumato")
        connection.execute("CREATE TABLE sfumato.meta (name TEXT, value TEXT)")
    with pytest.raises(LedgerCorrupt):
        PostgresReader(database)


def test_a_fork_has_no_ledger(auditor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = PostgresReader(auditor)
    with monkeypatch.context() as patched:
        patched.setattr("os.getpid", lambda: -1)
        with pytest.raises(LedgerBusy, match="fork"):
            store.damage()
        store.close()  # leaves the connection to its parent
    assert store.damage() == []
    store.checkpoint()
    store.close()
