# SPDX-License-Identifier: Apache-2.0
"""The result of a verification, stored so that the next one reads only what was added.

It has the end of each chain, and the accounts, the open charges and the limits at that time. A file
with it is accepted only with its digest, which is stored with the pins (``pins``). Entries before
those ends are not read again.
"""

import hashlib
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import WrongUse
from sfumato.ledger.binding import account_digest, accounts_digest
from sfumato.ledger.charge_entry import opened_row
from sfumato.ledger.digests import PLACE
from sfumato.ledger.journal import canonical_json, is_genuine, read_json
from sfumato.ledger.replay import NO_SOURCE, Replay, Source
from sfumato.ledger.replayed import Book, Open
from sfumato.ledger.store.base import Ends, Rows
from sfumato.privacy.event import Json

_FORMAT = 2
_REMEDY = "Verify the whole ledger: without --state FILE, or after taking the file away."


@dataclass(frozen=True, slots=True)
class Verified:
    """The state of a ledger that was verified, as bytes, from which a later verification continues.

    Guarantees:
        a forged state is refused
        a state of another ledger is refused
    """

    content: bytes

    @property
    def digest(self) -> str:
        """The SHA-256 of the state, to be stored where nobody who can edit the ledger can write."""
        return hashlib.sha256(self.content).hexdigest()

    @classmethod
    def of(cls, ledger: str, replay: Replay) -> "Verified":
        """Returns the verified state of a ledger at the end of a replay without problems."""
        # a charge that was resumed after a failure is in both
        charges = (*replay.open.values(), *replay.failed.values())
        unfinished = {charge.place: charge for charge in charges}
        limits: dict[str, Json] = {}
        for name, had in replay.limits.items():
            limits[name] = [list[Json](limit) for limit in had]
        form: dict[str, Json] = {
            "format": _FORMAT,
            "ledger": ledger,
            "chains": {chain: list[Json](end) for chain, end in replay.heads.items()},
            "accounts": _accounts(replay),
            "books": {name: book.to_json() for name, book in replay.books.items()},
            "charges": replay.charges,
            "unfinished": [charge.to_json() for charge in unfinished.values()],
            "limits": limits,
        }
        return cls(zlib.compress(canonical_json(form).encode(), 1))

    @classmethod
    def read(cls, path: str | Path, digest: str) -> "Verified":
        """Reads a verified state from a file, which must have this SHA-256.

        Raises:
            WrongUse: the file cannot be read, or has another digest.
        """
        try:
            verified = cls(Path(path).read_bytes())
        except OSError as error:
            raise WrongUse(
                f"{str(path)!r} cannot be read ({error.strerror}).", remedy=_REMEDY
            ) from None
        if verified.digest != digest:
            raise WrongUse(f"{str(path)!r} is not what the last verification kept.", remedy=_REMEDY)
        return verified

    def resume(self, ledger: str) -> Replay:
        """Returns a replay that continues where this verification ended.

        Raises:
            WrongUse: the state is of another ledger, or cannot be parsed.
        """
        try:
            form = json.loads(zlib.decompress(self.content))
            if form["format"] != _FORMAT or form["ledger"] != ledger:
                raise WrongUse(
                    f"The state is of another ledger ({form['ledger']}; this is {ledger}).",
                    remedy=_REMEDY,
                )
            replay = _resumed(form)
        except (zlib.error, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise WrongUse("This is no state of a verification.", remedy=_REMEDY) from None
        if _accounts(replay) != form["accounts"]:
            raise WrongUse(
                "The accounts of the state are not those that were verified.", remedy=_REMEDY
            )
        return replay


def source_before(rows: Rows, ends: Ends, charge_id: str) -> Source:
    """Returns the account, cost and digest of an earlier answer that a later charge shares.

    The answer was committed before the entries ``ends``; they are read from the entries of its
    charge. ``NO_SOURCE`` if there is no such answer.
    """
    proof = rows.proof(charge_id)
    if proof is None or not all(map(is_genuine, proof)):
        return NO_SOURCE
    opened, ended = proof
    opening_body, commit_body = read_json(opened.body), read_json(ended.body)
    if (opened.kind, ended.kind, opening_body["charge"], commit_body["charge"]) != (
        "reserve",
        "commit",
        charge_id,
        charge_id,
    ):
        return NO_SOURCE
    if not opening_body.get("shared") or ended.seq > ends.get(ended.chain, 0):
        return NO_SOURCE
    row = opened_row(opened, opening_body, canonical_json(opening_body["cost"]))
    return row.account, row.cost, str(commit_body["answer"])


def _accounts(replay: Replay) -> str:
    """The digest of all accounts, as in a signed head."""
    return accounts_digest({row.id: account_digest(row) for row in replay.rows()})


def _resumed(form: dict[str, Any]) -> Replay:
    replay = Replay(
        books={account_id: Book.from_json(book) for account_id, book in form["books"].items()},
        heads={chain: (int(seq), str(last)) for chain, (seq, last) in form["chains"].items()},
        before=int(form["charges"]),
        limits=form["limits"],
    )
    replay.go_on(
        Open.from_json(number * PLACE, charge) for number, charge in enumerate(form["unfinished"])
    )
    return replay
