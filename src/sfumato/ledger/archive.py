# SPDX-License-Identifier: Apache-2.0
"""A whole ledger as lines of JSON, to be kept elsewhere or read into another store.

The journal is the ledger: with the answers' bytes it is all that an archive holds. Reading
it in writes every row anew from the journal and then checks it as ``verify`` does, in one
unit of work: a line that was edited, lost or moved leaves the store as empty as it was.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any

from sfumato.errors import LedgerCorrupt, WrongUse, shown
from sfumato.ledger.binding import binding_entries
from sfumato.ledger.journal import Entry, canonical_json
from sfumato.ledger.replay import Replay, opened_row
from sfumato.ledger.store.base import (
    COMMITTED,
    EXECUTING,
    FORFEITED,
    VOIDED,
    AnswerRow,
    ChargeRow,
    Counts,
    KeyRow,
    PartRow,
    Rows,
    Store,
)
from sfumato.ledger.tree import Scope
from sfumato.ledger.verify import check

_FORMAT = 1
_AFTER = {"execute": EXECUTING, "commit": COMMITTED, "forfeit": FORFEITED, "void": VOIDED}


def lines(rows: Rows) -> Iterator[str]:
    """The archive, line by line: what it is, then each entry, an answer before the entry that stores it."""
    yield canonical_json({"sfumato-archive": _FORMAT})
    for chain in rows.chains():
        for entry in rows.entries(chain):
            body = json.loads(entry.body)
            if "answer" in body:
                charge = rows.charge(body["charge"])
                answer = rows.answer(charge.question) if charge else None
                if answer is None:
                    raise LedgerCorrupt(f"The answer of charge {body['charge']} is missing.")
                yield canonical_json({"answer": base64.b64encode(answer.body).decode()})
            yield canonical_json({"entry": list(entry)})


def load(store: Store, archive: Iterable[str]) -> int:
    """Reads an archive into an empty store; how many entries there were.

    Raises:
        WrongUse: the store is not empty, or this is no archive of a format that is known.
        LedgerCorrupt: the archive does not say what happened; the store is left empty.
    """

    def unit(rows: Rows) -> int:
        if rows.counts() != Counts(0, 0, 0, 0, 0, 0):
            raise WrongUse(
                f"The ledger {shown(store.place)} is not empty.",
                remedy="Import into a new one: two histories cannot be made one.",
            )
        entries = _fill(rows, iter(archive))
        problems = list(check(rows, []).problems)
        if problems:
            raise LedgerCorrupt("The archive does not say what happened:\n" + "\n".join(problems[:50]))
        return entries

    count = store.write(unit)
    store.checkpoint()
    return count


def _fill(rows: Rows, archive: Iterator[str]) -> int:
    if _form(next(archive, "{}")).get("sfumato-archive") != _FORMAT:
        raise WrongUse(
            "This is no archive of a ledger.", allowed=f"what 'sfumato ledger export' wrote, format {_FORMAT}"
        )
    replay, filled, answer, count = Replay(), _Filling(rows), b"", 0
    for line in archive:
        form = _form(line)
        if "answer" in form:
            answer = base64.b64decode(form["answer"])
            continue
        try:
            entry = Entry(*form["entry"])
            replay.apply(entry)
            filled.apply(entry, json.loads(entry.body), answer)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LedgerCorrupt(f"Line {count + 2} of the archive cannot be read ({type(error).__name__}).") from None
        count += 1
    for row in replay.rows():
        rows.put_account(row)
    # an archive of an older format has entries that bind no account
    for entry, after in binding_entries(replay.rows()):
        rows.append(entry)
        for row in after:
            rows.put_account(row)
    return count


def _form(line: str) -> dict[str, Any]:
    try:
        form = json.loads(line)
    except ValueError:
        form = None
    return form if isinstance(form, dict) else {}


class _Filling:
    """Writes the charges, answers and keys of entries, each as it is when its entry was written."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def apply(self, entry: Entry, body: dict[str, Any], answer: bytes) -> None:
        """The rows of one entry."""
        self._rows.append(entry)
        if entry.kind in ("reserve", "share"):
            row = opened_row(entry, body, canonical_json(body["cost"]))
            shared = entry.kind == "share"
            self._rows.put_charge(row._replace(state=COMMITTED) if shared else row)
            if shared:
                self._answer(row, answer, entry.seq)
        elif entry.kind in _AFTER:
            row = self._charge(body["charge"])
            self._rows.put_charge(row._replace(state=_AFTER[entry.kind], reason=body.get("reason", "")))
            if entry.kind == "commit":
                self._answer(row, answer, entry.seq)
                parts = body.get("parts", ())
                self._rows.put_parts([PartRow(part, row.id, entry.chain, entry.seq) for part in parts])
        elif entry.kind == "thaw":
            self._acknowledge(body)
        if "key" in body:
            self._rows.put_key(
                KeyRow(body["account"], body["key"], body["request"], body["charge"], entry.chain, entry.seq)
            )

    def _answer(self, row: ChargeRow, body: bytes, seq: int) -> None:
        shared = "" if row.source else row.shared
        self._rows.put_answer(AnswerRow(row.question, row.statement, shared, row.id, body, seq))

    def _acknowledge(self, body: dict[str, Any]) -> None:
        account = body["account"] if "account" in body else Scope(body["dataset"]).id
        for row in self._rows.failures(Scope.of(account).root):
            if account in Scope.of(row.account).lineage:
                self._rows.put_charge(row._replace(acknowledged=1))

    def _charge(self, charge_id: str) -> ChargeRow:
        row = self._rows.charge(charge_id)
        if row is None:
            raise KeyError(charge_id)
        return row
