# SPDX-License-Identifier: Apache-2.0
"""The privacy curve of one integer with Skellam or binomial noise, from its exact probabilities.

For log-concave noise the worst set of outcomes is a half-line and the worst shift the largest.
Proof: log_concave.proof.md.
"""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidNumber
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.exact.rounding import exp_down, exp_up, float_down, float_up
from sfumato.noise import Binomial, Skellam

# The most thresholds to check whose probability ratio is too close to e^epsilon to compare.
_UNDECIDED = 64
# The largest epsilon; above it no protection is left.
_LARGEST = Fraction(1000)
_ITERATIONS = 60


@dataclass(frozen=True, slots=True)
class LogConcave:
    """The privacy curve of one integer plus ``noise`` (Skellam or binomial), which neighbours
    change by up to ``shift``.

    Guarantees:
        a shifted integer loses what its probabilities say
        noise of bounded support has a delta of its own

    >>> LogConcave(Skellam(50), 1).delta("0.5").upper
    2.95...e-09
    """

    noise: Skellam | Binomial
    shift: int

    def epsilon(self, delta: Number) -> Bracket:
        """Returns bounds of the least epsilon at ``delta``.

        Raises:
            InvalidNumber: delta is outside (0, 1], or so small that no epsilon up to 1000 is
                proved.
        """
        spare = positive("delta", delta, at_most=Fraction(1))
        low, high = 0.0, 1.0
        if Fraction(self.delta(0).upper) <= spare:
            return Bracket(0.0, 0.0)
        while Fraction(self.delta(high).upper) > spare:
            low, high = high, 2 * high
            if high > _LARGEST:
                raise self._no_epsilon(spare)
        low = low if Fraction(self.delta(low).lower) > spare else 0.0
        under, over = low, high
        for _ in range(_ITERATIONS):
            middle = (low + high) / 2
            reading = self.delta(middle)
            is_above, is_enough = reading.lower > spare, reading.upper <= spare
            under, over = (middle if is_above else under), (middle if is_enough else over)
            low, high = (middle, high) if is_above else (low, middle)
        return Bracket(under, over)

    def delta(self, epsilon: Number) -> Bracket:
        """Returns bounds of the least delta at ``epsilon`` >= 0."""
        loss = to_fraction("epsilon", epsilon)
        if loss < 0:
            raise InvalidNumber(f"epsilon = {loss}.", allowed="0 or greater")
        if self.shift == 0:
            return Bracket(0.0, 0.0)
        # above 1000 the upper bound is that at 1000, and the lower bound 0
        near = min(loss, _LARGEST)
        ways = [_largest_excess(noise, self.shift, near) for noise in self._directions()]
        lower = max(way.lower for way in ways) if near == loss else 0.0
        return Bracket(lower, max(way.upper for way in ways))

    def _directions(self) -> tuple[Skellam | Binomial, ...]:
        """The noise, and its mirror image if that is another distribution."""
        noise = self.noise
        if isinstance(noise, Skellam) or noise.probability == Fraction(1, 2):
            return (noise,)
        return (noise, Binomial(noise.trials, 1 - noise.probability))

    def _no_epsilon(self, delta: Fraction) -> InvalidNumber:
        return InvalidNumber(
            f"No epsilon up to {_LARGEST} is proved at delta = {float_up(delta):.6g}.",
            allowed=f"for this noise, a delta of at least {self.delta(_LARGEST).upper:.6g}",
            remedy="Ask for a larger delta, or draw more noise.",
        )


def _largest_excess(noise: Skellam | Binomial, shift: int, epsilon: Fraction) -> Bracket:
    """The largest P(X + shift >= t) - e^epsilon P(X >= t) over all t."""
    odds = max(exp_down(epsilon), Fraction(1)), exp_up(epsilon)
    first = _last_rise(noise, shift, odds[0]) + 1
    lower = upper = Fraction(0)
    for at in range(first, first + _UNDECIDED):
        moved, still = noise.above(at - shift - 1), noise.above(at - 1)
        lower = max(lower, Fraction(moved.lower) - odds[1] * Fraction(still.upper))
        upper = max(upper, Fraction(moved.upper) - odds[0] * Fraction(still.lower))
        # the difference decreases from here on
        if Fraction(noise.pmf(at - shift).lower) >= odds[1] * Fraction(noise.pmf(at).upper):
            break
    else:
        upper = max(upper, Fraction(noise.above(first + _UNDECIDED - shift - 1).upper))
    return Bracket(float_down(lower), min(float_up(upper), 1.0))


def _last_rise(noise: Skellam | Binomial, shift: int, odds: Fraction) -> int:
    """A threshold up to which the excess is proved to increase: P(X = t - shift) <= odds P(X =
    t).
    """

    def rises(at: int) -> bool:
        here = Fraction(noise.pmf(at).lower)
        return here > 0 and Fraction(noise.pmf(at - shift).upper) <= odds * here

    low = mode = _mode(noise)
    step = 1
    while rises(mode + step):
        low, step = mode + step, 2 * step
    high = mode + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return low


def _mode(noise: Skellam | Binomial) -> int:
    """The mode of the noise."""
    if isinstance(noise, Skellam):
        return 0
    return (noise.trials + 1) * noise.probability.numerator // noise.probability.denominator
