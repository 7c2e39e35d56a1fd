# SPDX-License-Identifier: Apache-2.0
"""Two servers on one machine: a standby that follows a primary, and takes its place."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.contracts.postgres import Cluster
from tools.postgres import programs


@contextmanager
def standby(primary: Cluster, **settings: str) -> Iterator[Cluster]:
    """A running standby of a running server."""
    found = programs()
    assert found is not None, "the primary has them"
    folder = Path(tempfile.mkdtemp(prefix="sfumato-standby-"))
    try:
        second = Cluster(found, folder, primary=primary)
        try:
            second.start(**settings)
            yield second
        finally:
            second.stop(signal.SIGQUIT)
    finally:
        shutil.rmtree(folder)


def either(first: Cluster, second: Cluster) -> str:
    """The address of whichever of two servers is the primary."""
    hosts = f"{first.folder},{second.folder}"
    return f"postgresql://sfumato@/postgres?host={hosts}&target_session_attrs=read-write"


def caught_up(primary: Cluster, second: Cluster) -> None:
    """Returns when the standby has all that the primary has."""
    with (
        psycopg.connect(primary.url("postgres")) as here,
        psycopg.connect(second.url("postgres")) as there,
    ):
        end = here.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
        while there.execute("SELECT pg_last_wal_replay_lsn() >= %s", end).fetchone() != (True,):
            there.rollback()


def hold_back(second: Cluster) -> None:
    """The standby hears nothing more: what is acknowledged from now on it does not have."""
    with psycopg.connect(second.url("postgres"), autocommit=True) as there:
        there.execute("ALTER SYSTEM SET primary_conninfo = ''")
        there.execute("SELECT pg_reload_conf()")
        while there.execute("SELECT 1 FROM pg_stat_wal_receiver").fetchone():
            pass


@contextmanager
def failed_over(primary: Cluster, second: Cluster) -> Iterator[None]:
    """The primary crashes and the standby is promoted; at the end the primary is there again."""
    primary.stop(signal.SIGQUIT)
    try:
        second.promote()
        yield
    finally:
        second.stop(signal.SIGQUIT)
        primary.start()
