# SPDX-License-Identifier: Apache-2.0
"""A connection pool of bounded size; connections are opened when first needed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from sfumato.errors import LedgerUnavailable


class _Closable(Protocol):
    """A connection."""

    def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)

# The interval at which a waiting caller checks for a free slot, in seconds.
_LOOK = 0.05


class Pool(Generic[C]):
    """A pool of up to ``size`` database connections; further callers wait for one.

    Guarantees:
        an interrupted caller leaves its place to others
    """

    def __init__(self, connect: Callable[[], C], reusable: Callable[[C], bool], size: int) -> None:
        self._connect = connect
        self._reusable = reusable
        self._size = size
        # acquired directly: Ctrl-C within the ``__enter__`` of a condition would leave it held for
        # ever
        self._lock = threading.RLock()
        self._change = threading.Condition(self._lock)
        self._idle: list[C] = []
        # all callers, and those of them that have a slot
        self._callers: set[object] = set()
        self._inside: set[object] = set()
        self._closed = False

    @contextmanager
    def one(self) -> Iterator[C]:
        """Lends a database connection for the ``with`` block; closes it afterwards if not
        reusable.
        """
        caller = object()
        try:
            self._enter(caller)
            connection = self._taken() or self._connect()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            # each call is atomic and has no effect if the caller is absent, so Ctrl-C may come at
            # any point
            self._inside.discard(caller)
            self._callers.discard(caller)
            with self._lock:
                self._change.notify_all()

    def forget_idle(self) -> None:
        """Closes the pool's idle connections, which are probably broken when one connection was
        cut.
        """
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Refuses new callers, waits for running ones, and closes all database connections.
        Idempotent.
        """
        with self._lock:
            self._closed = True
            while self._callers:
                self._change.wait(_LOOK)
        self.forget_idle()

    def _enter(self, caller: object) -> None:
        """Waits for a free slot."""
        with self._lock:
            if self._closed:
                raise LedgerUnavailable(
                    "The session is closed.", remedy="Open another with sf.connect or sf.load."
                )
            self._callers.add(caller)
            while len(self._inside) >= self._size:
                self._change.wait(_LOOK)
            self._inside.add(caller)

    def _taken(self) -> C | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: C) -> None:
        if not self._reusable(connection):
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)
