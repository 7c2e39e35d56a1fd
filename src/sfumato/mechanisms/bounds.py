# SPDX-License-Identifier: Apache-2.0
"""Bounds of rows nobody has bounds for: a noisy histogram over a public grid of powers of two.

Source: Wilson et al., "Differentially Private SQL with Bounded User Contribution" (PETS
2020), section 5.1.1 (approximate bounds), on integers. Proof: bounds.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.rational import Number, positive
from sfumato.mechanisms.additive import AdditiveMechanism, laplace
from sfumato.mechanisms.rows import Rows, on_lattice, rows_apart
from sfumato.metadata.column import MAX_CODE, Integer
from sfumato.noise import SYSTEM, Entropy, Noise
from sfumato.noise.law import open_unit
from sfumato.noise.search import smallest
from sfumato.privacy.distance import Distance
from sfumato.privacy.event import AdditiveNoise

_POWERS = tuple(1 << exponent for exponent in range(MAX_CODE.bit_length()))
_GRID = (*(-power for power in reversed(_POWERS)), 0, *_POWERS)


# tails are stated as floats, whose least is not far below
_RAREST = Fraction(1, 10**290)


@dataclass(frozen=True, slots=True)
class ApproximateBounds:
    """The bins of a public grid that hold more rows, with noise, than ``threshold``.

    The grid is ..., -4, -2, -1, 0, 1, 2, 4, ... within the widest bounds, 0 or a power of two
    each. Released are the lower edge of the first bin that passes and the upper edge of the
    last; the widest bounds where none does. Rows beyond the widest bounds count in the bins
    at the ends.

    Guarantees:
        every bin gets the noise of the event
        an empty bin passes at most as often as declared
        a full bin is inside the bounds as often as stated

    >>> from sfumato.privacy import Norm
    >>> mechanism = bounds(Distance(Norm.L1, Fraction(1)), 1, lower=0, upper=2**20, failure=1e-9)
    >>> mechanism.release([20, 25, 31] * 100)
    (16, 32)
    >>> mechanism.release([])
    (0, 1048576)
    """

    within: Integer
    additive: AdditiveMechanism
    failure: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "failure", _chance(self.failure))
        if self.within.lower_code not in _GRID or self.within.upper_code not in _GRID:
            raise InvalidDeclaration(
                f"Widest bounds of {shown(self.within)}.",
                allowed="0 or a power of two each, negative or not, up to 2^52: (0, 2**20), (-1024, 1024)",
            )

    @property
    def edges(self) -> tuple[int, ...]:
        """The edges of the bins; a bin holds its upper edge, the first one both."""
        return tuple(
            edge for edge in _GRID if self.within.lower_code <= edge <= self.within.upper_code
        )

    @property
    def threshold(self) -> int:
        """The smallest count that the noise of all bins stays within, but for the declared failure."""
        return _threshold(self.additive.noise, len(self.edges) - 1, self.failure)

    def event(self, distance: Distance) -> AdditiveNoise:
        """What happens to rows of which neighbours differ in at most ``distance`` (L1)."""
        rows_apart(distance)
        return self.additive.event(distance)

    def draw(self, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """The noise of every bin."""
        return self.additive.draw(len(self.edges) - 1, entropy)

    def release(
        self, rows: Rows, drawn: Sequence[int] | None = None, entropy: Entropy = SYSTEM
    ) -> tuple[int, int]:
        """Bounds lower < upper. ``drawn``: the noise, where it was drawn before the read."""
        edges, threshold = self.edges, self.threshold
        places = np.searchsorted(np.array(edges[1:]), on_lattice(rows, self.within))
        counts = np.bincount(places, minlength=len(edges) - 1)
        noisy = self.additive.release(
            counts.tolist(), self.draw(entropy) if drawn is None else drawn
        )
        passed = [place for place, count in enumerate(noisy) if count > threshold]
        return (edges[passed[0]], edges[passed[-1] + 1]) if passed else (edges[0], edges[-1])

    def error(self, confidence: Number) -> int:
        """A number of rows: every bin of as many is inside the bounds, with probability >= confidence."""
        miss = 1 - open_unit("confidence", confidence)
        return self.threshold + 1 + self.additive.error(1 - miss / (len(self.edges) - 1))


def bounds(
    distance: Distance, epsilon: Number, *, lower: int, upper: int, failure: Number
) -> ApproximateBounds:
    """Private bounds, epsilon-DP; ``distance`` in rows (L1).

    ``lower`` and ``upper`` are the widest bounds (0 or powers of two); ``failure`` is the probability
    with which some bin without rows may pass and make the bounds too wide.

    Raises:
        InvalidNumber: no epsilon, or a failure outside (0, 1).
        InvalidDeclaration: widest bounds off the grid, or a distance that is not in rows.

    >>> from sfumato.privacy import Norm
    >>> bounds(Distance(Norm.L1, Fraction(1)), "0.5", lower=-1024, upper=1024, failure="1e-6").threshold
    32
    """
    rows_apart(distance)
    return ApproximateBounds(Integer(lower, upper), laplace(distance, epsilon), _chance(failure))


@lru_cache(maxsize=256)
def _threshold(noise: Noise, bins: int, failure: Fraction) -> int:
    """The smallest t with 1 - (1 - P(noise > t))^bins <= failure, certain not to be too small."""
    return smallest(lambda t: (1 - Fraction(noise.above(t).upper)) ** bins >= 1 - failure)


def _chance(failure: Number) -> Fraction:
    chance = positive("failure", failure, at_most=1 - Fraction(1, 10**15))
    if chance < _RAREST:
        raise InvalidNumber("A failure below 1e-290.", allowed="1e-290 or more, which is never")
    return chance
