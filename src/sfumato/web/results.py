# SPDX-License-Identifier: Apache-2.0
"""Replies of questions that went on as jobs, held until their askers fetch them.

A large one lies in a file without a name, which ends with the process. What is no longer held is
still paid and stored: the same question gets it again.
"""

import os
import tempfile
import threading
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import IO

from sfumato.service.refusals import ResultDropped
from sfumato.web.reply import Reply

# of one person, the newest
_HELD = 4
_IN_MEMORY = 64 * 1024


class HeldReply:
    """The reply of a charged question: in memory, then in a file, then dropped."""

    def __init__(self, reply: Reply) -> None:
        self._head = replace(reply, body=b"")
        self._body: bytes | None = reply.body
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()

    @property
    def charge(self) -> str:
        """The ids of the charges that paid for the reply."""
        return dict(self._head.headers)["Sfumato-Charge"]

    def reply(self) -> Reply:
        """Returns the whole reply, the same bytes each time.

        Raises:
            ResultDropped: newer results of the person took its place, or the disk is full.
        """
        with self._lock:
            if self._file is not None:
                # a descriptor of its own: the other may be closed while the reply is sent
                return replace(self._head, file=os.fdopen(os.dup(self._file.fileno()), "rb"))
            if self._body is None:
                raise ResultDropped
            return replace(self._head, body=self._body)

    def to_file(self, folder: Path) -> None:
        """Moves a large body to a file of the folder; on a full disk it is dropped."""
        with self._lock:
            if self._body is None or len(self._body) <= _IN_MEMORY:
                return
            try:
                self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - drop closes it
                self._file.write(self._body)
                self._file.flush()
            except OSError:
                self._close()
            self._body = None

    def drop(self) -> None:
        """Forgets the body."""
        with self._lock:
            self._close()
            self._body = None

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class HeldReplies:
    """The newest held replies of each person.

    Guarantees:
        of each person a bounded number of results is held
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._of_person: dict[str, deque[HeldReply]] = {}

    def hold(self, person: str, held: HeldReply) -> None:
        """Holds a reply for its asker, and drops the person's oldest if there are too many."""
        with self._lock:
            own = self._of_person.setdefault(person, deque())
            own.append(held)
            oldest = own.popleft() if len(own) > _HELD else None
        if oldest is not None:
            oldest.drop()
        held.to_file(self._folder)

    def close(self) -> None:
        """Drops all."""
        with self._lock:
            for own in self._of_person.values():
                for held in own:
                    held.drop()
            self._of_person.clear()
