# SPDX-License-Identifier: Apache-2.0
"""Signed tasks: ECDSA with P-256 and SHA-256 over the canonical JSON of a task.

``charge.sign`` makes them, ``client`` verifies them. A signature is 64 bytes, r and s as big-endian
numbers, as WebCrypto writes it. The time of signing is signed too: no correct clock of a device
that has the task is before it.
"""

import base64
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA256

from sfumato.errors import InvalidDeclaration, TaskRefused, WrongUse, shown
from sfumato.privacy.event import Json
from sfumato.telemetry.keys import PrivateKey, PublicKey, private_key, public_key
from sfumato.telemetry.task import ReportTask, task_from_bytes

# What is signed begins with this, so that no signature means anything else. The first is that of
# tasks that do not say when they were signed.
_CONTEXT = b"sfumato telemetry task 1\n"
_TIMED = b"sfumato telemetry task 2\n"
_NUMBER = 32
# Seconds since 1970, as those of a task.
_LATEST = 1 << 40


@dataclass(frozen=True, slots=True)
class SignedTask:
    """A task with the signature of its owner, as it is published.

    ``signed_at`` is the time of signing, in seconds since 1970; None for earlier versions.

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
    signed_at: int | None = None

    def to_bytes(self) -> bytes:
        """Returns JSON: the canonical task as a string, the base64 signature, the signing time."""
        form: dict[str, Json] = {"signature": base64.b64encode(self.signature).decode()}
        if self.signed_at is not None:
            form["signed_at"] = self.signed_at
        form["task"] = self.task.to_bytes().decode()
        return json.dumps(form, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, body: bytes) -> "SignedTask":
        """Reads a signed task from the bytes that ``to_bytes`` returned; does not verify the
        signature.

        Raises:
            InvalidDeclaration: the bytes are no signed task.
        """
        try:
            form = json.loads(body)
            signed_at = form.pop("signed_at", None)
            is_moment = signed_at is None or _is_moment(signed_at)
            if form.keys() == {"signature", "task"} and is_moment:
                signature = base64.b64decode(form["signature"], validate=True)
                return cls(task_from_bytes(form["task"].encode()), signature, signed_at)
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        raise InvalidDeclaration("These bytes are no signed telemetry task.")

    @property
    def signed_text(self) -> bytes:
        """The bytes that the signature covers."""
        if self.signed_at is None:
            return _CONTEXT + self.task.to_bytes()
        return _TIMED + b"%d\n" % self.signed_at + self.task.to_bytes()


def signed_task(
    task: ReportTask,
    key: PrivateKey,
    *,
    signed_at: int | None = None,
) -> SignedTask:
    """Signs a task. Devices should only get tasks of ``charge.sign``, which charges first.

    ``signed_at`` is the present time unless a test states another.

    Raises:
        WrongUse: the key is no private key of P-256; an invalid moment.

    >>> from sfumato.telemetry.task import report_task
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1)
    >>> len(signed_task(task, ec.generate_private_key(ec.SECP256R1())).signature)
    64
    """
    secret = private_key(key)
    moment = int(time.time()) if signed_at is None else signed_at
    if not _is_moment(moment):
        raise WrongUse(f"signed_at={shown(moment)}.", allowed="seconds since 1970, from 0 to 2^40")
    unsigned = SignedTask(task, b"", moment)
    der = secret.sign(unsigned.signed_text, ec.ECDSA(SHA256()))
    signature = b"".join(part.to_bytes(_NUMBER, "big") for part in decode_dss_signature(der))
    return replace(unsigned, signature=signature)


def verified(signed: SignedTask | bytes, trusted: Sequence[PublicKey]) -> SignedTask:
    """Returns a signed task after checking that one of the trusted keys signed it.

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
        key.verify(der, signed.signed_text, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def _is_moment(value: object) -> bool:
    """Whether a value is a whole number of seconds since 1970."""
    return type(value) is int and 0 <= value <= _LATEST
