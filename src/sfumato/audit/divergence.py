# SPDX-License-Identifier: Apache-2.0
"""Proved lower and upper bounds of the divergence of two explored distributions.

``verify`` compares the output distributions of neighbours. Upper bounds assume the worst of the
outcomes that were not reached, lower bounds the best. Proof: divergence.proof.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.audit.explore import ONE, Explored
from sfumato.exact.bracket import Bracket
from sfumato.exact.rounding import exp_down, exp_up, float_down, float_up, log_down, log_up

# The bounds (lower, upper) of the mass of one outcome, under P and then under Q.
_Pair = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Compared:
    """Two explored output distributions and the divergences of ``one`` (P) from ``other`` (Q).

    Guarantees:
        the true delta lies between its bounds
        the true epsilon lies between its bounds
        the true order of divergence lies between its bounds
    """

    one: Explored
    other: Explored

    def delta(self, epsilon: Fraction) -> Bracket:
        """Returns bounds of the hockey-stick divergence: the largest P(A) - e^epsilon Q(A)."""
        # bounds of e^epsilon in multiples of 1 / ONE
        down = math.floor(exp_down(epsilon) * ONE)
        up = math.ceil(exp_up(epsilon) * ONE)
        upper = self.one.rest * ONE
        lower = -up * self.other.rest
        for p_low, p_high, q_low, q_high in self._pairs():
            upper += max(p_high * ONE - down * q_low, 0)
            lower += max(p_low * ONE - up * q_high, 0)
        return Bracket(
            max(float_down(Fraction(lower, ONE**2)), 0.0),
            min(float_up(Fraction(upper, ONE**2)), 1.0),
        )

    def epsilon(self, delta: Fraction) -> Bracket:
        """Returns bounds of the smallest epsilon >= 0 whose hockey-stick divergence is at most
        ``delta``.

        Infinite if there is none.
        """
        allowed, pairs = delta * ONE, self._pairs()
        worst_case = [(p_high, q_low) for _, p_high, q_low, _ in pairs]
        best_case = [(p_low, q_high) for p_low, _, _, q_high in pairs]
        highest = _largest_slope(worst_case, math.floor(allowed) - self.one.rest, 0)
        lowest = _largest_slope(best_case, math.ceil(allowed), self.other.rest)
        lower = upper = math.inf
        if lowest is not None:
            lower = float_down(log_down(max(lowest, Fraction(1))))
        if highest is not None:
            upper = float_up(log_up(max(highest, Fraction(1))))
        return Bracket(max(lower, 0.0), max(upper, 0.0))

    def renyi(self, order: int, ignored: Fraction) -> Bracket:
        """Returns bounds of the Renyi divergence of an integer ``order`` >= 2.

        The upper bound is over the outcomes that were reached under both, if all others have at
        most the probability ``ignored``, as approximate zCDP requires; else it is infinite. The
        lower bound is over all outcomes.
        """
        upper = kept = lower = 0
        unseen = self.other.rest
        for p_low, p_high, q_low, q_high in self._pairs():
            if p_low and q_low:
                upper += -(-(p_high**order) // q_low ** (order - 1))
                kept += p_low
            if q_high + unseen:
                lower += p_low**order // (q_high + unseen) ** (order - 1)
        lowest, highest = 0.0, math.inf
        if lower:
            lowest = float_down(log_down(Fraction(lower, ONE)) / (order - 1))
        if kept and upper and ONE - kept <= ignored * ONE:
            log_upper = log_up(Fraction(upper, ONE))
            log_kept = log_down(Fraction(kept, ONE))
            highest = float_up((log_upper - order * log_kept) / (order - 1))
        return Bracket(max(lowest, 0.0), max(highest, 0.0))

    def _pairs(self) -> list[_Pair]:
        nothing = (0, 0)
        one, other = self.one.masses, self.other.masses
        keys = dict.fromkeys([*one, *other])
        return [(*one.get(key, nothing), *other.get(key, nothing)) for key in keys]


def _largest_slope(pairs: Sequence[tuple[int, int]], allowed: int, rest: int) -> Fraction | None:
    """The largest (P(A) - allowed) / (Q(A) + rest) over sets A of outcomes; None: infinite.

    The best set is the first few by their ratio, for this is the point where the largest
    P(A) - t Q(A), convex in t, falls to ``allowed`` + t rest.
    """
    if allowed < 0:
        return None
    best_excess, best_q = 0, 1
    p, q = 0, rest
    for more_p, more_q in sorted(pairs, key=_ratio, reverse=True):
        p += more_p
        q += more_q
        excess = p - allowed
        if q == 0 and excess > 0:
            return None
        if q and excess * best_q > best_excess * q:
            best_excess, best_q = excess, q
    return Fraction(best_excess, best_q)


def _ratio(pair: tuple[int, int]) -> int:
    """The ratio p / q in multiples of 2^-400; different ratios of masses differ by at least 2^-330."""
    p, q = pair
    if q == 0:
        return 1 << 800
    return (p << 400) // q
