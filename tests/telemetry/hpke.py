# SPDX-License-Identifier: Apache-2.0
"""HPKE in base mode from the words of RFC 9180: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM.

For tests alone: the product uses the package cryptography.
"""

import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_KEM = b"KEM" + (0x10).to_bytes(2, "big")
_SUITE = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (0x10, 1, 1))


def _extract(salt: bytes, key: bytes) -> bytes:
    return hmac.new(salt or bytes(32), key, hashlib.sha256).digest()


def _expand(secret: bytes, info: bytes, size: int) -> bytes:
    found, block, count = b"", b"", 0
    while len(found) < size:
        count += 1
        block = hmac.new(secret, block + info + bytes([count]), hashlib.sha256).digest()
        found += block
    return found[:size]


def _labeled_extract(suite: bytes, salt: bytes, label: bytes, key: bytes) -> bytes:
    return _extract(salt, b"HPKE-v1" + suite + label + key)


def _labeled_expand(suite: bytes, secret: bytes, label: bytes, info: bytes, size: int) -> bytes:
    return _expand(secret, size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, size)


def point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def schedule(
    shared: bytes, encapsulated: bytes, receiver: bytes, info: bytes
) -> tuple[bytes, bytes]:
    """Key and first nonce."""
    start = _labeled_extract(_KEM, b"", b"eae_prk", shared)
    secret = _labeled_expand(_KEM, start, b"shared_secret", encapsulated + receiver, 32)
    names = _labeled_extract(_SUITE, b"", b"psk_id_hash", b"")
    context = b"\0" + names + _labeled_extract(_SUITE, b"", b"info_hash", info)
    secret = _labeled_extract(_SUITE, secret, b"secret", b"")
    key = _labeled_expand(_SUITE, secret, b"key", context, 16)
    return key, _labeled_expand(_SUITE, secret, b"base_nonce", context, 12)


def seal(
    sender: ec.EllipticCurvePrivateKey,
    receiver: ec.EllipticCurvePublicKey,
    info: bytes,
    text: bytes,
    beside: bytes = b"",
) -> bytes:
    """The encapsulated key and the first message."""
    made = point(sender.public_key())
    key, nonce = schedule(sender.exchange(ec.ECDH(), receiver), made, point(receiver), info)
    return made + AESGCM(key).encrypt(nonce, text, beside)
