# SPDX-License-Identifier: Apache-2.0
"""Export and import of a whole ledger as lines of JSON.

An archive holds the journal and the bytes of the answers. Importing rebuilds every row from the
journal and verifies the result as ``verify`` does, in one transaction: if a line was edited, lost
or moved, the store stays empty. The last line has the number of lines and a signed head, so that
truncation is detected.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.errors import LedgerCorrupt, WrongUse, shown
from sfumato.ledger.account_path import Scope
from sfumato.ledger.binding import binding_entries
from sfumato.ledger.charge_entry import opened_row
from sfumato.ledger.journal import Entry, canonical_json
from sfumato.ledger.pieces import gone_on, opened_pieces
from sfumato.ledger.replay import Replay
from sfumato.ledger.replayed import GOING_ON
from sfumato.ledger.signed_heads import Head
from sfumato.ledger.store.base import (
    COMMITTED,
    COUNTED,
    EXECUTING,
    FORFEITED,
    UNFINISHED,
    VOIDED,
    AnswerRow,
    ChargeRow,
    Counts,
    InstalmentRow,
    KeyRow,
    PartRow,
    Rows,
    Store,
)
from sfumato.ledger.verify import check

# Since format 3, a body may take several lines, and there are instalments.
_FORMAT = 3
_KNOWN = (1, 2, _FORMAT)
# Archives of format 1 have no closing line: they are accepted only with a head kept elsewhere.
_UNCLOSED = 1
# The largest part of a body in one line, in bytes.
_CHUNK = 3 << 20
_EMPTY = Counts(0, 0, 0, 0, 0, 0)
_AFTER = {"execute": EXECUTING, "commit": COMMITTED, "forfeit": FORFEITED, "void": VOIDED}


def lines(rows: Rows, head: Head) -> Iterator[str]:
    """Returns the lines of an archive file of a ledger: its journal entries and answers.

    These are a header; each journal entry, with an answer before the entry that stores it; and a
    last line with the number of lines and the signed head.
    """
    yield canonical_json({"sfumato-archive": _FORMAT})
    answers = entries = 0
    for line in history(rows):
        answers += line.startswith('{"answer"')
        entries += line.startswith('{"entry"')
        yield line
    yield canonical_json({"end": {"answers": answers, "entries": entries, "head": head.to_text()}})


def history(rows: Rows) -> Iterator[str]:
    """Returns an archive's lines with entries and answers, without its header and last line."""
    for chain in rows.chains():
        for entry in rows.entries(chain):
            body = json.loads(entry.body)
            if "answer" in body or "instalment" in body:
                yield from _body_lines(_body(rows, body))
            yield canonical_json({"entry": list(entry)})


def _body(rows: Rows, entry_body: dict[str, Any]) -> bytes:
    """The bytes of the answer or instalment that an entry stores."""
    charge = rows.charge(entry_body["charge"])
    if "instalment" in entry_body:
        stored = rows.instalments(entry_body["charge"], entry_body["place"] - 1, 1)
        if stored and stored[0][0].place == entry_body["place"]:
            return stored[0][0].body
    elif charge is not None and (answer := rows.answer(charge.question)) is not None:
        return answer.body
    raise LedgerCorrupt(f"An answer of charge {entry_body['charge']} is missing.")


def _body_lines(body: bytes) -> Iterator[str]:
    """A body split into lines of bounded length; the last one is marked."""
    end = max(len(body) - 1, 0) // _CHUNK * _CHUNK
    for start in range(0, end, _CHUNK):
        yield canonical_json({"more": base64.b64encode(body[start : start + _CHUNK]).decode()})
    yield canonical_json({"answer": base64.b64encode(body[end:]).decode()})


def load(store: Store, archive: Iterable[str], heads: Sequence[Head] = ()) -> int:
    """Imports an archive into an empty store and returns the number of entries.

    ``heads`` are signed heads kept elsewhere: the archive must be of the same ledger, signed with
    the same key, and not behind them. The store cannot be opened until the import ends.

    Guarantees:
        a truncated archive is refused
        an archive that lacks what a kept head knows is refused

    Raises:
        WrongUse: the store is not empty, or the lines are no archive of a known format.
        LedgerCorrupt: the archive does not verify; the store is left empty.
    """

    def transaction(rows: Rows) -> int:
        require_empty(store, rows)
        filled = _fill(rows, iter(archive))
        problems = list(check(rows, [], heads).problems) + list(_strangers(filled, heads, rows))
        if problems:
            raise LedgerCorrupt(
                "The archive does not say what happened:\n" + "\n".join(problems[:50])
            )
        rows.put_about(UNFINISHED, "")
        return filled.entries

    return _into(store, transaction)


def transfer(store: Store, entries: Iterable[str]) -> int:
    """Copies the ``history`` of another store into an empty one; returns the number of entries.

    Raises:
        as ``load``.
    """

    def transaction(rows: Rows) -> int:
        require_empty(store, rows)
        filled = fill(rows, entries)
        problems = check(rows, []).problems
        if problems:
            raise LedgerCorrupt(
                "What was copied does not say what happened:\n" + "\n".join(problems[:50])
            )
        rows.put_about(UNFINISHED, "")
        return filled.entries

    return _into(store, transaction)


def _into(store: Store, transaction: Callable[[Rows], int]) -> int:
    store.write(lambda rows: begin_filling(store, rows, "an import"))
    count = store.write(transaction)
    store.checkpoint()
    return count


def begin_filling(store: Store, rows: Rows, what: str) -> None:
    """Marks a ledger's store as incomplete during an import, so that nothing can be charged to
    it.
    """
    require_empty(store, rows)
    rows.put_about(UNFINISHED, what)


def require_empty(store: Store, rows: Rows) -> None:
    """Raises an error if a store already contains rows."""
    if rows.counts() != _EMPTY:
        raise WrongUse(
            f"The ledger {shown(store.place)} is not empty.",
            remedy="Import into a new one: two histories cannot be made one.",
        )


@dataclass(slots=True)
class _Filled:
    """The result of reading an archive: the end of each chain, and the head of its last line."""

    entries: int = 0
    answers: int = 0
    head: Head | None = None
    ends: Mapping[str, int] = field(default_factory=dict)


def fill(rows: Rows, archive: Iterable[str]) -> _Filled:
    """Rebuilds and inserts every row from the entries and answers of an archive."""
    filling = _Filling(rows)
    for number, line in enumerate(archive, start=2):
        if filling.filled.head is not None:
            raise LedgerCorrupt(f"Line {number} of the archive comes after its end.")
        try:
            filling.read(_form(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise LedgerCorrupt(
                f"Line {number} of the archive cannot be read ({type(error).__name__})."
            ) from None
    return filling.finish()


def _fill(rows: Rows, archive: Iterator[str]) -> _Filled:
    version = _form(next(archive, "{}")).get("sfumato-archive")
    if type(version) is not int or version not in _KNOWN:
        raise WrongUse(
            "This is no archive of a ledger.",
            allowed=f"what 'sfumato ledger export' wrote, format {_FORMAT}",
        )
    filled = fill(rows, archive)
    if version != _UNCLOSED and filled.head is None:
        raise LedgerCorrupt(
            "The archive has no closing line: its end is missing.", remedy="Take another copy."
        )
    return filled


def _end(form: dict[str, Any], filled: _Filled) -> Head:
    """The head of the last line; its counts must match the lines before it."""
    if (form["entries"], form["answers"]) != (filled.entries, filled.answers):
        raise LedgerCorrupt(
            f"The archive has {filled.entries} entries and {filled.answers} answers, and its "
            "closing line says "
            f"{form['entries']} and {form['answers']}.",
            remedy="Take another copy.",
        )
    return Head.from_text(form["head"])


def _strangers(filled: _Filled, heads: Sequence[Head], rows: Rows) -> Iterator[str]:
    """Describes where the imported rows disagree with the archive's own head and those kept
    elsewhere.
    """
    own = filled.head
    if own is None:
        if not heads:
            yield (
                "it is of format 1, which does not tell where it ends: give a head that was kept "
                "elsewhere"
            )
        return
    yield from own.differences(rows)
    if filled.ends != {chain: seq for chain, (seq, _) in own.chains.items()}:
        yield "it does not end where its own head says"
    for head in heads:
        if (head.identity, head.public_key) != (own.identity, own.public_key):
            yield f"the head of {head.at} is of another ledger, or signed by another key"


def _form(line: str) -> dict[str, Any]:
    try:
        form = json.loads(line)
    except (ValueError, RecursionError):
        form = None
    return form if isinstance(form, dict) else {}


class _Filling:
    """Reads an archive line by line and writes the rows that its entries describe.

    Accounts are replayed in memory and written at the end. Charges, answers and keys are written
    with each entry, in their state after it.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._replay = Replay()
        self._body = b""
        self._more: list[bytes] = []
        self.filled = _Filled()

    def read(self, form: dict[str, Any]) -> None:
        """Reads one line: part of a body, the end of a body, the closing line, or an entry."""
        if "more" in form:
            self._more.append(base64.b64decode(form["more"], validate=True))
        elif "answer" in form:
            self._more.append(base64.b64decode(form["answer"], validate=True))
            self._body, self._more = b"".join(self._more), []
            self.filled.answers += 1
        elif "end" in form:
            self.filled.head = _end(form["end"], self.filled)
        else:
            entry = Entry(*form["entry"])
            self._replay.apply(entry)
            self._apply(entry, json.loads(entry.body))
            self.filled.entries += 1

    def finish(self) -> _Filled:
        """Writes the accounts, and entries that bind those of an older format."""
        self.filled.ends = {chain: seq for chain, (seq, _) in self._replay.heads.items()}
        for row in self._replay.rows():
            self._rows.put_account(row)
        for entry, accounts in binding_entries(self._replay.rows()):
            self._rows.append(entry)
            for row in accounts:
                self._rows.put_account(row)
        return self.filled

    def _apply(self, entry: Entry, body: dict[str, Any]) -> None:
        """Writes the rows of one entry."""
        self._rows.append(entry)
        if entry.kind in ("reserve", "share"):
            self._open(entry, body)
        elif entry.kind in _AFTER:
            self._move(entry, body)
        elif entry.kind in GOING_ON:
            self._go_on(entry, body)
        elif entry.kind == "thaw":
            self._acknowledge(body)
        if "key" in body:
            account, key, request = body["account"], body["key"], body["request"]
            self._rows.put_key(
                KeyRow(account, key, request, body["charge"], entry.chain, entry.seq)
            )

    def _open(self, entry: Entry, body: dict[str, Any]) -> None:
        row = opened_row(entry, body, canonical_json(body["cost"]))
        if entry.kind == "reserve":
            self._rows.put_charge(row)
            return
        self._rows.put_charge(row._replace(state=COMMITTED))
        self._answer(row, entry.seq)

    def _move(self, entry: Entry, body: dict[str, Any]) -> None:
        """Moves a charge to its next state; a commit stores its answer too."""
        row = self._charge(body["charge"])
        state, reason = _AFTER[entry.kind], body.get("reason", "")
        pieces = opened_pieces(body) if entry.kind == "execute" else row.pieces
        self._rows.put_charge(row._replace(state=state, reason=reason, pieces=pieces))
        if entry.kind == "commit":
            self._answer(row, entry.seq)
            parts = body.get("parts", ())
            self._rows.put_parts([PartRow(part, row.id, entry.chain, entry.seq) for part in parts])

    def _go_on(self, entry: Entry, body: dict[str, Any]) -> None:
        row = self._charge(body["charge"])
        row = row._replace(pieces=gone_on(row.pieces, entry.kind, body))
        if entry.kind == "append":
            self._rows.put_instalment(
                InstalmentRow(row.id, body["place"], self._body, entry.chain, entry.seq)
            )
        elif entry.kind != "begin":
            reason = body.get("reason", "")
            row = row._replace(
                state=GOING_ON[entry.kind][1],
                reason=reason,
                failures=row.failures + (reason in COUNTED),
            )
        self._rows.put_charge(row)

    def _answer(self, row: ChargeRow, seq: int) -> None:
        shared = "" if row.source else row.shared
        answer = AnswerRow(row.question, row.statement, shared, row.id, self._body, seq)
        self._rows.put_answer(answer)

    def _acknowledge(self, body: dict[str, Any]) -> None:
        account = body["account"] if "account" in body else Scope(body["dataset"]).id
        for row in self._rows.failures(Scope.of(account).root):
            if account in Scope.of(row.account).lineage:
                self._rows.put_charge(
                    row._replace(acknowledged=int(row.state == FORFEITED), failures=0)
                )

    def _charge(self, charge_id: str) -> ChargeRow:
        row = self._rows.charge(charge_id)
        if row is None:
            raise KeyError(charge_id)
        return row
