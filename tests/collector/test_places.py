# SPDX-License-Identifier: Apache-2.0
"""Which store a place means; an address of another kind never becomes the name of a folder."""

import sys
from pathlib import Path

import pytest

from sfumato.collector import Folder, open_store, stored_reports
from sfumato.collector.postgres import PostgresStore
from sfumato.errors import WrongUse
from tests.collector.batches import asked

TASK = asked().task


def test_a_path_is_a_folder_and_an_address_a_server(tmp_path: Path, database: str) -> None:
    for place, kind in (
        (tmp_path / "r", Folder),
        (str(tmp_path), Folder),
        (database, PostgresStore),
    ):
        store = open_store(place)
        assert isinstance(store, kind)
        assert list(stored_reports(place, TASK, 0)) == []
        store.close()


@pytest.mark.parametrize(
    "address",
    ["mysql://ada:secret@db/x", "postgresql://ada:sec/ret@db/x", "host=db password=secret"],
)
def test_other_addresses_are_refused_unshown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (open_store, lambda place: stored_reports(place, TASK, 0)):
        with pytest.raises(WrongUse, match="not written as one of PostgreSQL") as refused:
            use(address)
        assert "sec" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_a_server_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("sfumato.collector.postgres")
    monkeypatch.delitem(sys.modules, "sfumato.collector.postgres")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(WrongUse, match="the package psycopg"):
        open_store("postgresql://db/reports")
