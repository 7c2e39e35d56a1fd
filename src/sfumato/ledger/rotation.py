# SPDX-License-Identifier: Apache-2.0
"""Key rotation: a new signing key, and a handover signed with the old key.

A verifier that has pinned the old key (``pins``) accepts a handover signed with it, and pins the
new one. A stolen key can sign handovers too; then the new key must be distributed in another way.
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
    """A signed statement that key ``new`` replaces the signing key ``old`` of ledger ``identity``.

    It is signed with the old key.

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
        """Parses the text of a handover, as ``to_text`` returns it.

        Raises:
            LedgerCorrupt: the text is no handover, or its signature does not fit.
        """
        try:
            form = json.loads(text)
            body = form["handover"]
            handover = cls(
                str(body["ledger"]), str(body["old"]), str(body["new"]), str(form["signature"])
            )
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(handover.old))
            key.verify(bytes.fromhex(handover.signature), handover.message)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidSignature):
            raise LedgerCorrupt(
                "This is no handover of a key, or it was altered.", remedy="Take another copy."
            ) from None
        return handover

    @property
    def message(self) -> bytes:
        """The signed bytes; they differ from those of any head."""
        return canonical_json({"sfumato-handover": self._body()}).encode()

    def to_text(self) -> str:
        """Returns the handover as text."""
        return json.dumps({"handover": self._body(), "signature": self.signature}, indent=2) + "\n"

    def applied(self, pin: Pin) -> Pin:
        """Returns a pin in which the new signing key replaces the old one.

        Raises:
            LedgerCorrupt: the handover is of another ledger, or signed by another key than the
                pinned one.
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
    """Replaces a ledger's signing key in the file ``path``; writes the handover to ``output``
    first.

    The old key is deleted. If the process is killed in between, the old key is still in place and
    ``rotate`` can be repeated.

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
