# SPDX-License-Identifier: Apache-2.0
"""Report noisy max: the index of the largest integer score after discrete Laplace noise.

Source: Dwork and Roth (2014), Claim 3.9; the gap: Ding, Wang, Xiao, Kifer, Zhang, "Free Gap
Information from the Differentially Private Sparse Vector and Noisy Max Mechanisms" (VLDB
2019), whose proof needs noise without ties. Proof for integers: noisy_max.proof.md.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import exp_down, exp_up, log_up
from sfumato.mechanisms.selection import count
from sfumato.noise import SYSTEM, DiscreteLaplace, Entropy, Integers
from sfumato.noise.law import open_unit
from sfumato.noise.search import smallest
from sfumato.noise.select import integers
from sfumato.privacy.distance import Distance
from sfumato.privacy.event import NoisyMax


@dataclass(frozen=True, slots=True)
class Winner:
    """The candidate that report noisy max selected, with the lead of its noisy score over the least
    one that would win (``gap``).

    The first index wins a tie, so a later candidate must exceed an earlier one by 1. So the
    difference of the two largest noisy scores is ``gap`` or ``gap`` + 1.

    >>> Winner(index=2, gap=5).gap
    5
    """

    index: int
    gap: int | None = None


@dataclass(frozen=True, slots=True)
class NoisyMaxMechanism:
    """Report noisy max: adds noise to every integer score and returns the index of the largest.

    The first index wins a tie. ``gap`` also releases the winner's lead (``Winner.gap``), at no
    further cost. ``monotone`` states that between neighbours all scores move in the same direction;
    the caller must prove it.

    Guarantees:
        the event names the very noise of the maximum
        a noisy maximum costs at most its epsilon
        the gap of a noisy maximum is free
        the error of a noisy maximum covers as often as stated

    >>> from sfumato.privacy.distance import Norm
    >>> mechanism = report_noisy_max(Distance(Norm.LINF, Fraction(1)), epsilon=1, gap=True)
    >>> mechanism.noise
    DiscreteLaplace(scale=Fraction(2, 1))
    >>> mechanism.release([30, 10, 20], drawn=[0, 5, 8])
    Winner(index=0, gap=2)
    """

    noise: DiscreteLaplace
    _: KW_ONLY
    monotone: bool = False
    gap: bool = False

    def event(self, distance: Distance) -> NoisyMax:
        """Returns the event of a release; each score changes by at most ``distance`` (Linf)."""
        return NoisyMax(self.noise, distance, self.monotone, self.gap)

    def draw(self, candidates: int, entropy: Entropy = SYSTEM) -> Integers:
        """Samples noise for this many scores."""
        return self.noise.sample(count("candidates", candidates), entropy)

    def release(
        self, scores: Integers | Sequence[int], drawn: Integers | Sequence[int] | None = None
    ) -> Winner:
        """Returns the winner among integer scores; ``drawn`` is noise sampled before the data was
        read.

        Raises:
            InvalidDeclaration: there are no candidates, a gap is asked of a single one, or the
                noise has another length.
            InvalidNumber: a score is not an integer.
        """
        exact = integers("scores", scores)
        if self.gap and len(exact) == 1:
            raise InvalidDeclaration(
                "The gap of a single candidate.", allowed="two candidates or more"
            )
        if drawn is None:
            drawn = self.draw(len(exact))
        noise = integers("noise", drawn)
        if len(noise) != len(exact):
            raise InvalidDeclaration(
                f"Noise of {len(noise)} integers for {len(exact)} scores.", allowed="one each"
            )
        noisy = exact + noise
        index = int(np.argmax(noisy))
        if not self.gap:
            return Winner(index)
        return Winner(index, int(noisy[index]) - _least(noisy, index))

    def error(self, confidence: Number, candidates: int) -> int:
        """Returns h with P(score of the winner >= best score - h) >= confidence."""
        others = count("candidates", candidates) - 1
        miss = 1 - open_unit("confidence", confidence)
        if others == 0:
            return 0

        def suffices(h: int) -> bool:
            return others * _overtakes(self.noise.scale, h + 1) <= miss

        guess = int(self.noise.scale * log_up(others / miss))
        return max(smallest(suffices, below=guess), 0)


def report_noisy_max(
    distance: Distance,
    epsilon: Number,
    *,
    monotone: bool = False,
    gap: bool = False,
) -> NoisyMaxMechanism:
    """Report noisy max, epsilon-DP: discrete Laplace noise of scale 2 s / epsilon (Linf).

    s is the sensitivity, rounded up to an integer. For monotone scores the scale is s / epsilon.

    Raises:
        InvalidDeclaration: the distance is not in Linf.
        InvalidNumber: epsilon is not above 0.

    >>> from sfumato.privacy.distance import Norm
    >>> report_noisy_max(Distance(Norm.LINF, Fraction(1)), 1, monotone=True).noise.scale
    Fraction(1, 1)
    """
    moves = math.ceil(distance.value)
    if not monotone:
        moves *= 2
    noise = DiscreteLaplace(moves / positive("epsilon", epsilon))
    mechanism = NoisyMaxMechanism(noise, monotone=monotone, gap=gap)
    mechanism.event(distance)
    return mechanism


def _least(noisy: NDArray[Any], index: int) -> int:
    """The least noisy score with which ``index`` wins.

    It must exceed all noisy scores before it and be at least all those after it.
    """
    needed = []
    if index:
        needed.append(int(noisy[:index].max()) + 1)
    if index + 1 < len(noisy):
        needed.append(int(noisy[index + 1 :].max()))
    return max(needed)


def _overtakes(scale: Fraction, lead: int) -> Fraction:
    """An upper bound of P(X - Y >= lead), for independent discrete Laplace X and Y of this scale.

    The exact value is a^lead / (1+a)^2 * (lead (1-a) + (1 + a + 2 a^2) / (1+a)) with
    a = e^(-1/scale), for lead >= 0. The bound for lead < 0 is 1.
    """
    if lead < 0:
        return Fraction(1)
    lower = exp_down(-1 / scale)
    upper = exp_up(-1 / scale)
    factor = lead * (1 - lower) + (1 + upper + 2 * upper**2) / (1 + lower)
    return exp_up(-lead / scale) * factor / (1 + lower) ** 2
