# SPDX-License-Identifier: Apache-2.0
"""A service in a process of its own, as an owner starts it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from sfumato.service.opening import Directory
from sfumato.service.people import Role
from tests.contracts.clinic import written

_AT = re.compile(r"at (http://127\.0\.0\.1:(\d+))")


class ServiceProcess:
    """``sfumato serve`` over the clinic, at a free port; ann has 1 for the study."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.folder = folder
        if not (folder / "server.toml").exists():
            written(folder)
            port = _free_port()
            text = f'datasets = ["sfumato.toml"]\nlisten = "127.0.0.1:{port}"\n{settings}'
            (folder / "server.toml").write_text(text, encoding="utf-8")
        self.errors = (folder / "errors.txt").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sfumato", "serve", "-c", str(folder / "server.toml")],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline().decode()
        match = _AT.search(first)
        assert match, first + (folder / "errors.txt").read_text()
        self.address = match[1]

    def person(self, name: str, role: Role = Role.ANALYST) -> str:
        """A token of a new person, made beside the running service."""
        with Directory(self.folder / "service.db") as opened:
            opened.people.add(name, role, by="test")
            return opened.people.make_token(name, by="test").secret

    def kill(self) -> None:
        """Kills it without a warning."""
        self._process.kill()
        self._end()

    def stop(self) -> int:
        """Ends it in order; returns its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        assert self._process.stdout is not None
        code = self._process.wait(60)
        self._process.stdout.close()
        self.errors.close()
        return code

    def __enter__(self) -> "ServiceProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.stop()


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
