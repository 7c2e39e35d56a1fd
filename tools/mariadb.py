# SPDX-License-Identifier: Apache-2.0
"""A real MariaDB of one's own, for tests: a fresh server, a Unix socket, a port of loopback with a
certificate.
"""

import os
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pymysql

from tools.postgres import die_with_the_caller, unprivileged

_READY = "ready for connections"
_SMALL = ("--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M")


class MariaDB:
    """One server in a folder. Root runs it as another user, as it does PostgreSQL.

    Not below pytest's ``tmp_path``: the name of a socket has at most 107 bytes, and the other
    user must reach it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log: list[str] = []
        self._server: subprocess.Popen[str] | None = None
        owner = unprivileged()
        self._as_user: dict[str, Any] = {}
        if owner is not None:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            # not by --user=: a server that changes its user outlives who started it
            self._as_user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        places = [f"--datadir={folder / 'data'}", "--auth-root-authentication-method=normal"]
        made = [_program("mariadb-install-db"), "--no-defaults", "--skip-test-db"]
        install = [*made, *places, *_SMALL]
        # seen to fail once on a busy machine: then it is done once more from the start
        for _ in range(2):
            done = subprocess.run(
                install, capture_output=True, text=True, cwd=folder, check=False, **self._as_user
            )
            if done.returncode == 0:
                return
            shutil.rmtree(folder / "data", ignore_errors=True)
        raise RuntimeError("\n".join(["MariaDB does not install.", done.stdout, done.stderr]))

    def start(self, **settings: str) -> None:
        """Starts the server; returns when it takes connections."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        own = {
            "datadir": str(self.folder / "data"),
            "socket": str(self.socket),
            "pid-file": str(self.folder / "pid"),
            "bind-address": "127.0.0.1",
            "port": str(self.port),
        }
        options = [f"--{name}={value}" for name, value in (own | settings).items()]
        self._server = subprocess.Popen(
            [_program("mariadbd"), "--no-defaults", *_SMALL, *options],
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            preexec_fn=die_with_the_caller,
            **self._as_user,
        )
        ready = threading.Event()
        threading.Thread(target=self._read, args=(self._server, ready), daemon=True).start()
        if not ready.wait(60):
            raise RuntimeError("\n".join(["MariaDB does not start.", *self.log]))

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stops the server; ``SIGKILL`` crashes it."""
        server, self._server = self._server, None
        if server:
            server.send_signal(how)
            server.wait(60)

    def emptied(self) -> str:
        """The address of an empty database."""
        self.execute("DROP DATABASE IF EXISTS clinic", "CREATE DATABASE clinic CHARSET utf8mb4")
        return self.url()

    def execute(self, *statements: str) -> None:
        """Runs statements as root."""
        with pymysql.connect(
            unix_socket=str(self.socket), user="root", autocommit=True, ssl_disabled=True
        ) as root:
            for each in statements:
                root.cursor().execute(each)

    def url(self, user: str = "root", **options: str) -> str:
        """The address of the database, through the socket."""
        return f"mysql://{user}@/clinic?{urlencode({'unix_socket': str(self.socket)} | options)}"

    @property
    def socket(self) -> Path:
        """The file that the server listens on."""
        return self.folder / "socket"

    def _read(self, server: "subprocess.Popen[str]", ready: threading.Event) -> None:
        """Keeps the log, and the pipe from filling."""
        if server.stderr is None:
            return
        with server.stderr as lines:
            for line in lines:
                self.log.append(line)
                if _READY in line:
                    ready.set()


def is_installed() -> bool:
    """Whether MariaDB's programs are here; Debian keeps the server out of some PATHs."""
    return all(shutil.which(name, path=_path()) for name in ("mariadbd", "mariadb-install-db"))


def _program(name: str) -> str:
    return shutil.which(name, path=_path()) or name


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin"
