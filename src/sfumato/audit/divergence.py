# SPDX-License-Identifier: Apache-2.0
"""How far two explored laws are apart: proved bounds, both ways. Proof: divergence.proof.md.

What was not reached counts against the claim in an upper bound and for it in a lower one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.audit.explore import ONE, Explored
from sfumato.exact.bracket import Bracket
from sfumato.exact.rounding import exp_down, exp_up, float_down, float_up, log_down, log_up

# (lower, upper) under the one law and (lower, upper) under the other, of one outcome
_Pair = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Compared:
    """Two laws side by side, in the direction one against other.

    Guarantees:
        the true delta lies between its bounds
        the true epsilon lies between its bounds
        the true order of divergence lies between its bounds
    """

    one: Explored
    other: Explored

    def delta(self, epsilon: Fraction) -> Bracket:
        """The hockey-stick divergence: the largest P(A) - e^epsilon Q(A)."""
        # the factor e^epsilon in units of 1 / ONE
        down, up = math.floor(exp_down(epsilon) * ONE), math.ceil(exp_up(epsilon) * ONE)
        upper, lower = self.one.rest * ONE, -up * self.other.rest
        for p_low, p_high, q_low, q_high in self._pairs():
            upper += max(p_high * ONE - down * q_low, 0)
            lower += max(p_low * ONE - up * q_high, 0)
        return Bracket(
            max(float_down(Fraction(lower, ONE**2)), 0.0),
            min(float_up(Fraction(upper, ONE**2)), 1.0),
        )

    def epsilon(self, delta: Fraction) -> Bracket:
        """The smallest epsilon >= 0 whose hockey-stick divergence is at most ``delta``; infinite
        where there is none.
        """
        allowed, pairs = delta * ONE, self._pairs()
        highest = _largest_slope(
            [(high, low) for _, high, low, _ in pairs], math.floor(allowed) - self.one.rest, 0
        )
        lowest = _largest_slope(
            [(low, high) for low, _, _, high in pairs], math.ceil(allowed), self.other.rest
        )
        return Bracket(
            math.inf
            if lowest is None
            else max(float_down(log_down(max(lowest, Fraction(1)))), 0.0),
            math.inf if highest is None else max(float_up(log_up(max(highest, Fraction(1)))), 0.0),
        )

    def renyi(self, order: int, ignored: Fraction) -> Bracket:
        """The Renyi divergence of an integer ``order`` >= 2.

        Upper: of P and Q on the outcomes that were reached under both, if all else has at most
        the probability ``ignored`` (else infinite): with ``ignored`` it is what approximate zCDP
        asks for. Lower: of P and Q whole.
        """
        upper = kept = lower = 0
        unseen = self.other.rest
        for p_low, p_high, q_low, q_high in self._pairs():
            if p_low and q_low:
                upper += -(-(p_high**order) // q_low ** (order - 1))
                kept += p_low
            if q_high + unseen:
                lower += p_low**order // (q_high + unseen) ** (order - 1)
        if ONE - kept > ignored * ONE or not kept or not upper:
            highest = math.inf
        else:
            highest = float_up(
                (log_up(Fraction(upper, ONE)) - order * log_down(Fraction(kept, ONE))) / (order - 1)
            )
        lowest = float_down(log_down(Fraction(lower, ONE)) / (order - 1)) if lower else 0.0
        return Bracket(max(lowest, 0.0), max(highest, 0.0))

    def _pairs(self) -> list[_Pair]:
        nothing = (0, 0)
        keys = [*self.one.masses, *(key for key in self.other.masses if key not in self.one.masses)]
        return [
            (*self.one.masses.get(key, nothing), *self.other.masses.get(key, nothing))
            for key in keys
        ]


def _largest_slope(pairs: Sequence[tuple[int, int]], allowed: int, rest: int) -> Fraction | None:
    """The largest (P(A) - allowed) / (Q(A) + rest) over sets A of outcomes; None: infinite.

    The best set is the first few by their ratio, for this is the point where the largest
    P(A) - t Q(A), convex in t, falls to ``allowed`` + t rest.
    """
    if allowed < 0:
        return None
    best, p, q = (0, 1), 0, rest
    for more_p, more_q in sorted(pairs, key=_ratio, reverse=True):
        p, q = p + more_p, q + more_q
        if q == 0 and p > allowed:
            return None
        if q and (p - allowed) * best[1] > best[0] * q:
            best = p - allowed, q
    return Fraction(*best)


def _ratio(pair: tuple[int, int]) -> int:
    """p / q in units of 2^-400: different ratios of such masses are 2^-330 apart or more."""
    return (pair[0] << 400) // pair[1] if pair[1] else 1 << 800
