# SPDX-License-Identifier: Apache-2.0
"""The tests' own server: what it promises, and that it can be crashed and come back."""

import signal
from contextlib import closing

import psycopg
import pytest

from tests.contracts.postgres import Cluster


def test_the_server_syncs_and_has_no_port(database: str) -> None:
    with psycopg.connect(database) as connection:
        shown = [
            connection.execute(f"SHOW {name}").fetchone() for name in ("fsync", "listen_addresses")
        ]
    assert shown == [("on",), ("",)]


def test_an_emptied_database_has_no_ledger_and_nobody_in_it(
    postgres: Cluster, database: str
) -> None:
    with closing(psycopg.connect(database, autocommit=True)) as left:
        left.execute("CREATE SCHEMA sfumato")
        left.execute("CREATE TABLE sfumato.meta ()")
        left.execute("BEGIN; SELECT * FROM sfumato.meta")
        with psycopg.connect(postgres.emptied()) as connection:
            assert (
                connection.execute("SELECT FROM pg_namespace WHERE nspname = 'sfumato'").fetchone()
                is None
            )
        with pytest.raises(psycopg.OperationalError):
            left.execute("SELECT 1")


def test_a_crashed_server_comes_back_with_what_was_committed(
    postgres: Cluster, database: str
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA sfumato")
        connection.execute("CREATE TABLE sfumato.kept AS SELECT 1 AS a")
    postgres.stop(signal.SIGQUIT)
    postgres.start()
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT a FROM sfumato.kept").fetchone() == (1,)
    assert any("was interrupted" in line for line in postgres.log)
