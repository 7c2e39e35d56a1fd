# SPDX-License-Identifier: Apache-2.0
"""Private bounds of a column that has no declared ones: a noisy histogram over powers of two.

Source: Wilson et al., "Differentially Private SQL with Bounded User Contribution" (PETS 2020),
section 5.1.1 (approximate bounds), on integers. Proof: bounds.proof.md.
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
from sfumato.metadata.coded import MAX_CODE
from sfumato.metadata.column import Integer
from sfumato.noise import SYSTEM, Entropy, Noise
from sfumato.noise.law import open_unit
from sfumato.noise.search import smallest
from sfumato.privacy.distance import Distance
from sfumato.privacy.event import AdditiveNoise

_POWERS = tuple(1 << exponent for exponent in range(MAX_CODE.bit_length()))
_GRID = (*(-power for power in reversed(_POWERS)), 0, *_POWERS)


# Tails are floats, and the smallest positive float is not far below this.
_RAREST = Fraction(1, 10**290)


@dataclass(frozen=True, slots=True)
class ApproximateBounds:
    """The mechanism of private bounds: the first and the last bin of a histogram with a noisy count
    above ``threshold``.

    The edges of the bins are ..., -4, -2, -1, 0, 1, 2, 4, ... within the widest bounds, which are 0
    or powers of two. A release returns the lower edge of the first bin above the threshold and the
    upper edge of the last one, or the widest bounds if there is none. Rows beyond the widest bounds
    count in the first or last bin.

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
                allowed="0 or a power of two each, negative or not, up to 2^52: "
                "(0, 2**20), (-1024, 1024)",
            )

    @property
    def edges(self) -> tuple[int, ...]:
        """The edges of the bins. A bin includes its upper edge; the first bin includes both."""
        lower = self.within.lower_code
        upper = self.within.upper_code
        return tuple(edge for edge in _GRID if lower <= edge <= upper)

    @property
    def threshold(self) -> int:
        """The count above which a bin is taken to have rows.

        It is the least t such that the noise of any bin exceeds t with probability at most
        ``failure``.
        """
        bins = len(self.edges) - 1
        return _threshold(self.additive.noise, bins, self.failure)

    def event(self, distance: Distance) -> AdditiveNoise:
        """Returns the event of a release; neighbours differ in at most ``distance`` rows (L1)."""
        rows_apart(distance)
        return self.additive.event(distance)

    def draw(self, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """Returns a noise sample for every bin."""
        bins = len(self.edges) - 1
        return self.additive.draw(bins, entropy)

    def release(
        self, rows: Rows, drawn: Sequence[int] | None = None, entropy: Entropy = SYSTEM
    ) -> tuple[int, int]:
        """Returns private bounds lower < upper; ``drawn`` is noise sampled before the data was
        read.
        """
        edges = self.edges
        threshold = self.threshold
        codes = on_lattice(rows, self.within)
        places = np.searchsorted(np.array(edges[1:]), codes)
        counts = np.bincount(places, minlength=len(edges) - 1)
        noise = self.draw(entropy) if drawn is None else drawn
        noisy = self.additive.release(counts.tolist(), noise)
        passed = [place for place, count in enumerate(noisy) if count > threshold]
        if not passed:
            return edges[0], edges[-1]
        least = edges[passed[0]]
        most = edges[passed[-1] + 1]
        return least, most

    def error(self, confidence: Number) -> int:
        """Returns a number of rows such that, with this confidence, every bin with at least so many
        is within the released bounds.
        """
        miss = 1 - open_unit("confidence", confidence)
        bins = len(self.edges) - 1
        return self.threshold + 1 + self.additive.error(1 - miss / bins)


def bounds(
    distance: Distance,
    epsilon: Number,
    *,
    lower: int,
    upper: int,
    failure: Number,
) -> ApproximateBounds:
    """The mechanism of private bounds, epsilon-DP; ``distance`` is in rows (L1).

    ``lower`` and ``upper`` are the widest bounds (0 or powers of two). ``failure`` bounds the
    probability that a bin without rows exceeds the threshold and makes the bounds too wide.

    Raises:
        InvalidNumber: epsilon is invalid, or ``failure`` is outside (0, 1).
        InvalidDeclaration: the widest bounds are not 0 or powers of two, or the distance is not in
            rows.

    >>> from sfumato.privacy import Norm
    >>> row = Distance(Norm.L1, Fraction(1))
    >>> bounds(row, "0.5", lower=-1024, upper=1024, failure="1e-6").threshold
    32
    """
    rows_apart(distance)
    within = Integer(lower, upper)
    additive = laplace(distance, epsilon)
    return ApproximateBounds(within, additive, _chance(failure))


@lru_cache(maxsize=256)
def _threshold(noise: Noise, bins: int, failure: Fraction) -> int:
    """The smallest t for which 1 - (1 - P(noise > t))^bins <= failure is proved."""

    def suffices(threshold: int) -> bool:
        chance = Fraction(noise.above(threshold).upper)
        return (1 - chance) ** bins >= 1 - failure

    return smallest(suffices)


def _chance(failure: Number) -> Fraction:
    """``failure`` as an exact probability from 1e-290 to 1 - 1e-15."""
    chance = positive("failure", failure, at_most=1 - Fraction(1, 10**15))
    if chance < _RAREST:
        raise InvalidNumber("A failure below 1e-290.", allowed="1e-290 or more, which is never")
    return chance
