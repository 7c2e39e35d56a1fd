# SPDX-License-Identifier: Apache-2.0
"""Compares a uniform random number with a real number, drawing only as many bits as needed.

Proof: lazy_uniform.proof.md.
"""

from collections.abc import Callable
from typing import TypeAlias

from sfumato.noise.entropy import Entropy

# bounds(p) returns integers lower <= 2^p a <= upper for a real number a, tighter with larger p
Bounds: TypeAlias = Callable[[int], tuple[int, int]]

_STEP = 64


def is_below(
    real: Bounds,
    entropy: Entropy,
    *,
    prefix: int = 0,
    known: int = 0,
) -> bool:
    """Draws whether a uniform random number U in [0, 1) is below a given real number.

    ``real`` bounds that number to any precision. The first ``known`` bits of U are ``prefix``;
    further bits are drawn only until the comparison is decided.

    Guarantees:
        a uniform number is below a real with the probability of the real

    >>> from sfumato.noise.entropy import SYSTEM
    >>> is_below(lambda precision: (1 << precision, 1 << precision), SYSTEM)
    True
    """
    while True:
        prefix = prefix << _STEP | entropy.bits(_STEP)
        known += _STEP
        lower, upper = real(known)
        if prefix + 1 <= lower:
            return True
        if prefix >= upper:
            return False
