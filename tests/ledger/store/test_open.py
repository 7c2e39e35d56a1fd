# SPDX-License-Identifier: Apache-2.0
"""Which store an address means."""

import sys
from pathlib import Path

import pytest

from sfumato.errors import LedgerUnavailable
from sfumato.ledger.store.open import open_store
from sfumato.ledger.store.sqlite import SQLite
from sfumato.metadata.server import SERVERS


def test_a_path_is_a_file(tmp_path: Path) -> None:
    for place in (tmp_path / "l.db", str(tmp_path / "m.db")):
        store = open_store(place)
        assert isinstance(store, SQLite)
        store.close()
    with pytest.raises(LedgerUnavailable):
        open_store(tmp_path / "none.db", create=False)


@pytest.mark.parametrize("scheme", SERVERS)
def test_an_address_of_a_server_is_a_server(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[str, bool]] = []

    class Module:
        """What stands where psycopg may be missing."""

        Postgres = staticmethod(
            lambda place, *, create, accept_loss: called.append((place, create))
        )
        PostgresReader = None

    for name in ("postgres", "postgres_reader"):
        monkeypatch.setitem(sys.modules, f"sfumato.ledger.store.{name}", Module)
    open_store(f"{scheme}u@h/d", create=False)
    assert called == [(f"{scheme}u@h/d", False)]


def test_a_missing_driver_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "sfumato.ledger.store.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerUnavailable, match="psycopg") as missing:
        open_store("postgresql://u@h/d")
    assert "sfumato[postgres]" in missing.value.remedy
