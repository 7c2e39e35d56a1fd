# SPDX-License-Identifier: Apache-2.0
"""Backups of a ledger that is in use, and restoring them.

A backup is one file. It is verified while it is written, and a signed head of its content is stored
beside it. What was spent later is not in it, so ``restore`` compares it with heads kept elsewhere.
If something is missing, or there is no head to compare with, the owner must accept the loss, and
every dataset is frozen before the ledger can be opened.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from sfumato.errors import LedgerCorrupt, LedgerIncomplete, LedgerUnavailable, WrongUse, shown
from sfumato.ledger.answers import Answers
from sfumato.ledger.archive import history, transfer
from sfumato.ledger.head_watch import HeadWatch
from sfumato.ledger.remembered_head import RememberedHead
from sfumato.ledger.signed_heads import Head, Signer, write_durably
from sfumato.ledger.store.base import LOSS, Rows, Store
from sfumato.ledger.store.bodies import BodyFiles
from sfumato.ledger.store.hot_copy import hot_copy
from sfumato.ledger.store.open import open_store
from sfumato.ledger.store.open_mark import BACKUP, sync_folder
from sfumato.ledger.store.sqlite import SQLite
from sfumato.ledger.store.sqlite_file import place_of
from sfumato.ledger.store.sqlite_reader import SQLiteReader
from sfumato.ledger.verify import check
from sfumato.metadata.server import is_postgres

# Suffixes of files beside a ledger file that belong to an earlier ledger at this place.
_BESIDE = ("", "-wal", ".open", ".head")
_LOST = (
    "restored from a backup that may lack charges; whoever thaws it has decided that they count as "
    "nothing"
)


def backup(place: str | Path, target: str | Path, signer: Signer) -> Head:
    """Writes the present content of a ledger in use to a file, and its signed head beside it.

    Guarantees:
        a backup takes no charge before ``restore`` has compared it

    Raises:
        LedgerMissing, LedgerUnavailable: there is no ledger, it cannot be read, or the file cannot
            be written.
        LedgerCorrupt: the copy does not verify; it is deleted.
    """
    fresh = f"{target}.new"
    try:
        identity = _copied(place, fresh)
        _mark(fresh)
        with _reading(fresh) as copy:
            _require_sound(copy)
            head = copy.read(lambda rows: signer.sign(identity, rows))
        BodyFiles(fresh).copy_to(str(target))
        Path(fresh).replace(target)
        sync_folder(str(target))
        write_durably(f"{target}.head", head.to_text().encode())
    except OSError as error:
        raise LedgerUnavailable(
            f"No backup can be kept at {shown(str(target))} ({error.strerror})."
        ) from None
    finally:
        _remove(fresh)
    return head


def restore(
    source: str | Path, place: str | Path, heads: Sequence[Head], *, accept_loss: bool = False
) -> list[str]:
    """Creates a ledger from a backup at an unused place; returns descriptions of what it lacks.

    Guarantees:
        a backup that lacks what a head knows is refused
        a loss that is accepted freezes every dataset first

    Raises:
        LedgerIncomplete: the backup lacks entries that a head covers, or there is no head, and the
            loss is not accepted.
        LedgerCorrupt: the backup does not verify. WrongUse: the place is in use.
    """
    if not Path(source).is_file():
        raise WrongUse(
            f"No file {shown(str(source))}.", remedy="Name what 'sfumato ledger backup' wrote."
        )
    _require_free(place)
    with _reading(source) as copy:
        _require_sound(copy)
        remembered = RememberedHead(copy.identity)
        forgotten = copy.read(remembered.missing_from)
        lacking = copy.read(lambda rows: lacks(rows, heads)) + ([forgotten] if forgotten else [])
    if lacking and not accept_loss:
        raise incomplete_copy(f"The backup {shown(str(source))}", lacking)
    if is_postgres(str(place)):
        _restore_to_server(str(source), str(place), lacking)
    else:
        _working_copy(str(source), f"{place_of(place)}.restoring", lacking, place_of(place))
    if forgotten:
        # the frozen ledger is at its place: what was remembered is accepted as lost
        with closing(open_store(place, read_only=True)) as frozen:
            frozen.read(remembered.accept)
    return lacking


def lacks(rows: Rows, heads: Sequence[Head]) -> list[str]:
    """Returns descriptions of the entries that signed heads cover and a ledger's rows lack.

    Without any head it is unknown whether something is missing, which counts as a lack.
    """
    if not heads:
        return ["there is no head to compare it with"]
    return [lacking for head in heads for lacking in head.differences(rows)]


def freeze_all(store: Store, reason: str) -> None:
    """Freezes every dataset, with an entry in the journal."""
    # not a Ledger: that refuses a store which lacks what is accepted as lost here
    owner = Answers(store, HeadWatch(store, None))
    for dataset in store.read(lambda rows: [row.id for row in rows.accounts() if not row.parent]):
        owner.freeze(dataset, reason=reason)


def incomplete_copy(what: str, lacking: Sequence[str]) -> LedgerIncomplete:
    """Returns the error for a backup that may lack charges, which only the owner may accept."""
    return LedgerIncomplete(
        f"{what} may have forgotten what was spent: {lacking[0]}.",
        remedy="Take a newer one, and name the newest head with --head. If they are lost: "
        "--accept-loss, which "
        "freezes the datasets until the owner has decided.",
    )


def _copied(place: str | Path, fresh: str) -> str:
    """Copies a ledger into a file; returns the ledger's identity."""
    _remove(fresh)
    if not is_postgres(str(place)):
        hot_copy(place_of(place), fresh)
        # copied after the rows that name them: a body is written before its row, and never changes
        BodyFiles(place_of(place)).copy_to(fresh)
        with _reading(fresh) as copy:
            return copy.identity
    source = open_store(place, read_only=True)
    try:
        store = SQLite(fresh)
        try:
            source.read(lambda rows: transfer(store, history(rows)))
        finally:
            store.close()
    finally:
        source.close()
    return source.identity


def _mark(copy: str) -> None:
    """Marks a copy as a backup."""
    connection = apsw.Connection(copy, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('opening', ?)", (BACKUP,))
    finally:
        connection.close()


def _restore_to_server(source: str, place: str, lacking: Sequence[str]) -> None:
    """Restores to a server in one transaction, from a working copy that is already frozen if
    necessary.
    """
    work = f"{source}.restoring"
    try:
        _working_copy(source, work, lacking, work)
        target = open_store(place)
        try:
            with _reading(work) as copy:
                copy.read(lambda rows: transfer(target, history(rows)))
        finally:
            target.close()
    finally:
        _remove(work)


def _working_copy(source: str, work: str, lacking: Sequence[str], place: str) -> None:
    """A ledger file made from a backup, frozen if something is lacking; it is renamed into place
    last.
    """
    try:
        _remove(work)
        BodyFiles(str(source)).copy_to(place)
        write_durably(work, Path(source).read_bytes())
        # a backup is a file that is marked as open, together with its log
        store = SQLite(work, create=False, accept_loss=True)
        try:
            # the file is renamed to its place only after the datasets are frozen
            store.write(lambda rows: rows.put_about(LOSS, ""))
            if lacking:
                freeze_all(store, _LOST)
        finally:
            store.close()
        Path(work).replace(place)
        sync_folder(place)
    except OSError as error:
        raise LedgerUnavailable(
            f"No ledger can be kept at {shown(place)} ({error.strerror})."
        ) from None
    finally:
        if work != place:
            _remove(work)


def _require_free(place: str | Path) -> None:
    """Refuses a place with a ledger, or with remains of one."""
    if is_postgres(str(place)):
        return  # ``load`` refuses what is not empty
    left = [f"{place}{end}" for end in _BESIDE if os.path.lexists(f"{place}{end}")]
    if left:
        raise WrongUse(
            f"{shown(left[0])} is there already.",
            remedy="Move what is left of the old ledger elsewhere, and keep it: it may know what "
            "the backup lacks. "
            "Name its head with --head.",
        )


def _require_sound(copy: Store) -> None:
    problems = copy.read(lambda rows: check(rows, [])).problems
    if problems:
        raise LedgerCorrupt(
            "The backup does not say what happened:\n" + "\n".join(problems[:50]),
            remedy="Keep the ledger as it is, and look at docs/operations.md.",
        )


@contextmanager
def _reading(path: str | Path) -> Iterator[SQLiteReader]:
    reader = SQLiteReader(path)
    try:
        yield reader
    finally:
        reader.close()


def _remove(path: str) -> None:
    """Deletes a file made here and the files that SQLite leaves beside it."""
    for end in ("", "-wal", ".lock", ".open", ".key", ".head"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    BodyFiles(path).remove()
