# SPDX-License-Identifier: Apache-2.0
"""A uniform real number against a computable one, with as many bits as it takes.

Proof: lazy_uniform.proof.md.
"""

from collections.abc import Callable
from typing import TypeAlias

from sfumato.noise.entropy import Entropy

# bounds(p): integers lower <= 2^p a <= upper of the real number a, closing in as p grows
Bounds: TypeAlias = Callable[[int], tuple[int, int]]

_STEP = 64


def is_below(real: Bounds, entropy: Entropy, *, prefix: int = 0, known: int = 0) -> bool:
    """Whether U < a, where U is uniform in [0, 1) and its first ``known`` bits are ``prefix``.

    Guarantees:
        a uniform number is below a real with the probability of the real

    >>> from sfumato.noise.entropy import SYSTEM
    >>> is_below(lambda precision: (1 << precision, 1 << precision), SYSTEM)
    True
    """
    while True:
        prefix, known = prefix << _STEP | entropy.bits(_STEP), known + _STEP
        lower, upper = real(known)
        if prefix + 1 <= lower:
            return True
        if prefix >= upper:
            return False
