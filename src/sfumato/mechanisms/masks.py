# SPDX-License-Identifier: Apache-2.0
"""Masks that cancel in a sum over sites: one a pair, from a key that only the two have.

Source: Bonawitz, Ivanov, Kreuter, Marcedone, McMahan, Patel, Ramage, Segal, Seth, "Practical
Secure Aggregation" (CCS 2017), without recovery: a sum needs every site. Proof: masks.proof.md.
"""

import hashlib
from collections.abc import Mapping
from typing import NoReturn

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sfumato.errors import InvalidDeclaration
from sfumato.noise import Integers

_FRESH = b"sfumato study key 1\n"
_STEP = b"sfumato study step 1\n"


def roster_of(sites: Mapping[str, ec.EllipticCurvePublicKey]) -> str:
    """Returns the hash of the names and public keys of the sites of a secure sum.

    Raises:
        InvalidDeclaration: two sites have the same key.
    """
    points = {name: _point(key) for name, key in sorted(sites.items())}
    _require_different(points)
    listed = b"".join(_framed(name.encode(), point) for name, point in points.items())
    return hashlib.sha256(listed).hexdigest()


class FreshKey:
    """The key pair of one site for one run of secure sums, in memory alone; ``signature`` is by the
    site's long-term key.

    >>> identities = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("a", "b", "c")}
    >>> sites = {name: key.public_key() for name, key in identities.items()}
    >>> fresh = {name: FreshKey(name, key, b"run") for name, key in identities.items()}
    >>> shown = {name: (key.public, key.signature) for name, key in fresh.items()}
    >>> one = np.ones(2, np.int64)
    >>> masked = [key.masks(sites, shown).masked(1, one) for key in fresh.values()]
    >>> sum(np.frombuffer(share, "<u8") for share in masked)
    array([3, 3], dtype=uint64)
    """

    __slots__ = ("_run", "_secret", "_site", "public", "signature")

    def __init__(self, site: str, identity: ec.EllipticCurvePrivateKey, run: bytes) -> None:
        self._site, self._run = site, run
        self._secret = ec.generate_private_key(ec.SECP256R1())
        self.public = _point(self._secret.public_key())
        self.signature = identity.sign(_signed(run, site, self.public), ec.ECDSA(SHA256()))

    def masks(
        self,
        sites: Mapping[str, ec.EllipticCurvePublicKey],
        fresh: Mapping[str, tuple[bytes, bytes]],
    ) -> "Masks":
        """Returns the masks of this site, from key agreement with the other sites that take part in
        the run.

        ``sites`` are all sites of the study with their keys, ``fresh`` the keys of the run, each
        with its signature.

        Raises:
            InvalidDeclaration: a key that its site has not signed for this run, or that two sites
                present; a site that is not of the study; another key than this one's own.
        """
        points = {name: public for name, (public, _) in sorted(fresh.items())}
        _require_different(points)
        if points.get(self._site) != self.public:
            raise InvalidDeclaration("Another key in the place of this site's own.")
        run = _framed(self._run, *(_framed(name.encode(), key) for name, key in points.items()))
        pairs = {}
        for name, public in points.items():
            other = _verified(name, sites, self._run, fresh[name])
            if name != self._site:
                ends = sorted([(self._site, self.public), (name, public)])
                about = _framed(*(part for end, key in ends for part in (end.encode(), key)))
                secret = self._secret.exchange(ec.ECDH(), other)
                salt = hashlib.sha256(run).digest()
                pairs[name] = HKDF(SHA256(), 32, salt, _FRESH + about).derive(secret)
        return Masks(self._site, roster_of(sites), pairs)

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys are not pickled")


class Masks:
    """The random masks that a site adds to its shares in one run of secure sums, so that only the
    sum over all sites is readable.

    The masks of all ``sites`` of a roster cancel in the sum.

    Guarantees:
        masks cancel in the sum over all sites and in no smaller one
        a step is masked once
    """

    __slots__ = ("_last", "_pairs", "_site", "roster", "sites")

    def __init__(self, site: str, roster: str, pairs: Mapping[str, bytes]) -> None:
        self._site, self._pairs, self._last = site, dict(pairs), 0
        self.roster, self.sites = roster, len(pairs) + 1

    def masked(self, step: int, values: Integers) -> bytes:
        """Returns a site's share as bytes: integers modulo 2^64 plus the masks of a step, which
        must be later than the last one.

        Raises:
            InvalidDeclaration: the step is masked already.
        """
        if type(step) is not int or step <= self._last:
            raise InvalidDeclaration("A step that is masked already.")
        self._last = step
        total = values.astype(np.uint64)
        for name, key in self._pairs.items():
            if name > self._site:
                total += _stream(key, step, len(total))
            else:
                total -= _stream(key, step, len(total))
        return total.astype("<u8").tobytes()

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys are not pickled")


def _stream(key: bytes, step: int, size: int) -> Integers:
    """The pseudorandom numbers of a pair for a step: AES-256-CTR under a key of the step."""
    own = HKDF(SHA256(), 32, None, _STEP + step.to_bytes(8, "big")).derive(key)
    stream = Cipher(algorithms.AES(own), modes.CTR(bytes(16))).encryptor().update(bytes(8 * size))
    return np.frombuffer(stream, "<u8")


def _verified(
    name: str,
    sites: Mapping[str, ec.EllipticCurvePublicKey],
    run: bytes,
    fresh: tuple[bytes, bytes],
) -> ec.EllipticCurvePublicKey:
    """The key of a site for a run, which the site has signed."""
    public, signature = fresh
    try:
        sites[name].verify(signature, _signed(run, name, public), ec.ECDSA(SHA256()))
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public)
    except (KeyError, InvalidSignature, ValueError):
        raise InvalidDeclaration(f"A key that {name} has not signed for this run.") from None


def _require_different(points: Mapping[str, bytes]) -> None:
    if len(set(points.values())) < len(points):
        raise InvalidDeclaration("Two sites with the same key.")


def _signed(run: bytes, site: str, public: bytes) -> bytes:
    """What a site signs: its key is its own, and for this run."""
    return _FRESH + _framed(run, site.encode(), public)


def _framed(*parts: bytes) -> bytes:
    """Parts with their lengths, so that no two lists of parts give the same bytes."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
