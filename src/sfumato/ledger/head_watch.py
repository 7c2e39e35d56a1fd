# SPDX-License-Identifier: Apache-2.0
"""Publishes signed heads to other places, and refuses a ledger that is behind one of them.

A background thread publishes, so a charge never waits for a sink. A rollback to a point after the
last publication is not detected.
"""

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress

from sfumato.errors import LedgerError, LedgerIncomplete, SfumatoError, WrongUse, shown
from sfumato.ledger.head_sinks import Silent, Sink
from sfumato.ledger.signed_heads import Head, Signer, Source
from sfumato.ledger.store.base import Rows, Store

_OWNER = logging.getLogger("sfumato.owner")
# A head is published after this many transactions (a charge has three), or seconds after the first
# of them.
STEPS = 100
SECONDS = 60.0


class HeadWatch:
    """Publishes a ledger's signed heads (the last journal entries) to sinks, to detect a rollback.

    Guarantees:
        a ledger behind a head that is kept elsewhere does not charge
        a ledger whose sinks are silent does not charge
        a head that is newer than the ledger is never replaced
    """

    def __init__(self, store: Store, key: Source | None) -> None:
        self._store, self._key = store, key
        self._sinks: dict[str, Sink] = {}
        self._guard = threading.Lock()
        self._wake, self._ends = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._steps = 0
        self._behind = ""

    def compare(self, sinks: Sequence[Sink]) -> str:
        """Compares the ledger with the signed head in every sink, and refuses it if it lacks
        entries.

        Returns why no readable sink replied; "" if one did.

        Raises:
            LedgerIncomplete: the ledger is behind a head.
        """
        silent: list[str] = []
        readable = [sink for sink in sinks if sink.readable]
        for sink in readable:
            try:
                head = sink.newest()
            except Silent as why:
                silent.append(f"{sink.name}: {why}")
                continue
            self._require_newest(sink, head)
        return "; ".join(silent) if len(silent) == len(readable) else ""

    def begin(self, sinks: Sequence[Sink]) -> None:
        """Starts publishing signed heads to further sinks.

        Raises:
            WrongUse: the ledger is on a server and has no signing key.
        """
        if not sinks:
            return
        if self._key is None:
            raise WrongUse(
                "ledger_heads of a ledger on a server, which has no folder for a key.",
                remedy="ledger_key names the file of one, away from what the heads are to notice.",
            )
        with self._guard:
            self._sinks |= {sink.name: sink for sink in sinks}
            self._steps += 1
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sfumato-heads", daemon=True)
                self._thread.start()

    def require(self) -> None:
        """Refuses charges if a sink has shown that the open ledger was rolled back to an older
        state.
        """
        if self._behind:
            raise LedgerIncomplete(self._behind, remedy="Close it, and restore the newest copy.")

    def step(self) -> None:
        """Counts a durable transaction; after a number of them the signed head is published."""
        with self._guard:
            self._steps += 1
            if self._thread is not None and self._steps >= STEPS:
                self._wake.set()

    def close(self) -> None:
        """Publishes the signed head a last time and stops the thread."""
        if self._thread is None:
            return
        self._ends.set()
        self._wake.set()
        self._thread.join()
        self._thread = None
        if self._steps:
            self._publish_all()

    def _run(self) -> None:
        while not self._ends.is_set():
            self._wake.wait(SECONDS)
            self._wake.clear()
            if self._steps:
                self._publish_all()

    def _publish_all(self) -> None:
        with self._guard:
            sinks, self._steps = list(self._sinks.values()), 0
        for sink in sinks:
            try:
                self._publish(sink)
            except (Silent, SfumatoError, OSError) as why:
                _OWNER.warning(
                    "The head of the ledger %s was not published to %s: %s",
                    self._store.place,
                    sink.name,
                    why,
                )
                with self._guard:
                    self._steps += 1  # it is tried again

    def _publish(self, sink: Sink) -> None:
        """Signs the current head and stores it in a sink that does not have a newer one."""
        if self._key is None:
            return
        signer = Signer(self._key)
        # the sink is read before the ledger: a head is published after its charges were stored
        self._require_newest(sink, sink.newest() if sink.readable else None)
        head = self._store.read(lambda rows: signer.sign(self._store.identity, rows))
        if head.chains:
            sink.put(head)

    def _way_out(self) -> str:
        """The command by which the owner accepts a loss."""
        files, server = "recover --accept-loss --reason TEXT", "accept-server --accept-loss"
        return f"sfumato ledger {files if self._store.exclusive else server}"

    def _require_newest(self, sink: Sink, head: Head | None) -> None:
        missing = (
            [] if head is None else self._store.read(lambda rows: list(head.differences(rows)))
        )
        if missing:
            self._behind = (
                f"The ledger {shown(self._store.place)} forgets what was spent: {missing[0]} (kept "
                f"at {sink.name})."
            )
            raise LedgerIncomplete(
                self._behind,
                remedy=f"Restore the newest copy. If it is lost: {self._way_out()}, which freezes "
                "the datasets until the "
                "owner has decided.",
            )


def kept(sinks: Sequence[Sink]) -> list[Head]:
    """Returns the signed head stored in each sink, without the sinks that do not reply."""
    heads: list[Head | None] = []
    for sink in sinks:
        with suppress(Silent):
            heads.append(sink.newest())
    return [head for head in heads if head is not None]


def replace_heads(sinks: Sequence[Sink], head: Head) -> None:
    """Overwrites the signed head in each sink, after the owner has accepted a loss.

    Raises:
        LedgerError: a sink did not take it.
    """
    for sink in sinks:
        try:
            sink.put(head)
        except Silent as why:
            raise LedgerError(
                f"{sink.name} did not take the head: {why}.", remedy="Run it again."
            ) from None


def behind(sinks: Sequence[Sink], rows: Rows) -> str:
    """Returns a description of the entries that a ledger lacks according to heads in sinks, or "".

    If several sinks know more than the rows, the first is described.
    """
    for sink in sinks:
        try:
            head = sink.newest() if sink.readable else None
        except Silent:
            continue
        for missing in head.differences(rows) if head else ():
            return f"{missing} (kept at {sink.name})"
    return ""
