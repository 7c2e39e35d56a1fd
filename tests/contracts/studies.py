# SPDX-License-Identifier: Apache-2.0
"""Sites with keys, and their masks for a run."""

from collections.abc import Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.mechanisms.masks import FreshKey, Masks

RUN = b"r" * 32


def identities(*names: str) -> dict[str, ec.EllipticCurvePrivateKey]:
    """A key for each site."""
    return {name: ec.generate_private_key(ec.SECP256R1()) for name in names}


def publics(
    keys: Mapping[str, ec.EllipticCurvePrivateKey],
) -> dict[str, ec.EllipticCurvePublicKey]:
    """The public keys of sites."""
    return {name: key.public_key() for name, key in keys.items()}


def masks_of(keys: Mapping[str, ec.EllipticCurvePrivateKey], run: bytes = RUN) -> dict[str, Masks]:
    """The masks of every site among all of them."""
    fresh = {name: FreshKey(name, key, run) for name, key in keys.items()}
    shown = {name: (key.public, key.signature) for name, key in fresh.items()}
    return {name: key.masks(publics(keys), shown) for name, key in fresh.items()}


def summed(*bodies: bytes) -> list[int]:
    """The sum of masked vectors, as a coordinator adds them, read as signed integers."""
    total = np.zeros(len(bodies[0]) // 8, np.uint64)
    for body in bodies:
        total += np.frombuffer(body, "<u8")
    return total.view(np.int64).tolist()
