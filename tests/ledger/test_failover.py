# SPDX-License-Identifier: Apache-2.0
"""A standby takes the place of the server: what was acknowledged is there, or the ledger does not
charge.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sfumato.errors import AccountFrozen, LedgerIncomplete, WrongUse
from sfumato.ledger import Head, Ledger, Signer, failover, verify
from sfumato.ledger.failover import accept_server
from sfumato.ledger.store import postgres as module
from sfumato.ledger.store import postgres_schema, postgres_server
from sfumato.ledger.store.acknowledged import Acknowledged
from sfumato.ledger.store.postgres import Postgres
from sfumato.privacy.budget import Budget
from tests.contracts.charges import contract, paid, pure
from tests.contracts.postgres import Cluster
from tests.contracts.standbys import caught_up, either, failed_over, hold_back, standby

UNIT = 10**11


@pytest.fixture
def second(postgres: Cluster, database: str) -> Iterator[Cluster]:
    """A standby."""
    assert database
    with standby(postgres) as second:
        yield second


@pytest.fixture
def ledger(postgres: Cluster, second: Cluster) -> Iterator[Ledger]:
    """A ledger that has spent 0.1 of 1, of which both servers know."""
    opened = Ledger.open(either(postgres, second))
    opened.adopt(contract(Budget(1)), Budget(1))
    paid(opened, pure("0.1", "one"))
    caught_up(postgres, second)
    yield opened
    opened.close()


def test_a_standby_that_lacks_a_charge_does_not_charge(
    ledger: Ledger, postgres: Cluster, second: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_back(second)
    paid(ledger, pure("0.2", "two"))
    with failed_over(postgres, second):
        for _ in range(2):
            with pytest.raises(LedgerIncomplete, match="acknowledged"):
                ledger.reserve(pure("0.9", "three"))
        # and not for somebody who was never told of it
        with pytest.raises(LedgerIncomplete, match="was kept on the server"):
            Ledger.open(second.url("postgres"))
        # stored answers stay free
        assert ledger.answer("one") is not None
        # mutants: each of both defences refuses alone
        with monkeypatch.context() as blind:
            blind.setattr(module, "_moved", lambda _: "")
            with pytest.raises(LedgerIncomplete, match="acknowledged"):
                ledger.reserve(pure("0.9", "three"))
        monkeypatch.setattr(Acknowledged, "ends", lambda _: {})
        monkeypatch.setattr(Acknowledged, "missing_from", lambda *_: "")
        with pytest.raises(LedgerIncomplete, match="was kept on the server"):
            ledger.reserve(pure("0.9", "three"))
        # without both, 1.1 is spent of 1
        monkeypatch.setattr(Postgres, "_require_all", lambda *_: None)
        assert ledger.reserve(pure("0.9", "three"))


def test_a_standby_that_has_everything_charges_once_the_owner_has_said_so(
    ledger: Ledger, postgres: Cluster, second: Cluster, tmp_path: Path
) -> None:
    paid(ledger, pure("0.2", "two"))
    head = ledger.store.read(
        lambda rows: Signer(tmp_path / "key").sign(ledger.store.identity, rows)
    )
    caught_up(postgres, second)
    with failed_over(postgres, second):
        with pytest.raises(LedgerIncomplete, match="was kept on the server"):
            ledger.reserve(pure("0.3", "three"))
        assert accept_server(second.url("postgres"), [head]) == []
        # the process that was there before goes on
        paid(ledger, pure("0.3", "three"))
        assert ledger.balance("d").spent.epsilon == 6 * UNIT
        assert verify(ledger).problems == ()
        Ledger.open(second.url("postgres")).close()


def test_a_server_that_was_set_back_does_not_charge(database: str) -> None:
    """The same server with older rows, as from a snapshot of its disk."""
    ledger = Ledger.open(database)
    ledger.adopt(contract(Budget(1)), Budget(1))
    tables = ("account", "charge", "answer", "journal")
    with psycopg.connect(database, autocommit=True) as disk:
        for table in tables:
            disk.execute(f"CREATE TABLE sfumato.{table}_then AS SELECT * FROM sfumato.{table}")
        paid(ledger, pure("0.9", "one"))
        disk.execute(f"TRUNCATE {', '.join(f'sfumato.{table}' for table in tables)} CASCADE")
        for table in ("account", "journal"):
            disk.execute(f"INSERT INTO sfumato.{table} SELECT * FROM sfumato.{table}_then")
    with pytest.raises(LedgerIncomplete, match="ends before entry"):
        ledger.reserve(pure("0.9", "two"))
    ledger.close()


def test_a_ledger_that_was_copied_to_another_server_does_not_charge(database: str) -> None:
    Ledger.open(database).close()
    with psycopg.connect(database, autocommit=True) as copied:
        copied.execute("UPDATE sfumato.meta SET value = '1/00000001' WHERE name = 'server'")
    with pytest.raises(LedgerIncomplete, match="kept on the server 1/00000001"):
        Ledger.open(database)


@pytest.fixture
def moved(database: str, tmp_path: Path) -> Head:
    """The newest head of a ledger that has come to another server, without its last charge."""
    ledger = Ledger.open(database)
    ledger.adopt(contract(Budget(1)), Budget(1))
    ledger.adopt(contract(Budget(1), "e"), Budget(1))
    with psycopg.connect(database, autocommit=True) as disk:
        tables = ("charge", "answer", "account", "journal")
        for table in tables:
            disk.execute(f"CREATE TABLE sfumato.{table}_then AS SELECT * FROM sfumato.{table}")
        paid(ledger, pure("0.2", "lost"))
        head = ledger.store.read(
            lambda rows: Signer(tmp_path / "key").sign(ledger.store.identity, rows)
        )
        ledger.close()
        for table in tables:
            disk.execute(f"TRUNCATE sfumato.{table} CASCADE")
        for table in ("account", "journal"):
            disk.execute(f"INSERT INTO sfumato.{table} SELECT * FROM sfumato.{table}_then")
        disk.execute("UPDATE sfumato.meta SET value = '1/00000001' WHERE name = 'server'")
    return head


def test_a_server_that_lacks_what_a_head_knows_is_not_accepted(database: str, moved: Head) -> None:
    for heads in ([moved], []):
        with pytest.raises(LedgerIncomplete, match="older copy" if heads else "no head"):
            accept_server(database, heads)
        with pytest.raises(LedgerIncomplete):
            Ledger.open(database)


def test_without_the_comparison_a_server_that_forgot_is_accepted(
    database: str, moved: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant."""
    monkeypatch.setattr(failover, "lacks", lambda *_: [])
    accept_server(database, [moved])
    ledger = Ledger.open(database)
    assert ledger.reserve(pure("0.9", "another"))
    ledger.close()


def test_an_accepted_loss_freezes_every_dataset_first(
    database: str, moved: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    # killed before the last step: nobody charges
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(
            Postgres, "accept_server", lambda _: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        accept_server(database, [moved], accept_loss=True)
    with pytest.raises(LedgerIncomplete):
        Ledger.open(database)
    assert len(accept_server(database, [moved], accept_loss=True)) == 1
    ledger = Ledger.open(database)
    for dataset in "de":
        with pytest.raises(AccountFrozen):
            ledger.reserve(pure("0.1", "another", dataset=dataset))
    assert verify(ledger).problems == ()
    ledger.close()
    # and a second time there is nothing to decide
    assert accept_server(database, []) == []


def test_only_a_server_is_accepted(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="in a file"):
        accept_server(str(tmp_path / "l.db"), [])


def test_any_role_may_ask_which_server_it_is(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS nobody_special")
        connection.execute("CREATE ROLE nobody_special")
        connection.execute("SET ROLE nobody_special")
        row = connection.execute(f"SELECT {postgres_schema.SERVER}").fetchone()
        connection.execute("RESET ROLE")
        connection.execute("DROP ROLE nobody_special")
    assert row is not None and row[0].endswith("/00000001")
    assert postgres_schema.SERVER in postgres_server.WRITING
