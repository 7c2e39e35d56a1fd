# SPDX-License-Identifier: Apache-2.0
"""A wire that can be cut: it stands between a ledger and its PostgreSQL."""

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path
from types import TracebackType


class Cut(Enum):
    """Where the wire breaks: before the server hears of a commit, or before its reply arrives."""

    BEFORE_COMMIT = "towards the server"
    AFTER_COMMIT = "towards the client"


class Wire:
    """Carries bytes to a server's Unix socket, until it is told to break at a commit."""

    def __init__(self, server: Path) -> None:
        self._server = str(server)
        self._folder = tempfile.TemporaryDirectory(prefix="sfumato-wire-")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder.name}/{server.name}")
        self._listener.listen(64)
        self._open: list[socket.socket] = []
        self._pumps: list[threading.Thread] = []
        self._cut: Cut | None = None
        self._sign = b"COMMIT\0"
        self._change = threading.Lock()
        self.cuts = 0

    def __enter__(self) -> "Wire":
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        _shut(self._listener)
        self._pumps[0].join()
        _shut(*self._open)
        for pump in self._pumps:
            pump.join()
        for end in (self._listener, *self._open):
            end.close()
        self._folder.cleanup()

    def url(self, direct: str) -> str:
        """The address that leads through the wire, for one that leads straight to the server."""
        return f"{direct.partition('?')[0]}?host={self._folder.name}"

    def cut(self, where: Cut) -> None:
        """Breaks the first connection that commits from now on, and no other."""
        self.cut_at(b"COMMIT\0", where)

    def cut_at(self, sign: bytes, where: Cut) -> None:
        """Breaks the first connection that sends or is sent these bytes from now on."""
        self._sign, self._cut = sign, where

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        self._pumps.append(threading.Thread(target=run, args=arguments, daemon=True))
        self._pumps[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                self._open += [client, server]
                server.connect(self._server)
                self._start(self._pump, client, server, Cut.BEFORE_COMMIT)
                self._start(self._pump, server, client, Cut.AFTER_COMMIT)

    def _pump(self, source: socket.socket, target: socket.socket, here: Cut) -> None:
        with suppress(OSError):
            for chunk in _chunks(source):
                if self._sign in chunk and self._is_cut(here):
                    break
                target.sendall(chunk)
        _shut(source, target)

    def _is_cut(self, here: Cut) -> bool:
        with self._change:
            if self._cut is not here:
                return False
            self._cut = None
            self.cuts += 1
            return True


def _chunks(source: socket.socket) -> Iterator[bytes]:
    while chunk := source.recv(65536):
        yield chunk


def _shut(*ends: socket.socket) -> None:
    """Both directions; who waits on it is told. It may be shut already."""
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
