# SPDX-License-Identifier: Apache-2.0
"""A ledger as one would first write it: a connection for each thread, BEGIN IMMEDIATE, the same durability.

The same three durable steps, one hash chain, three accounts to move and an answer to store, on the
same SQLite with the same settings; whoever finds the file locked waits as SQLite itself does. It
does less than ours, which is in its favour: it prices no event, its rows are narrower and have fewer
indexes, it has no leases, limits, sharing or keys. Beside it the bare disk: a page is
overwritten and flushed.
"""

import hashlib
import json
import os
import threading
import time
from itertools import count
from pathlib import Path

import apsw

from benchmarks.systems import Call, Make
from benchmarks.systems.charges import BODY, folder, shared

PACKAGES = ("apsw",)
_PATH = ("d", "d/unstated", "d/unstated/analyst")
_SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE account (id TEXT PRIMARY KEY, cap INTEGER, held INTEGER, spent INTEGER);
CREATE TABLE charge (id INTEGER PRIMARY KEY, question TEXT UNIQUE, state TEXT, cost INTEGER);
CREATE TABLE answer (question TEXT PRIMARY KEY, body BLOB);
CREATE TABLE journal (seq INTEGER PRIMARY KEY, body TEXT, hash TEXT);
"""
_FRESH = count(1)


class _Naive:
    """Each thread has its connection; SQLite's own lock decides who goes next."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._local = threading.local()
        connection = self._connection()
        connection.execute(_SCHEMA).fetchall()
        for each in _PATH:
            connection.execute("INSERT INTO account VALUES (?, ?, 0, 0)", (each, 10**18))

    def charge(self, _caller: int) -> None:
        number, cost = next(_FRESH), 10**11
        question = f"{number:064d}"
        event = {
            "charge": number,
            "question": question,
            "cost": cost,
            "event": {"kind": "laplace", "scale": "10"},
        }
        self._step(
            "SELECT min(cap - held - spent) FROM account",
            "held = held + ?",
            (cost,),
            "reserved",
            event,
        )
        self._step("", "", (), "executing", event)
        self._step("", "held = held - ?, spent = spent + ?", (cost, cost), "committed", event)

    def _step(
        self, check: str, move: str, amounts: tuple[int, ...], state: str, event: dict[str, object]
    ) -> None:
        run = self._connection().execute
        run("BEGIN IMMEDIATE")
        if check:
            left = run(check).fetchone()
            assert left is not None and left[0] >= 10**11, "the budget is not at stake here"
            run(
                "INSERT INTO charge VALUES (?, ?, ?, ?)",
                (event["charge"], event["question"], state, event["cost"]),
            )
        else:
            run("UPDATE charge SET state = ? WHERE id = ?", (state, event["charge"]))
        for each in _PATH if move else ():
            run(f"UPDATE account SET {move} WHERE id = ?", (*amounts, each))
        if state == "committed":
            run("INSERT INTO answer VALUES (?, ?)", (event["question"], BODY))
        last = run("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1").fetchone() or (0, "")
        body = json.dumps(event | {"state": state}, sort_keys=True)
        digest = hashlib.sha256(f"{last[1]}\n{body}".encode()).hexdigest()
        run("INSERT INTO journal VALUES (?, ?, ?)", (last[0] + 1, body, digest))
        run("COMMIT")

    def _connection(self) -> apsw.Connection:
        found: apsw.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = apsw.Connection(self._path)
            found.set_busy_timeout(600_000)
            found.execute("PRAGMA synchronous = FULL")
            self._local.connection = found
        return found


def _charges(scale: float, n: int) -> Call:
    naive = _Naive(folder() / "naive.db")
    return lambda: shared(int(scale), n, naive.charge)


def _flushes(scale: float, n: int) -> Call:
    """A page of a file that has its length already, overwritten and flushed, again and again."""
    descriptor = os.open(folder() / "flushed", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(descriptor, bytes(4096 * 64))
    os.fsync(descriptor)

    def flush() -> None:
        for number in range(n):
            os.pwrite(descriptor, os.urandom(4096), 4096 * (number % 64))
            os.fdatasync(descriptor)

    return flush


def _flush(scale: float, n: int) -> Call:
    """The median seconds of one of ``scale`` flushes."""
    flush = _flushes(1, 1)

    def median() -> float:
        taken = []
        for _ in range(int(scale)):
            before = time.perf_counter()
            flush()
            taken.append(time.perf_counter() - before)
        return sorted(taken)[len(taken) // 2]

    return median


WORKS: dict[str, Make] = {"charges": _charges, "fdatasync": _flushes, "one fdatasync": _flush}
