# SPDX-License-Identifier: Apache-2.0
"""Keys of the curve P-256: as objects, as PEM, and as the point string of a task."""

import base64
from pathlib import Path
from typing import TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.errors import WrongUse

# A key as an object, as PEM (text or bytes, as all clients take it), or the path of a PEM file.
PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey | bytes | str | Path
PublicKey: TypeAlias = ec.EllipticCurvePublicKey | bytes | str | Path


def private_key(key: PrivateKey) -> ec.EllipticCurvePrivateKey:
    """Returns a P-256 private key (WrongUse for anything else; the key is never quoted).

    >>> private_key(ec.generate_private_key(ec.SECP256R1())).curve.name
    'secp256r1'
    """
    parsed: object = key
    try:
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            parsed = serialization.load_pem_private_key(_pem(key), password=None)
    except (ValueError, TypeError, OSError, UnsupportedAlgorithm):
        parsed = None
    if isinstance(parsed, ec.EllipticCurvePrivateKey) and parsed.curve.name == "secp256r1":
        return parsed
    raise WrongUse(
        "The key is no private key of the curve P-256.",
        allowed="a PEM file without a password, its bytes, or a key of the package cryptography",
        remedy="openssl ecparam -name prime256v1 -genkey -noout -out key.pem",
    )


def public_key(key: PublicKey) -> ec.EllipticCurvePublicKey:
    """Returns a P-256 public key (WrongUse for anything else).

    >>> public_key(ec.generate_private_key(ec.SECP256R1()).public_key()).curve.name
    'secp256r1'
    """
    parsed: object = key
    try:
        if not isinstance(key, ec.EllipticCurvePublicKey):
            parsed = serialization.load_pem_public_key(_pem(key))
    except (ValueError, TypeError, OSError, UnsupportedAlgorithm):
        parsed = None
    if isinstance(parsed, ec.EllipticCurvePublicKey) and parsed.curve.name == "secp256r1":
        return parsed
    raise WrongUse(
        "The key is no public key of the curve P-256.",
        allowed="PEM, the path of a PEM file, or a key of the package cryptography",
        remedy="openssl ec -in key.pem -pubout -out key.pub",
    )


def _pem(key: object) -> bytes:
    """Returns the bytes of a key: given, or in a file."""
    if isinstance(key, bytes):
        return key
    if isinstance(key, str) and key.lstrip().startswith("-----BEGIN "):
        return key.encode()
    if isinstance(key, str | Path):
        try:
            return Path(key).read_bytes()
        except FileNotFoundError:
            # not quoted: it could be a key that was pasted
            raise WrongUse(
                "There is no file of that name, so there is no key of the curve P-256.",
                allowed="the path of a PEM file, or PEM",
                remedy="Check the path.",
            ) from None
    raise TypeError("key")


def point_text(key: PublicKey) -> str:
    """Returns a P-256 public key as text: the base64 of its uncompressed point (SEC 1, 65 bytes).

    >>> len(base64.b64decode(point_text(ec.generate_private_key(ec.SECP256R1()).public_key())))
    65
    """
    form = serialization.PublicFormat.UncompressedPoint
    point = public_key(key).public_bytes(serialization.Encoding.X962, form)
    return base64.b64encode(point).decode()


def key_of_point(text: str) -> ec.EllipticCurvePublicKey:
    """Returns the P-256 public key whose text ``point_text`` wrote.

    Raises:
        ValueError: the text is not the base64 of 65 bytes, or no point of the curve.
    """
    point = base64.b64decode(text, validate=True)
    if base64.b64encode(point).decode() != text or len(point) != 65:
        raise ValueError("no point")
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
