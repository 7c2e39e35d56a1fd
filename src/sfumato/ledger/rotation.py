# SPDX-License-Identifier: Apache-2.0
"""A new signing key in place of an old one, and the word of the old one that it is so.

Whoever has pinned the old key (``pins``) believes a handover that it has signed, and pins the new one.
A key that was stolen signs handovers as well as heads: then the new key is told in another way.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sfumato.errors import LedgerCorrupt, LedgerUnavailable, shown
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.pins import Pin
from sfumato.ledger.signed_heads import Signer, write_durably
from sfumato.privacy.event import Json


@dataclass(frozen=True, slots=True)
class Handover:
    """What the key ``old`` says: from now on ``new`` signs the heads of the ledger ``identity``.

    Guarantees:
        a handover that was altered is refused
        a handover counts for the pinned key and ledger alone
    """

    identity: str
    old: str
    new: str
    signature: str = ""

    @classmethod
    def from_text(cls, text: str) -> "Handover":
        """A handover as it was written.

        Raises:
            LedgerCorrupt: it is none, or its signature does not fit.
        """
        try:
            form = json.loads(text)
            body = form["handover"]
            found = cls(
                str(body["ledger"]), str(body["old"]), str(body["new"]), str(form["signature"])
            )
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(found.old))
            key.verify(bytes.fromhex(found.signature), found.message)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidSignature):
            raise LedgerCorrupt(
                "This is no handover of a key, or it was altered.", remedy="Take another copy."
            ) from None
        return found

    @property
    def message(self) -> bytes:
        """What is signed; no head reads like it."""
        return canonical_json({"sfumato-handover": self._body()}).encode()

    def to_text(self) -> str:
        """As it is written."""
        return json.dumps({"handover": self._body(), "signature": self.signature}, indent=2) + "\n"

    def applied(self, pin: Pin) -> Pin:
        """The pin after the handover.

        Raises:
            LedgerCorrupt: it is of another ledger, or another key has signed it.
        """
        if (self.identity, self.old) != (pin.ledger, pin.key.lower()):
            raise LedgerCorrupt(
                "The handover is of another ledger, or not by the pinned key.",
                remedy="Apply the handovers in their order, each at the place of its ledger.",
            )
        return Pin(pin.ledger, self.new)

    def _body(self) -> dict[str, Json]:
        return {"ledger": self.identity, "old": self.old, "new": self.new}


def rotate(path: str | Path, identity: str, output: str | Path) -> Handover:
    """Replaces the key in a file by a new one, once the handover is on disk; the old one is gone then.

    Killed in between, it leaves the old key in its place, and may be run again.

    Raises:
        LedgerUnavailable: a file cannot be written. WrongUse: the file holds no key.
    """
    if not Path(path).is_file():
        raise LedgerUnavailable(
            f"No key at {shown(path)}.", remedy="Name the file of the key with --key."
        )
    old, fresh = Signer(path), Path(f"{path}.fresh")
    try:
        fresh.unlink(missing_ok=True)
        unsigned = Handover(identity, old.public_key, Signer(fresh).public_key)
        handover = replace(unsigned, signature=old.signature(unsigned.message))
        write_durably(output, handover.to_text().encode())
        fresh.replace(path)
    except OSError as error:
        raise LedgerUnavailable(
            f"The key {shown(path)} cannot be replaced ({error.strerror})."
        ) from None
    return handover
