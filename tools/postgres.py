# SPDX-License-Identifier: Apache-2.0
"""A real PostgreSQL of one's own, for tests and benchmarks: a fresh cluster, a Unix socket, no
port.
"""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg

_READY = "database system is ready to accept"


class Cluster:
    """One server in a folder. PostgreSQL refuses to run as root, so root runs it as another user.

    Not below pytest's ``tmp_path``: the name of a socket has at most 107 bytes, and the other
    user must reach it.
    """

    def __init__(self, programs: Path, folder: Path, *, primary: "Cluster | None" = None) -> None:
        """A fresh cluster, or a standby that follows ``primary``, which must be running."""
        self.folder = folder
        self.log: list[str] = []
        self._programs = programs
        self._server: subprocess.Popen[str] | None = None
        owner = unprivileged()
        self._user = owner.pw_uid if owner else None
        self._group = owner.pw_gid if owner else None
        self.own(folder)
        if primary is None:
            self._make()
        else:
            self._run("pg_basebackup", "-R", "-c", "fast", "-N", "-d", primary.url("postgres"))

    def start(self, **settings: str) -> None:
        """Starts the server; returns when it takes connections."""
        own = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "fsync": "on",
            "max_connections": "150",
        }
        if sys.platform == "linux":
            own["recovery_init_sync_method"] = "syncfs"  # not a thousand files one by one
        options = [f"--{name}={value}" for name, value in (own | settings).items()]
        self._server = subprocess.Popen(
            [self._programs / "postgres", "-D", self.folder / "data", *options],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_the_caller,
            **self.as_user(),
        )
        ready = threading.Event()
        threading.Thread(target=self._read, args=(self._server, ready), daemon=True).start()
        if not ready.wait(60):
            raise RuntimeError("\n".join(["PostgreSQL does not start.", *self.log]))

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """``SIGINT`` and ``SIGQUIT`` are ``pg_ctl stop -m fast`` and ``-m immediate``: the latter
        crashes.
        """
        server, self._server = self._server, None
        if server:
            server.send_signal(how)
            server.wait(60)

    def promote(self) -> None:
        """Makes a standby the primary; returns when it takes charges."""
        self._run("pg_ctl", "promote")

    def own(self, folder: Path) -> None:
        """Gives a folder and all in it to the user who runs the server."""
        if self._user is not None:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self._user, self._group or 0)

    def as_user(self) -> dict[str, Any]:
        """Options of ``subprocess`` for a program that runs as the server does."""
        return (
            {}
            if self._user is None
            else {"user": self._user, "group": self._group, "extra_groups": []}
        )

    def emptied(self) -> str:
        """The address of a database without a ledger and without anybody else in it."""
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        # one database for all: a new one is three hundred files, which the next stop has to sync
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"{others} AND pid <> pg_backend_pid()")
            connection.execute("DROP SCHEMA IF EXISTS sfumato, sfumato_telemetry CASCADE")
        return self.url("postgres")

    def url(self, name: str) -> str:
        """The address of a database."""
        return f"postgresql://sfumato@/{name}?host={self.folder}"

    @property
    def pid(self) -> int:
        """The process that all others of the server are children of; 0 while there is none."""
        return self._server.pid if self._server else 0

    @property
    def socket(self) -> Path:
        """The file that the server listens on."""
        return self.folder / ".s.PGSQL.5432"

    def _make(self) -> None:
        settings = [
            "--no-sync",
            "--auth=trust",
            "--username=sfumato",
            "--encoding=UTF8",
            "--no-locale",
        ]
        self._run("initdb", *settings)

    def _run(self, program: str, *options: str) -> None:
        command = [str(self._programs / program), "-D", str(self.folder / "data"), *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self.as_user())

    def _read(self, server: "subprocess.Popen[str]", ready: threading.Event) -> None:
        """Keeps the log, and the pipe from filling."""
        if server.stderr is None:
            return
        with server.stderr as lines:
            for line in lines:
                self.log.append(line)
                if _READY in line:
                    ready.set()


def programs() -> Path | None:
    """Where PostgreSQL's programs are, if it is installed; Debian keeps them out of PATH."""
    found = shutil.which("initdb")
    places = (
        [Path(found).resolve().parent]
        if found
        else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    )
    return next(
        (
            place
            for place in places
            if (place / "initdb").exists() and (place / "postgres").exists()
        ),
        None,
    )


def unprivileged() -> pwd.struct_passwd | None:
    """Who runs the server when this is root."""
    if os.geteuid() != 0:
        return None
    users = {user.pw_name: user for user in pwd.getpwall()}
    return users.get("postgres") or users["nobody"]


def die_with_the_caller() -> None:
    """No server outlives who started it, even if that is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG
