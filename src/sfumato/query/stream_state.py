# SPDX-License-Identifier: Apache-2.0
"""The secret state of a stream, in a file that only its owner can read.

It holds exact integers: the memory of the encoder, and which units have taken part. It is never
written to the ledger. Once a tick, before the row of the tick is returned, the file is replaced by
an atomic rename that is flushed to disk: so a crash cannot bring back a state from which a row was
drawn already. Used by ``ticks`` and ``series``. Proof: stream_state.proof.md.
"""

import fcntl
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from sfumato.engines.base import Names
from sfumato.errors import WrongUse
from sfumato.noise import Integers

_FORMAT = 1
_OWNER_ONLY = 0o600
# A row that was drawn: the time until which it counts, and its noisy integers.
Row: TypeAlias = tuple[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class State:
    """The secret state of a stream between two ticks: drawn rows, and how often each unit has taken
    part.

    ``form`` names the stream. ``place`` is the place at which the last row was drawn, ``tick`` the
    number of rows drawn, ``until`` the time up to which rows of the data have been counted.
    ``shown`` has, by place, the noisy rows that may not be stored yet. ``memory`` is that of the
    encoder. For each unit in ``names``, ``uses`` has the number of ticks in which it has taken
    part, and ``last`` the last of them.
    """

    form: str
    place: int
    tick: int
    until: int | None
    shown: dict[int, Row]
    memory: Integers
    names: Names
    uses: Integers
    last: Integers

    @classmethod
    def fresh(
        cls,
        form: str,
        memory: Integers,
    ) -> "State":
        """Returns the state before the first tick."""
        none = np.zeros(0, np.int64)
        return cls(form, 0, 0, None, {}, memory, np.zeros(0, "S32"), none, none)

    def to_bytes(self) -> bytes:
        """Returns the state encoded as bytes."""
        shown = [[place, until, list(row)] for place, (until, row) in self.shown.items()]
        about = {
            "format": _FORMAT,
            "form": self.form,
            "place": self.place,
            "tick": self.tick,
            "until": self.until,
            "shown": shown,
        }
        file = io.BytesIO()
        head = np.frombuffer(json.dumps(about).encode(), np.uint8)
        for array in (head, self.memory, self.names, self.uses, self.last):
            np.save(file, array, allow_pickle=False)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, body: bytes) -> "State":
        """Returns the state from the bytes that ``to_bytes`` returned."""
        file = io.BytesIO(body)
        head, memory, names, uses, last = (np.load(file, allow_pickle=False) for _ in range(5))
        about = json.loads(head.tobytes())
        if about["format"] != _FORMAT:
            raise ValueError("a state of another format")
        shown = {place: (until, tuple(row)) for place, until, row in about["shown"]}
        form, place, tick, until = (about[name] for name in ("form", "place", "tick", "until"))
        return cls(form, place, tick, until, shown, memory, names, uses, last)

    def __repr__(self) -> str:
        return "State()"


@dataclass(frozen=True, slots=True)
class Past:
    """The location on disk of the secret state of a stream, which belongs to one charge.

    ``stored`` is the last place whose row the ledger has; ``place`` is the one to be drawn.

    Guarantees:
        a state that is missing or older than the ledger draws nothing
        a state moves on disk before its row is handed out
        one worker at a time moves a state
    """

    folder: Path
    charge: str
    stored: int
    place: int

    @property
    def path(self) -> Path:
        """The path of the state's file."""
        return self.folder / f"{self.charge}.state"

    def create(self) -> None:
        """Creates an empty state file before any place is begun; the first tick fills it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.path.exists():
            self._write(b"")

    def require(self) -> None:
        """Raises WrongUse if the state on disk is missing or older than the last stored place."""
        self._found()

    @contextmanager
    def moving(self, fresh: State) -> Iterator[State]:
        """A context manager that locks the state and yields it; before the first tick it yields
        ``fresh``.

        Raises:
            WrongUse: the state is missing, belongs to another stream, or is not that of this place.
        """
        with (self.folder / f"{self.charge}.lock").open("ab") as lock:
            os.fchmod(lock.fileno(), _OWNER_ONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self._found() or fresh
            if state.form != fresh.form:
                raise _closed("The state is that of another stream.")
            yield state

    def save(self, state: State) -> None:
        """Replaces the state on disk; when this returns, the new state is durable."""
        self._write(state.to_bytes())

    def remove(self) -> None:
        """Deletes the state of a complete stream."""
        for suffix in ("state", "lock"):
            (self.folder / f"{self.charge}.{suffix}").unlink(missing_ok=True)

    def _found(self) -> State | None:
        """Reads the state; None before the first tick."""
        try:
            body = self.path.read_bytes()
            state = State.from_bytes(body) if body else None
        except (OSError, ValueError, KeyError, EOFError, TypeError):
            raise _closed("The secret state of the stream is lost.") from None
        place = 0 if state is None else state.place
        if not self.stored <= place < self.place:
            raise _closed("The secret state of the stream is not that of its last tick.")
        return state

    def _write(self, body: bytes) -> None:
        draft = self.path.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _closed(problem: str) -> WrongUse:
    return WrongUse(
        problem,
        allowed="the state that the last tick wrote",
        remedy="Its stored ticks stay readable; for more, open a new stream.",
    )
