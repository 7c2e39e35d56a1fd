# SPDX-License-Identifier: Apache-2.0
"""Signed tasks: ECDSA with P-256 and SHA-256 over the canonical JSON of a task.

A signature is 64 bytes, r and s as big-endian numbers, as WebCrypto writes it.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA256

from sfumato.errors import InvalidDeclaration, TaskRefused, WrongUse
from sfumato.telemetry.task import ReportTask, task_from_bytes

# What is signed begins with this, so that no signature means anything else.
_CONTEXT = b"sfumato telemetry task 1\n"
_NUMBER = 32
# A key as an object, as PEM, or the path of a PEM file.
PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey | bytes | str | Path
PublicKey: TypeAlias = ec.EllipticCurvePublicKey | bytes | str | Path


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
    if any(_is_signed(read, _public(key)) for key in trusted):
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


def private_key(key: PrivateKey) -> ec.EllipticCurvePrivateKey:
    """A private key of P-256 (WrongUse for anything else; it is never quoted).

    >>> private_key(ec.generate_private_key(ec.SECP256R1())).curve.name
    'secp256r1'
    """
    found: object = key
    try:
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            found = serialization.load_pem_private_key(_pem(key), password=None)
    except (ValueError, TypeError, OSError, UnsupportedAlgorithm):
        found = None
    if isinstance(found, ec.EllipticCurvePrivateKey) and found.curve.name == "secp256r1":
        return found
    raise WrongUse(
        "The key is no private key of the curve P-256.",
        allowed="a PEM file without a password, its bytes, or a key of the package cryptography",
        remedy="openssl ecparam -name prime256v1 -genkey -noout -out telemetry.pem",
    )


def _public(key: PublicKey) -> ec.EllipticCurvePublicKey:
    """A public key of P-256 (WrongUse for anything else)."""
    found: object = key
    try:
        if not isinstance(key, ec.EllipticCurvePublicKey):
            found = serialization.load_pem_public_key(_pem(key))
    except (ValueError, TypeError, OSError, UnsupportedAlgorithm):
        found = None
    if isinstance(found, ec.EllipticCurvePublicKey) and found.curve.name == "secp256r1":
        return found
    raise WrongUse(
        "A trusted key is no public key of the curve P-256.",
        allowed="a PEM file, its bytes, or a key of the package cryptography",
        remedy="openssl ec -in telemetry.pem -pubout -out telemetry.pub",
    )


def _pem(key: object) -> bytes:
    """The bytes of a key: given, or in a file."""
    if isinstance(key, bytes):
        return key
    if isinstance(key, str | Path):
        return Path(key).read_bytes()
    raise TypeError("key")
