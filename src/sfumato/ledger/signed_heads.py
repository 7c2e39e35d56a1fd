# SPDX-License-Identifier: Apache-2.0
"""Signed heads: the ends of all chains of a ledger at one time, to be stored elsewhere.

Whoever can write the ledger's file can also recompute its chains, or replace it by an older copy. A
head stored elsewhere detects this, since the chains must still contain it. The key (Ed25519, RFC
8032) is in a file beside the ledger that only its owner can read.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from sfumato.errors import LedgerCorrupt, LedgerIncomplete, LedgerUnavailable, WrongUse, shown
from sfumato.ledger.binding import account_digest, accounts_digest, digests_at
from sfumato.ledger.journal import canonical_json, iso_time
from sfumato.ledger.store.base import Ends, Rows, Store
from sfumato.ledger.store.open_mark import WAY_OUT, sync_folder
from sfumato.metadata.server import is_address
from sfumato.privacy.event import Json


@dataclass(frozen=True, slots=True)
class Head:
    """A signed statement of the last entry of each of a ledger's journal chains, to detect
    rollback.

    ``identity`` is that of the ledger, ``at`` the time (ISO 8601, UTC). ``chains`` maps the name of
    each chain to the number and the hash of its last entry. ``accounts`` is the digest of all
    accounts at that time. The signature is Ed25519 (RFC 8032). Keys and hashes are in hexadecimal.

    Guarantees:
        a head that was altered is refused
        a ledger behind its head is noticed

    >>> import tempfile
    >>> from sfumato.ledger import Ledger
    >>> from sfumato.metadata.contract import Contract
    >>> from sfumato.privacy import Budget
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(folder.name + "/ledger.db")
    >>> ledger.adopt(Contract("tiny", "add-remove", {"people": "id"}, "1", "0"), Budget(1))
    >>> signer = Signer(folder.name + "/key")
    >>> head = ledger.store.read(lambda rows: signer.sign(ledger.store.identity, rows))
    >>> Head.from_text(head.to_text()) == head
    True
    >>> {name: number for name, (number, _) in head.chains.items()}
    {'tiny': 1}
    >>> ledger.close()
    >>> folder.cleanup()
    """

    identity: str
    at: str
    chains: Mapping[str, tuple[int, str]]
    public_key: str
    signature: str
    accounts: str = ""

    @classmethod
    def from_text(cls, text: str) -> "Head":
        """Parses the text that ``to_text`` returns, and checks its signature.

        Raises:
            LedgerCorrupt: the text is no head, or its signature does not fit.
        """
        try:
            form = json.loads(text)
            body = form["head"]
            chains = {
                str(chain): (int(seq), str(last)) for chain, (seq, last) in body["chains"].items()
            }
            key, signature = str(form["public_key"]), str(form["signature"])
            accounts = str(body.get("accounts", ""))
            head = cls(str(body["ledger"]), str(body["at"]), chains, key, signature, accounts)
            verifier = Ed25519PublicKey.from_public_bytes(bytes.fromhex(head.public_key))
            verifier.verify(bytes.fromhex(head.signature), head.message)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidSignature):
            raise LedgerCorrupt(
                "This is no head of a ledger, or it was altered.", remedy="Take another copy."
            ) from None
        return head

    @property
    def message(self) -> bytes:
        """The bytes that the signature covers."""
        return canonical_json({"sfumato-head": self._body()}).encode()

    def to_text(self) -> str:
        """Returns the head as text."""
        form: dict[str, Json] = {
            "head": self._body(), "public_key": self.public_key, "signature": self.signature
        }  # fmt: skip
        return json.dumps(form, indent=2, ensure_ascii=False) + "\n"

    def differences(self, rows: Rows, *, since: Ends | None = None) -> Iterator[str]:
        """Returns descriptions of how a ledger's rows contradict the state that this head signed.

        Its chains must contain the head's entries, and its accounts follow from those of the head.
        For a head older than ``since``, up to which the journal was replayed before, only the
        chains are compared.
        """
        problems = list(self._chain_differences(rows))
        if not problems and not self._is_before(since):
            problems += self._account_differences(rows)
        yield from problems

    def _is_before(self, since: Ends | None) -> bool:
        mine = {chain: seq for chain, (seq, _) in self.chains.items()}
        return (
            since is not None
            and mine != since
            and all(seq <= since.get(chain, 0) for chain, seq in mine.items())
        )

    def _account_differences(self, rows: Rows) -> Iterator[str]:
        if not self.accounts:
            return
        try:
            then = digests_at(rows, {chain: seq for chain, (seq, _) in self.chains.items()})
        except LedgerCorrupt as error:
            yield error.problem
        else:
            if accounts_digest(then) != self.accounts:
                yield (
                    f"the accounts are not those of the head of {self.at} and of what was charged "
                    "since: one was edited"
                )

    def _chain_differences(self, rows: Rows) -> Iterator[str]:
        if not self.chains:
            yield f"the head of {self.at} names no chain: it says nothing"
        for chain, (seq, last) in self.chains.items():
            name = f"the chain of {chain!r}" if chain else "the chain of format 1"
            end, entry = rows.last_entry(chain), rows.entry(chain, seq)
            if end is None or end.seq < seq:
                yield (
                    f"{name} ends before entry {seq} of the head of {self.at}: this is an older "
                    "copy, or another ledger"
                )
            elif entry is None or entry.hash != last:
                yield (
                    f"{name} is not the one of the head of {self.at}: it was rewritten, or is "
                    "another ledger"
                )

    def _body(self) -> dict[str, Json]:
        chains: dict[str, Json] = {
            chain: [seq, last] for chain, (seq, last) in sorted(self.chains.items())
        }
        bound: dict[str, Json] = {"accounts": self.accounts} if self.accounts else {}
        return {"ledger": self.identity, "at": self.at, "chains": chains, **bound}


# Where a signing key comes from: a file, or a function that gives it in PEM (from a vault, say).
Source: TypeAlias = str | Path | Callable[[], bytes]
# None: from the file beside the ledger.
Key: TypeAlias = Source | None


class Signer:
    """Signs a ledger's heads with an Ed25519 key: a given one, or one in a file.

    The file is created with mode 0600 if missing.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> signer = Signer(Path(folder.name) / "ledger.key")
    >>> len(bytes.fromhex(signer.signature(b"a message")))
    64
    >>> folder.cleanup()
    """

    def __init__(self, key: Source) -> None:
        if is_address(key):
            raise WrongUse(
                "The key of a ledger, written as an address.", allowed="the path of a file"
            )
        if isinstance(key, str | Path):
            self._key = _read_key(key) if Path(key).exists() else _make_key(key)
        else:
            self._key = _from_pem(key(), "What the function gives")

    def signature(self, message: bytes) -> str:
        """The signature of a message, in hexadecimal."""
        return self._key.sign(message).hex()

    @property
    def public_key(self) -> str:
        """The public Ed25519 key of the signer, in hexadecimal."""
        return self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()

    def sign(self, identity: str, rows: Rows) -> Head:
        """Returns the signed head of the present state of a ledger."""
        ends = {chain: rows.last_entry(chain) for chain in rows.chains()}
        chains = {chain: (entry.seq, entry.hash) for chain, entry in ends.items() if entry}
        at = iso_time(rows.now())
        accounts = accounts_digest({row.id: account_digest(row) for row in rows.accounts()})
        unsigned = Head(identity, at, chains, self.public_key, "", accounts)
        return replace(unsigned, signature=self.signature(unsigned.message))


class Beside:
    """The files beside a ledger file with its signing key and its last signed head.

    They detect that the ledger's file alone was replaced by an older copy.
    """

    def __init__(self, place: str, key: Key = None) -> None:
        self.key: Source = f"{place}.key" if key is None else key
        self._head = Path(f"{place}.head")
        self._place = place

    def head(self) -> Head | None:
        """Returns the head stored beside the ledger file; None if there is none.

        Raises:
            LedgerCorrupt: the file holds no head.
        """
        if not self._head.is_file():
            return None
        return Head.from_text(self._head.read_text(encoding="utf-8", errors="replace"))

    def require_not_older(self, store: Store) -> None:
        """Refuses a ledger that is behind the head stored beside it.

        Raises:
            LedgerIncomplete: the ledger is behind; the error says how the owner can override this.
        """
        head = self.head()
        missing = store.read(lambda rows: list(head.differences(rows))) if head else []
        if missing:
            raise forgetful(self._place, missing[0])

    def keep(self, store: Store) -> None:
        """Signs the present head of a ledger and stores it beside the ledger file."""
        head = store.read(lambda rows: Signer(self.key).sign(store.identity, rows))
        if head.chains:
            write_durably(self._head, head.to_text().encode())


def forgetful(place: str, missing: str, way_out: str = WAY_OUT) -> LedgerIncomplete:
    """Returns the error for a ledger that lacks entries of a head, with what the owner can do."""
    return LedgerIncomplete(
        f"The ledger {shown(place)} forgets what was spent: {missing}.",
        remedy=f"Restore the newest copy. If it is lost: {way_out}",
    )


def write_durably(path: str | Path, content: bytes) -> None:
    """Writes a file of mode 0600 atomically, and syncs it, and its folder where possible."""
    fresh = f"{path}.new"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    Path(fresh).replace(path)
    with suppress(OSError):
        sync_folder(path)


def _read_key(path: str | Path) -> Ed25519PrivateKey:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise LedgerUnavailable(
            f"The key {shown(path)} cannot be read ({error.strerror})."
        ) from None
    return _from_pem(content, f"The file {shown(path)}")


def _from_pem(content: bytes, source: str) -> Ed25519PrivateKey:
    try:
        key: Any = load_pem_private_key(content, None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise WrongUse(
            f"{source} holds no Ed25519 key.", allowed="a private key in PEM, unencrypted"
        )
    return key


def _make_key(path: str | Path) -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.generate()
    try:
        write_durably(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    except OSError as error:
        raise LedgerUnavailable(
            f"No key can be kept at {shown(path)} ({error.strerror})."
        ) from None
    return key
