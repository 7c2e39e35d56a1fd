# SPDX-License-Identifier: Apache-2.0
"""Masked shares as ciphertexts of BFV: the coordinator adds them and reads not even their sum.

Source: Fan and Vercauteren, "Somewhat Practical Fully Homomorphic Encryption" (2012), in SEAL
through TenSEAL, an optional package (``sfumato[bfv]``). Always on top of masks: whoever hands a
site one ciphertext instead of the sum would else learn what one hospital sent.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from math import isqrt
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sfumato.errors import InvalidDeclaration, StudyFailed, WrongUse
from sfumato.noise import Integers
from sfumato.noise.entropy import token
from sfumato.privacy.event import Json
from sfumato.telemetry.sealing import SUITE

BFV = "bfv"
# The slots of a ciphertext; with the default modulus of SEAL for it 128 bits of security.
_SLOTS = 4096
# Each integer modulo 2^64 travels as so many limbs of 16 bits.
_LIMBS, _LIMB = 4, 16
_CONTEXT = b"sfumato study run key 1\n"
_ANSWER = b"sfumato study answer 1\n"
# The nonce of the run's key; those of answers are random.
_NONCE = bytes(12)
# What TenSEAL raises at bytes that are no ciphertexts of this modulus.
_INVALID = (ValueError, RuntimeError, TypeError)


def require_bfv() -> None:
    """Raises an error unless TenSEAL is installed, which encrypted studies need.

    Raises:
        WrongUse: it is not.
    """
    if find_spec("tenseal") is None:
        raise WrongUse("TenSEAL is not installed.", remedy="pip install 'sfumato[bfv]'")


@dataclass(frozen=True, slots=True)
class RunKey:
    """The secret encryption key of one run of a study; the analyst and the sites have it.

    The coordinator does not, and adds ciphertexts.

    Guarantees:
        the sum of ciphertexts opens as the sum of the shares, to the bit
        the coordinator sees ciphertexts alone, of shares, sums and answers
    """

    _secret: Any
    _modulus: int
    _own: bytes

    @classmethod
    def new(cls, sites: int) -> "RunKey":
        """Returns a fresh key, whose ciphertexts of up to ``sites`` shares can be added."""
        modulus = modulus_of(sites)
        return cls(_context(modulus), modulus, AESGCM.generate_key(128))

    @classmethod
    def opened(
        cls,
        form: Json,
        study: str,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        sites: int,
    ) -> "RunKey":
        """Decrypts the run's key from the JSON in a proposal, with the private key of a party.

        Raises:
            InvalidDeclaration: it has none that opens with this party's key.
        """
        try:
            if not isinstance(form, dict):
                raise ValueError
            own = _own_key(form["sealed"], study, name, key)
            text = b64decode(str(form["key"]), validate=True)
            secret = AESGCM(own).decrypt(_NONCE, text, _info(study, ""))
            return cls(_tenseal().context_from(secret), modulus_of(sites), own)
        except (KeyError, InvalidTag, *_INVALID):
            raise InvalidDeclaration("A proposal without a key for this party.") from None

    def sealed(self, study: str, parties: Mapping[str, ec.EllipticCurvePublicKey]) -> Json:
        """Returns the run's key as JSON for a proposal, encrypted to each party's public key
        (HPKE).
        """
        secret = self._secret.serialize(
            save_public_key=False,
            save_secret_key=True,
            save_galois_keys=False,
            save_relin_keys=False,
        )
        text = AESGCM(self._own).encrypt(_NONCE, secret, _info(study, ""))
        return {
            "key": b64encode(text).decode(),
            "sealed": {
                name: SUITE.encrypt(self._own, key, _info(study, name)).hex()
                for name, key in parties.items()
            },
        }

    def encrypt_answer(self, body: bytes) -> bytes:
        """Encrypts the bytes of an answer for the analyst and the sites of the run."""
        nonce = bytes.fromhex(token())[:12]
        return nonce + AESGCM(self._own).encrypt(nonce, body, _ANSWER)

    def encrypt(self, share: bytes) -> bytes:
        """Encrypts a site's masked share, which has 8 bytes an integer, so that ciphertexts can be
        added.

        Raises:
            StudyFailed: the key of the run is none.
        """
        limbs = np.frombuffer(share, "<u2")
        padded = np.zeros(-(-len(limbs) // _SLOTS) * _SLOTS, np.int64)
        padded[: len(limbs)] = limbs
        blocks = padded.reshape(-1, _SLOTS).tolist()
        tenseal = _tenseal()
        try:
            return _framed([tenseal.bfv_vector(self._secret, each).serialize() for each in blocks])
        except _INVALID:
            raise StudyFailed("A key of a run that encrypts nothing.") from None

    def decrypt(self, total: bytes, size: int) -> bytes:
        """Decrypts a sum of ciphertexts to the sum of the shares modulo 2^64, of ``size`` bytes.

        Raises:
            StudyFailed: these are no ciphertexts of this key.
        """
        try:
            blocks = [
                _tenseal().bfv_vector_from(self._secret, part).decrypt() for part in _parts(total)
            ]
            limbs = np.array(blocks, np.int64).reshape(-1)[: size // 2].reshape(-1, _LIMBS)
            if 2 * limbs.size != size:
                raise ValueError("too few")
        except _INVALID:
            raise StudyFailed("A step of the run has no sum.") from None
        return _joined(limbs % self._modulus).tobytes()


def opened_answer(
    sealed: Json,
    study: str,
    name: str,
    key: ec.EllipticCurvePrivateKey,
    answer: bytes,
) -> bytes:
    """Decrypts an answer with a party's private key; ``sealed`` are the keys in its run's proposal.

    Raises:
        InvalidDeclaration: it does not open with this party's key.
    """
    try:
        own = _own_key(sealed, study, name, key)
        return AESGCM(own).decrypt(answer[:12], answer[12:], _ANSWER)
    except (KeyError, InvalidTag, *_INVALID):
        raise InvalidDeclaration("An answer that does not open.") from None


def _own_key(sealed: Json, study: str, name: str, key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key of a run's key that was sealed to a party."""
    if not isinstance(sealed, dict):
        raise ValueError("no sealed keys")
    return SUITE.decrypt(bytes.fromhex(str(sealed[name])), key, _info(study, name))


def added_ciphertexts(shares: Mapping[str, bytes], sites: int) -> bytes:
    """Returns the ciphertext of the sum of the sites' encrypted shares; needs no secret key.

    ``sites`` is the number of sites in the study.

    Raises:
        ValueError: these are no ciphertexts, or not equally many.
    """
    context = _adding(modulus_of(sites))
    tenseal = _tenseal()
    try:
        first, *others = (
            [tenseal.bfv_vector_from(context, part) for part in _parts(share)]
            for share in shares.values()
        )
        for share in others:
            first = [total + part for total, part in zip(first, share, strict=True)]
        return _framed([total.serialize() for total in first])
    except _INVALID as error:
        raise ValueError("no ciphertexts") from error


def modulus_of(sites: int) -> int:
    """Returns the smallest prime modulus with a slot for each limb that sums of limbs do not reach.

    >>> modulus_of(3), modulus_of(20)
    (270337, 1318913)
    """
    step = 2 * _SLOTS
    modulus = (sites << _LIMB) // step * step + 1
    while modulus <= sites << _LIMB or any(
        modulus % part == 0 for part in range(3, isqrt(modulus) + 1, 2)
    ):
        modulus += step
    return modulus


def _joined(limbs: Integers) -> Integers:
    """The integers modulo 2^64 of sums of limbs, which may exceed 16 bits."""
    total = np.zeros(len(limbs), np.uint64)
    for place in range(_LIMBS):
        total += limbs[:, place].astype(np.uint64) << np.uint64(_LIMB * place)
    return total.astype("<u8")


def _tenseal() -> Any:
    return import_module("tenseal")


def _context(modulus: int) -> Any:
    """A fresh secret key with its parameters."""
    tenseal = _tenseal()
    return tenseal.context(
        tenseal.SCHEME_TYPE.BFV,
        poly_modulus_degree=_SLOTS,
        plain_modulus=modulus,
        encryption_type=tenseal.ENCRYPTION_TYPE.SYMMETRIC,
    )


@lru_cache(maxsize=8)
def _adding(modulus: int) -> Any:
    """Parameters to add with; the key in them opens nothing that anybody sent."""
    return _context(modulus)


def _info(study: str, site: str) -> bytes:
    return _CONTEXT + f"{study} {site}".encode()


def _framed(parts: list[bytes]) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _parts(framed: bytes) -> list[bytes]:
    """The ciphertexts of a message.

    Raises:
        ValueError: it is cut.
    """
    parts, place = [], 0
    while place < len(framed):
        size = int.from_bytes(framed[place : place + 4], "big")
        part = framed[place + 4 : place + 4 + size]
        if len(part) < size or not size:
            raise ValueError("cut")
        parts.append(part)
        place += 4 + size
    return parts
