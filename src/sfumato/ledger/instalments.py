# SPDX-License-Identifier: Apache-2.0
"""Answers in instalments: streams, sparse vectors, training, federated rounds.

Proof: instalments.proof.md.

The whole cost is reserved when the charge is opened (RULES 9). The worker marks places as begun
before it draws noise or reads data for them, and stores each instalment before it is shown:

    reserve -> start -> begin, append, append, begin, append ... -> commit

If a worker dies, the charge is suspended: counted in full, and resumed by one other worker. A place
that was begun but not stored is never drawn again. Each worker has a number, the fence, which every
operation on the charge requires.
"""

import hashlib
from datetime import timedelta

from sfumato.errors import LeaseExpired, LedgerCorrupt, WrongUse
from sfumato.ledger.account_path import lineage_of
from sfumato.ledger.account_transaction import require_open
from sfumato.ledger.answers import Answers
from sfumato.ledger.binding import is_instalment_of
from sfumato.ledger.closing import at_step, execute, suspend
from sfumato.ledger.owner import readable
from sfumato.ledger.pieces import Pieces
from sfumato.ledger.store.base import EXECUTING, SUSPENDED, ChargeRow, InstalmentRow, Rows
from sfumato.ledger.stored_answers import require_few_failures

# The number of instalments that one read returns.
_PAGE = 1000


class Instalments(Answers):
    """The ledger's methods for charges whose answer is stored in several instalments, or takes
    long.

    Guarantees:
        an instalment is on disk before it may be shown
        a place is on disk as begun before it may be drawn
        one worker goes on with a charge
        a charge with secret state ends with its worker
        a frozen account begins no places
        a lease that has ended is not renewed
        a forged instalment is not given
    """

    _lease: int

    @property
    def lease(self) -> timedelta:
        """The time for which a charge may execute without a renewal of its lease."""
        return timedelta(milliseconds=self._lease)

    def start(self, charge_id: str, places: int, *, secret: bool = False) -> int:
        """Marks a charge as executing, whose answer comes in ``places`` instalments.

        Returns the fence: the number of the worker, which its later calls state.

        ``secret``: the worker has state that is not stored, such as the threshold of a sparse
        vector, so that no other worker can resume it.

        Raises:
            AccountFrozen, LeaseExpired: as ``execute``.
        """
        pieces = Pieces(places, secret)
        frozen = self._write(lambda rows: execute(rows, charge_id, self._lease, pieces))
        if frozen is not None:
            raise frozen
        return pieces.fence

    def begin(self, charge_id: str, up_to: int, *, fence: int) -> None:
        """Marks all instalments up to number ``up_to`` as begun: their noise may be drawn, once.

        Renews the lease.

        Raises:
            AccountFrozen: the account was frozen meanwhile.
            LeaseExpired: the lease has ended, the charge was closed, or another worker has it.
            WrongUse: place ``up_to`` was begun before, or is beyond the places that were paid for.
        """

        def transaction(rows: Rows) -> None:
            locked, row = at_step(rows, charge_id, EXECUTING, EXECUTING, fence)
            locked.require_open()
            pieces = _pieces(row).with_begun(up_to)
            rows.put_charge(self._renewed(rows, row)._replace(pieces=pieces.to_text()))
            locked.record("begin", {"charge": charge_id, "up_to": up_to})
            locked.save()

        self._write(transaction)

    def append(
        self, charge_id: str, place: int, body: bytes, *, fence: int, size: int | None = None
    ) -> None:
        """Stores instalment number ``place`` of an answer, which was begun; only then may it be
        shown.

        Places come in increasing order; skipped ones are lost. ``size`` is a public bound of the
        body's length in bytes, by default the length.

        Raises:
            LeaseExpired: the charge was suspended or ended, or another worker has it.
            WrongUse: the place is not begun, was appended before, or the body is longer than
                ``size``.
        """
        packed = self._store.pack(body, len(body) if size is None else size)
        digest = hashlib.sha256(body).hexdigest()

        def transaction(rows: Rows) -> None:
            locked, row = at_step(rows, charge_id, EXECUTING, EXECUTING, fence)
            pieces = _pieces(row).with_appended(place)
            rows.put_charge(row._replace(pieces=pieces.to_text()))
            seq = locked.record(
                "append", {"charge": charge_id, "place": place, "instalment": digest}
            )
            rows.put_instalment(InstalmentRow(charge_id, place, body, row.dataset, seq, packed))
            locked.save()

        self._write(transaction)

    def suspend(self, charge_id: str, *, fence: int, reason: str = "") -> None:
        """Suspends a charge of this worker (``fence``), so that another worker can resume it.

        ``reason`` "engine" counts as a failure of the analyst; "" is an orderly end.

        Raises:
            LeaseExpired: the charge was suspended or ended, or another worker has it.
        """

        def transaction(rows: Rows) -> None:
            locked, row = at_step(rows, charge_id, EXECUTING, SUSPENDED, fence)
            _pieces(row)
            suspend(rows, locked, row, reason)

        self._write(transaction)

    def resume(self, charge_id: str) -> Pieces:
        """Resumes a suspended charge; returns its progress, with the new worker's number (fence).

        Raises:
            LedgerUnavailable: the charge is not suspended, for example because another worker has
                resumed it.
            AccountFrozen: an account is frozen by the owner, or the analyst has three failures that
                the owner has not acknowledged.
        """

        def transaction(rows: Rows) -> Pieces:
            locked, row = at_step(rows, charge_id, SUSPENDED, EXECUTING)
            locked.require_open()
            require_few_failures(rows, row.dataset, row.analyst)
            pieces = Pieces.from_text(row.pieces).taken_over()
            going = row._replace(state=EXECUTING, reason="", pieces=pieces.to_text())
            rows.put_charge(going._replace(lease_until=rows.now() + self._lease))
            locked.record("resume", {"charge": charge_id, "fence": pieces.fence})
            locked.save()
            return pieces

        return self._write(transaction)

    def renew(self, charge_id: str, *, fence: int = 0) -> None:
        """Renews the lease of an executing charge; called by ``Heartbeat``.

        Raises:
            LeaseExpired: the lease has ended, the charge was closed, or another worker has it.
        """

        def transaction(rows: Rows) -> None:
            _, row = at_step(rows, charge_id, EXECUTING, EXECUTING, fence)
            rows.put_charge(self._renewed(rows, row))

        self._write(transaction)

    def _renewed(self, rows: Rows, row: ChargeRow) -> ChargeRow:
        """The charge with a full lease; refused if it has ended."""
        if row.lease_until <= rows.now():
            raise LeaseExpired(
                f"The lease of charge {row.id} has ended, so it is not renewed.",
                remedy="Ask again. What was computed meanwhile is not released.",
            )
        return row._replace(lease_until=rows.now() + self._lease)

    def suspended(self, question: str) -> str:
        """Returns the id of the suspended charge of a question, to be resumed; "" if there is none."""

        def find(rows: Rows) -> str:
            row = rows.under_way(question)
            return row.id if row is not None and row.state == SUSPENDED else ""

        return readable(lambda: self._store.read(find))

    def instalments(self, charge_id: str, *, after: int = 0) -> list[tuple[int, bytes]]:
        """Returns up to 1,000 stored instalments of a charge after number ``after``; costs no
        budget.

        Each is a pair of its place and its bytes; they are in the order of places.

        Raises:
            AccountFrozen: an account of the path is frozen: it is given no stored answer either.
            LedgerCorrupt: the bytes of an instalment differ from the appended ones.
        """

        def find(rows: Rows) -> list[tuple[int, bytes]]:
            charge = rows.charge(charge_id)
            if charge is None:
                return []
            require_open(filter(None, map(rows.account, lineage_of(charge.account))))
            stored = rows.instalments(charge_id, after, _PAGE)
            for row, entry in stored:
                if not is_instalment_of(entry, row):
                    raise LedgerCorrupt(
                        f"Instalment {row.place} of charge {charge_id} is not the one that was "
                        "appended: it was edited.",
                        remedy="Run 'sfumato ledger verify', and restore the newest copy that "
                        "verifies.",
                    )
            return [(row.place, row.body) for row, _ in stored]

        return readable(lambda: self._store.read(find))


def _pieces(row: ChargeRow) -> Pieces:
    """The progress of a charge with instalments."""
    if not row.pieces:
        raise WrongUse(
            f"Charge {row.id} is not answered in instalments.",
            allowed="one that Ledger.start has begun",
        )
    return Pieces.from_text(row.pieces)
