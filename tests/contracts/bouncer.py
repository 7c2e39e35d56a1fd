# SPDX-License-Identifier: Apache-2.0
"""A PgBouncer of one's own before a server: many clients share a few connections, one transaction
each.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.contracts.postgres import Cluster
from tests.contracts.require import program

# fewer than the callers of any test, so that their transactions take turns on each
CONNECTIONS = 3
_PORT = 6432


@contextmanager
def bouncer(server: Cluster) -> Iterator[str]:
    """The address of the server's database through a PgBouncer in transaction mode."""
    found = program("pgbouncer")
    folder = Path(tempfile.mkdtemp(prefix="sfumato-bouncer-"))
    running = None
    try:
        settings = {
            "listen_port": _PORT,
            "unix_socket_dir": folder,
            "auth_type": "trust",
            "auth_file": folder / "users",
            "pool_mode": "transaction",
            "default_pool_size": CONNECTIONS,
            "max_client_conn": 200,
        }
        lines = ["[databases]", f"* = host={server.folder}", "[pgbouncer]"]
        lines += [f"{name} = {value}" for name, value in settings.items()]
        (folder / "ini").write_text("\n".join(lines), encoding="utf-8")
        (folder / "users").write_text('"sfumato" ""\n', encoding="utf-8")
        server.own(folder)
        running = subprocess.Popen(
            [found, folder / "ini"], stderr=subprocess.DEVNULL, **server.as_user()
        )
        end = time.monotonic() + 30
        while not (folder / f".s.PGSQL.{_PORT}").exists():
            assert time.monotonic() < end and running.poll() is None, "PgBouncer does not start"
            time.sleep(0.01)
        yield f"postgresql://sfumato@/postgres?host={folder}&port={_PORT}"
    finally:
        if running is not None:
            running.terminate()
            running.wait(30)
        shutil.rmtree(folder)
