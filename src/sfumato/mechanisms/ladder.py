# SPDX-License-Identifier: Apache-2.0
"""The ladder mechanism: an integer near the exact one, drawn among all integers by rungs.

Source: Zhang, Cormode, Procopiuc, Srivastava, Xiao (SIGMOD 2015), sections 3 and 4; the
exponential mechanism of McSherry and Talwar (FOCS 2007). Proof: ladder.proof.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.rational import Number, positive
from sfumato.noise import SYSTEM, Entropy
from sfumato.noise.coin import BernoulliExp
from sfumato.noise.entropy import below
from sfumato.noise.geometric import Geometric
from sfumato.noise.law import open_unit
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Rule, Selection

# Rungs beyond these have less than this of the law together.
_REST = 1e-13


@dataclass(frozen=True, slots=True)
class LadderMechanism:
    """The ladder mechanism: draws an integer r with probability proportional to exp(-rate rung(r)).

    The rung of the exact integer f is 0; that of the next ``width + t - 1`` integers on each side
    is t, for t = 1, 2, and so on: ``width`` is what a change of one unit can make of f, and grows
    by one with each rung. It is the exponential mechanism with the score -rung over all integers.

    Guarantees:
        the event names the very rate that is drawn
        an integer is drawn with exactly the probability of its rung

    >>> mechanism = ladder(Distance(Norm.LINF, Fraction(1)), epsilon=2)
    >>> mechanism.rate
    Fraction(1, 1)
    >>> abs(mechanism.release(1000, 3) - 1000) < 1000
    True
    >>> mechanism.error("0.95", width=3)
    16
    """

    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive("rate", self.rate))

    def event(self, distance: Distance) -> Selection:
        """Returns the privacy event of a release; the rung of each integer moves by at most
        ``distance`` (Linf).
        """
        return Selection(Rule.EXPONENTIAL, self.rate, distance)

    def release(
        self,
        exact: int,
        width: int,
        entropy: Entropy = SYSTEM,
    ) -> int:
        """Returns a random integer drawn around ``exact``.

        Raises:
            InvalidNumber: a value that is no integer, or a negative width.
        """
        if type(exact) is not int or type(width) is not int or width < 0:
            raise InvalidNumber("An integer with its width.", allowed="integers, the width >= 0")
        distance = self._drawn_distance(width, entropy)
        return exact - distance if below(2, entropy) else exact + distance

    def _drawn_distance(self, width: int, entropy: Entropy) -> int:
        """How far the drawn integer is from the exact one."""
        coin = BernoulliExp(self.rate)
        steps = Geometric(1 / self.rate)
        while True:
            kind = below(2 * width + 3, entropy)
            first, second = coin.sample_one(entropy), coin.sample_one(entropy)
            if kind == 0:
                if not first and not second:
                    return 0
            elif kind <= 2 * width:
                if first and not second:
                    rung = steps.sample_one(entropy)
                    return _below_rung(rung, width) + below(width, entropy) + 1
            elif first and second:
                before = steps.sample_one(entropy)
                rung = before + 1 + steps.sample_one(entropy)
                return _below_rung(rung, width) + width + before + 1

    def error(self, confidence: Number, width: int) -> int:
        """Returns the least h such that the released integer is within h of the exact one, with
        this confidence and ``width``.

        This holds with the given confidence, for this ``width``. Computed in floating point;
        privacy does not depend on it.
        """
        covered = float(open_unit("confidence", confidence))
        passed = 0.0
        for integers, probability, distance in self._rungs(width):
            if passed + integers * probability >= covered:
                sides = math.ceil((covered - passed) / (2 * probability) - 1e-9)
                return distance + min(sides, integers // 2) if integers > 1 else 0
            passed += integers * probability
        return distance + integers // 2

    def mean_error(self, width: int) -> float:
        """Returns the mean of |released - exact|, for this width."""
        mean = 0.0
        for integers, probability, distance in self._rungs(width):
            side = integers // 2
            mean += 2 * probability * (side * distance + side * (side + 1) / 2)
        return mean

    def _rungs(self, width: int) -> Iterator[tuple[int, float, int]]:
        """The rungs of the law: how many integers, the probability of each, how far they begin."""
        if type(width) is not int or width < 0:
            raise InvalidNumber(f"width = {shown(width)}.", allowed="an integer >= 0")
        q = math.exp(-float(self.rate))
        heads, tails = q, -math.expm1(-float(self.rate))
        total = 1 + 2 * width * heads / tails + 2 * heads**2 / tails**2
        yield 1, 1 / total, 0
        rest = total - 1
        rung = 0
        while rest > _REST * total:
            weight = math.exp(-float(self.rate) * (rung + 1))
            integers = 2 * (width + rung)
            if integers:
                yield integers, weight / total, _below_rung(rung, width)
            rest -= integers * weight
            rung += 1


def ladder(distance: Distance, epsilon: Number) -> LadderMechanism:
    """Returns the ladder mechanism that is epsilon-DP: its rate is epsilon over twice the
    sensitivity of a rung (Linf).

    Raises:
        InvalidDeclaration: a distance that is not in Linf.
        InvalidNumber: an epsilon that is not above 0.

    >>> ladder(Distance(Norm.LINF, Fraction(2)), epsilon=1).rate
    Fraction(1, 4)
    """
    if distance.norm is not Norm.LINF:
        raise InvalidDeclaration(f"A rung in {distance.norm.value}.", allowed="Linf")
    mechanism = LadderMechanism(positive("epsilon", epsilon) / (2 * distance.value))
    mechanism.event(distance)
    return mechanism


def _below_rung(rung: int, width: int) -> int:
    """How many integers on one side are on the rungs 1 to ``rung``."""
    return rung * width + rung * (rung - 1) // 2
