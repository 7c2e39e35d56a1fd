# SPDX-License-Identifier: Apache-2.0
"""Signed tasks: ECDSA with P-256 and SHA-256 over the canonical JSON of a task.

A signature is 64 bytes, r and s as big-endian numbers, as WebCrypto writes it.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA256

from sfumato.errors import InvalidDeclaration, TaskRefused
from sfumato.telemetry.keys import PrivateKey, PublicKey, private_key, public_key
from sfumato.telemetry.task import ReportTask, task_from_bytes

# What is signed begins with this, so that no signature means anything else.
_CONTEXT = b"sfumato telemetry task 1\n"
_NUMBER = 32


@dataclass(frozen=True, slots=True)
class SignedTask:
    """A task with the signature of its owner, as it is published.

    >>> from cryptography.hazmat.primitives.asymmetric import ec
    >>> from sfumato.telemetry.task import report_task
    >>> key = ec.generate_private_key(ec.SECP256R1())
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1)
    >>> signed = signed_task(task, key)
    >>> verified(signed.to_bytes(), [key.public_key()]).task == task
    True
    """

    task: ReportTask
    signature: bytes

    def to_bytes(self) -> bytes:
        """JSON of the canonical task, as a text, and the signature in base64."""
        form = {
            "signature": base64.b64encode(self.signature).decode(),
            "task": self.task.to_bytes().decode(),
        }
        return json.dumps(form, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, body: bytes) -> "SignedTask":
        """Reads ``to_bytes``; the signature is not verified.

        Raises:
            InvalidDeclaration: the bytes are no signed task.
        """
        try:
            form = json.loads(body)
            if form.keys() == {"signature", "task"}:
                signature = base64.b64decode(form["signature"], validate=True)
                return cls(task_from_bytes(form["task"].encode()), signature)
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        raise InvalidDeclaration("These bytes are no signed telemetry task.")


def signed_task(task: ReportTask, key: PrivateKey) -> SignedTask:
    """Signs a task. ``charge.sign`` charges it first; devices should get no other.

    Raises:
        WrongUse: the key is no private key of P-256.

    >>> from sfumato.telemetry.task import report_task
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1)
    >>> len(signed_task(task, ec.generate_private_key(ec.SECP256R1())).signature)
    64
    """
    secret = private_key(key)
    der = secret.sign(_CONTEXT + task.to_bytes(), ec.ECDSA(SHA256()))
    signature = b"".join(part.to_bytes(_NUMBER, "big") for part in decode_dss_signature(der))
    return SignedTask(task, signature)


def verified(signed: SignedTask | bytes, trusted: Sequence[PublicKey]) -> SignedTask:
    """A signed task whose signature is of one of the trusted keys.

    Guarantees:
        a task that was changed after it was signed is refused

    Raises:
        TaskRefused: it is of none of them.
        WrongUse: a key is no public key of P-256.

    >>> from sfumato.telemetry.task import report_task
    >>> key = ec.generate_private_key(ec.SECP256R1())
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1)
    >>> verified(signed_task(task, key), [key.public_key()]).task.id
    't'
    """
    read = signed if isinstance(signed, SignedTask) else SignedTask.from_bytes(signed)
    if any(_is_signed(read, public_key(key)) for key in trusted):
        return read
    raise TaskRefused(
        f"The task {read.task.id!r} is not signed with a trusted key.",
        allowed="tasks that the owner of a trusted key has signed",
    )


def _is_signed(signed: SignedTask, key: ec.EllipticCurvePublicKey) -> bool:
    """Whether a signature is of this key."""
    if len(signed.signature) != 2 * _NUMBER:
        return False
    first = int.from_bytes(signed.signature[:_NUMBER], "big")
    second = int.from_bytes(signed.signature[_NUMBER:], "big")
    der = encode_dss_signature(first, second)
    try:
        key.verify(der, _CONTEXT + signed.task.to_bytes(), ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True
