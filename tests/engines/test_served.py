# SPDX-License-Identifier: Apache-2.0
"""The local copy of a table of a database: its statements, and where its rows come from."""

from contextlib import closing
from pathlib import Path

import duckdb

import sfumato as sf
from sfumato.engines.served import Served

COLUMNS = {"v": ("t.v", "BIGINT"), 'a "b"': ("t.w", "VARCHAR"), "z": ("NULL", "VARCHAR")}
FILE = sf.Table(Path("/data/people.db"), table="people")
TABLE = Served('p"q', FILE, "main.people", COLUMNS, {"z": "SQLite's computed column"})


def test_the_local_table_takes_the_wanted_columns_of_a_batch():
    with closing(duckdb.connect()) as connection:
        for _ in range(2):
            connection.execute(TABLE.empty)
            connection.execute("CREATE OR REPLACE TABLE batch AS SELECT 'x' AS a, TRUE AS b")
            connection.execute(TABLE.insert(['a "b"'], "batch"))
            assert connection.execute(f"SELECT * FROM {TABLE.sql}").fetchall() == [
                (None, "x", None, True)
            ]


def test_a_column_that_cannot_be_read_has_the_type_of_its_database():
    assert TABLE.types == {"v": "BIGINT", 'a "b"': "VARCHAR", "z": "SQLite's computed column"}


def test_the_origin_is_the_server_or_the_file():
    assert TABLE.origin == Path("/data/people.db")
    server = sf.Table("postgresql://db/clinic", table="people")
    assert Served("p", server, "public.people").origin is server.source
