# SPDX-License-Identifier: Apache-2.0
"""A disk under a PostgreSQL server that fails when a test says so: its calls to the system are
answered by strace.
"""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from tests.contracts.postgres import Cluster
from tests.contracts.require import missing, program

FULL, BROKEN = "pwrite64,pwritev,fallocate:error=ENOSPC", "fdatasync,fsync:error=EIO"


@contextmanager
def failing(server: Cluster, how: str, *files: Path) -> Iterator[None]:
    """The disk of all processes that the server has now, or only these files of it; of those that
    it starts after a crash it is sound.
    """
    children = (
        Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text(encoding="ascii").split()
    )
    attach = [word for process in children for word in ("-p", process)]
    calls = how.partition(":")[0]
    command = [
        program("strace"),
        "-e",
        f"trace={calls}",
        "-e",
        f"inject={how}",
        "-o",
        "/dev/null",
        *attach,
    ]
    command += [word for file in files for word in ("-P", str(file))]
    strace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert strace.stderr is not None
    try:
        for _ in children:
            # one line for each, though a process may have ended meanwhile
            if "not permitted" in strace.stderr.readline():
                missing("strace", "strace may not attach here")
        yield
    finally:
        strace.send_signal(signal.SIGINT)
        strace.communicate()


def logs(server: Cluster) -> list[Path]:
    """The files of the server's write-ahead log."""
    return [path for path in (server.folder / "data" / "pg_wal").iterdir() if path.is_file()]


def recovered(database: str) -> None:
    """Returns when the server takes connections again after its crash."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with suppress(psycopg.OperationalError), psycopg.connect(database) as connection:
            connection.execute("SELECT pg_logical_emit_message(true, 'test', '')")
            return
    raise AssertionError("the server did not come back")
