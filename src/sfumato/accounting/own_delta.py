# SPDX-License-Identifier: Apache-2.0
"""The delta that events spend themselves: the probability that an event hides nothing at all.

Proof: own_delta.proof.md.
"""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.exact.bracket import Bounds, Bracket
from sfumato.exact.rounding import float_down, float_up

# Numbers with more bits than the first are rounded outward to the second.
_LONGEST, _KEPT = 4096, 320


@dataclass(frozen=True, slots=True)
class OwnDelta:
    """Bounds of the probability that at least one event of a plan fails completely, revealing its
    data: the deltas that events spend themselves.

    Exact while the fractions are short.

    Guarantees:
        own deltas are those of independent failures

    >>> tenth = OwnDelta.of(Fraction(1, 10))
    >>> tenth.either(tenth).upper
    Fraction(19, 100)
    """

    lower: Fraction = Fraction(0)
    upper: Fraction = Fraction(0)

    @classmethod
    def of(cls, delta: Fraction) -> "OwnDelta":
        """Returns the failure probability of a single event with this delta of its own."""
        return cls(delta, delta)

    def either(self, other: "OwnDelta") -> "OwnDelta":
        """Returns the failure probability of two independent sets of events together: a + b - a
        b.
        """
        if not self.upper or not other.upper:
            return self if self.upper else other
        return OwnDelta(
            _rounded(self.lower + other.lower - self.lower * other.lower, up=False),
            _rounded(self.upper + other.upper - self.upper * other.upper, up=True),
        )

    def times(self, count: int) -> "OwnDelta":
        """Returns the failure probability of ``count`` such sets of events, by repeated
        squaring.
        """
        total, power = OwnDelta(), self
        while count and self.upper:
            if count & 1:
                total = total.either(power)
            power = power.either(power)
            count >>= 1
        return total

    def left(self, delta: Fraction) -> tuple[Fraction, Fraction]:
        """Returns the part of a target ``delta`` that remains for the case that no event failed,
        rounded down and up.
        """
        return (delta - self.upper) / (1 - self.upper), (delta - self.lower) / (1 - self.lower)

    def added(self, rest: Bounds) -> Bounds:
        """Returns the total delta of a plan.

        ``rest`` bounds the delta of the plan if no event fails to hide its data.
        """
        upper = float_up(min(self.upper + (1 - self.upper) * Fraction(rest.upper), Fraction(1)))
        if rest.lower is None:
            return Bounds(None, upper)
        return Bracket(float_down(self.lower + (1 - self.lower) * Fraction(rest.lower)), upper)


NONE = OwnDelta()


def _rounded(number: Fraction, *, up: bool) -> Fraction:
    if number.denominator.bit_length() <= _LONGEST:
        return number
    shift = number.denominator.bit_length() - number.numerator.bit_length() + _KEPT
    scaled = number.numerator << shift
    whole = -(-scaled // number.denominator) if up else scaled // number.denominator
    return min(Fraction(whole, 1 << shift), Fraction(1))
