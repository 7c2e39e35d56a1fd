# SPDX-License-Identifier: Apache-2.0
"""Signed messages of a study: who says what about which run. ECDSA of P-256 over canonical JSON."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from sfumato.errors import InvalidDeclaration
from sfumato.privacy.event import Json

Body: TypeAlias = Mapping[str, Json]

_CONTEXT = b"sfumato study message 1\n"
_REQUEST = b"sfumato study request 1\n"
# The kinds of messages: those of the analyst, and those of a site.
ANALYSTS = ("proposed", "cancelled")
SITES = ("approved", "refused", "ready", "withdrawn", "failed", "answered")
ANALYST = "analyst"


@dataclass(frozen=True, slots=True)
class Message:
    """A signed message between the parties of a study: its kind, its run, its author and its
    content.
    """

    kind: str
    run: str
    author: str
    body: Body

    def signed(self, key: ec.EllipticCurvePrivateKey) -> str:
        """Returns the message as a line of JSON, with the author's signature."""
        text = canonical(
            {"kind": self.kind, "run": self.run, "author": self.author, "body": dict(self.body)}
        )
        signature = key.sign(_CONTEXT + text.encode(), ec.ECDSA(SHA256()))
        return canonical({"text": text, "signature": signature.hex()})


def verified(line: str, keys: Mapping[str, ec.EllipticCurvePublicKey]) -> Message:
    """Parses a message, and checks that the party it names as its author signed it.

    Raises:
        InvalidDeclaration: it is no message, or its author has not signed it; a site that speaks
            for the analyst, or the reverse; a proposal whose run is not its hash.
    """
    try:
        form = json.loads(line)
        text = form["text"]
        said = json.loads(text)
        message = Message(said["kind"], said["run"], said["author"], said["body"])
        signature = bytes.fromhex(form["signature"])
        keys[message.author].verify(signature, _CONTEXT + text.encode(), ec.ECDSA(SHA256()))
        is_own = message.kind in (ANALYSTS if message.author == ANALYST else SITES)
        is_body = isinstance(message.body, dict) and isinstance(message.run, str)
        is_run = message.kind != "proposed" or message.run == run_of(message.body)
    except (ValueError, KeyError, TypeError, RecursionError, InvalidSignature):
        is_own = is_body = is_run = False
    if not (is_own and is_body and is_run):
        raise InvalidDeclaration("No message of this study.") from None
    return message


def run_of(proposal: Body) -> str:
    """Returns the id of a run of a study: the SHA-256 of its proposal in hexadecimal."""
    return hashlib.sha256(canonical(dict(proposal)).encode()).hexdigest()


def canonical(value: Json) -> str:
    """Returns canonical JSON text: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def request_text(method: str, path: str, at: int, body: bytes) -> bytes:
    """Returns the bytes of an HTTP request to the coordinator that its sender signs."""
    digest = hashlib.sha256(body).hexdigest()
    return _REQUEST + f"{method} {path} {at} {digest}".encode()
