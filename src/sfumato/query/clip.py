# SPDX-License-Identifier: Apache-2.0
"""Clips integer vectors to a norm bound, in integer arithmetic. Proof: clip.proof.md."""

import numpy as np

from sfumato.noise import Integers
from sfumato.privacy.distance import Norm

_BITS = 31
# Vectors may be this long at most: their factor and products then fit 64 bits.
LONGEST = 2**31


def clipped(
    vectors: Integers,
    bound: int,
    norm: Norm,
    owners: Integers | None = None,
) -> Integers:
    """Returns the rows of ``vectors``, each scaled to a norm of at most ``bound`` (L1 or L2),
    rounded towards zero.

    With ``owners``, rows of one owner (an index from 0) are parts of one vector, which is scaled
    as a whole. A vector within the bound is unchanged. Vectors must be shorter than 2^31, and the
    bound below 2^31.

    Guarantees:
        a clipped vector is within the bound

    >>> clipped(np.array([[30, -40], [3, 4]]), 5, Norm.L2).tolist()
    [[2, -3], [3, 4]]
    """
    sizes = np.abs(vectors)
    amounts = (sizes if norm is Norm.L1 else sizes * sizes).sum(axis=1)
    if owners is not None:
        sums = np.zeros(owners.max(initial=0) + 1, np.int64)
        np.add.at(sums, owners, amounts)
        amounts = sums[owners]
    lengths = amounts
    if norm is Norm.L2:
        # above the root: what rounding takes away is far below 1
        lengths = np.sqrt(amounts.astype(np.float64)).astype(np.int64) + 2
        within = amounts <= bound * bound
        lengths = np.where(within, bound, lengths)
    factors = (bound << _BITS) // np.maximum(lengths, bound)
    shorter = sizes * factors[:, np.newaxis] >> _BITS
    found: Integers = np.where(vectors < 0, -shorter, shorter)
    return found
