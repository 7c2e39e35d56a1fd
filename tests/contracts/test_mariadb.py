# SPDX-License-Identifier: Apache-2.0
"""The tests' own server: where it listens, and that it can be crashed and come back."""

import signal

import pymysql

from tools.mariadb import MariaDB


def test_a_crashed_server_comes_back_with_what_was_committed(mariadb: MariaDB, clinic: str) -> None:
    mariadb.execute("CREATE TABLE clinic.kept AS SELECT 1 AS a")
    mariadb.stop(signal.SIGKILL)
    mariadb.start()
    assert f"unix_socket={str(mariadb.socket).replace('/', '%2F')}" in clinic
    with pymysql.connect(unix_socket=str(mariadb.socket), user="root", database="clinic") as root:
        cursor = root.cursor()
        cursor.execute("SELECT a, @@bind_address FROM kept")
        assert cursor.fetchall() == ((1, "127.0.0.1"),)
