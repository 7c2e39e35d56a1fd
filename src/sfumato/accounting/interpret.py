# SPDX-License-Identifier: Apache-2.0
"""Interprets a guarantee: the success of the best attacker, and changes of beliefs and harms.

Every guarantee is a set of statements P(A) <= odds Q(A) + delta, in both directions. The best
attacker against one statement is known (Kairouz, Oh, Viswanath 2015); against all, he is bounded by
the strongest. So any finite choice of statements is sound, and the search for the best needs no
proof. Sources: Wasserman and Zhou (2010); Kairouz, Oh, Viswanath (2015); Dong, Roth, Su (2022),
Proposition 2.12. Proof: interpret.proof.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.accounting.approx_statement import Family, Promise, Statement, family
from sfumato.errors import InvalidNumber, shown
from sfumato.exact.rational import Number, decimal_text, to_fraction
from sfumato.exact.rounding import float_down, float_up
from sfumato.privacy.unit import Relation

_GOLDEN = (math.sqrt(5) - 1) / 2
_PLACES = 64
_STEPS = 24


@dataclass(frozen=True, slots=True)
class Posterior:
    """The possible beliefs of an observer of all answers whose belief was ``prior`` before.

    Whatever else he knows, the belief stays between ``lowest`` and ``highest``, except with
    probability at most ``failure``: if the unit is in the data, that it rises above ``highest``; if
    not, that it falls below ``lowest``. In that case it may become certainty.
    """

    prior: Fraction
    lowest: float
    highest: float
    failure: Fraction

    def __str__(self) -> str:
        condition = "whatever the answers are"
        if self.failure:
            condition = (
                f"except with probability up to {decimal_text(self.failure)}, when it may become "
                "certainty"
            )
        return (
            f"a belief of {float(self.prior):.4g} stays from {self.lowest:.4g} to "
            f"{self.highest:.4g}, {condition}"
        )


@dataclass(frozen=True, slots=True)
class Attacker:
    """The best attacker that a guarantee allows: he knows all data except which neighbour is real.

    ``promise`` is a guarantee or the privacy curve of a plan: anything with ``delta`` and
    ``epsilon``. Each number bounds every attacker, of any knowledge and computing power, and is
    rounded in his favour. Against PureDP and ApproxDP it is attained by randomised response;
    against other guarantees it is the least bound that the search finds.

    Guarantees:
        no attacker beats the stated trade off
        no attacker beats the stated accuracy
        no belief leaves the stated posterior more often than stated
        no harm exceeds the stated one in expectation

    >>> from sfumato.privacy import ApproxDP, PureDP
    >>> attacker = Attacker(PureDP(1))
    >>> round(attacker.advantage, 4), round(attacker.accuracy("0.5"), 4)
    (0.4621, 0.7311)
    >>> str(attacker.posterior("0.1"))
    'a belief of 0.1 stays from 0.03927 to 0.232, whatever the answers are'
    """

    promise: Promise
    _family: Family = field(init=False, repr=False, compare=False)
    _statements: tuple[Statement, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        at = family(self.promise)
        object.__setattr__(self, "_family", at)
        object.__setattr__(
            self, "_statements", tuple(at(step / (_PLACES - 1)) for step in range(_PLACES))
        )

    @property
    def advantage(self) -> float:
        """An upper bound of the attacker's true positive rate minus the false positive rate.

        It is delta at epsilon 0 (total variation distance).
        """
        return 0.0 + float_up(-self._best(lambda statement: -statement.excess(Fraction(1))))

    def misses(self, false_alarms: Number) -> float:
        """Returns the least false negative rate at a false positive rate: the trade-off curve.

        >>> from sfumato.privacy import ApproxDP
        >>> round(Attacker(ApproxDP(1, "1e-6")).misses("0.01"), 6)
        0.972816
        """
        return float_down(self._misses(_share("false_alarms", false_alarms)))

    def accuracy(self, prior: Number) -> float:
        """Returns the largest probability of a right guess, if the unit is a member with ``prior``."""
        before = _share("prior", prior)
        if before in (0, 1):
            return 1.0
        gain = -self._best(lambda statement: -statement.excess((1 - before) / before))
        return float_up(1 - before + before * gain)

    def precision(self, prior: Number, recall: Number) -> float:
        """Returns the largest precision of a membership attack that has this ``recall``."""
        before = _share("prior", prior)
        return self._updated(before, self._factor(_share("recall", recall)))

    def posterior(self, prior: Number, failure: Number = 0) -> Posterior:
        """Returns bounds of the belief after all answers, which hold except with probability
        ``failure``.

        With delta = 0 the odds change by at most a factor of e^epsilon, always: ``failure`` is 0.
        With delta > 0 nothing is certain, and at ``failure`` 0 the bounds are 0 and 1; the larger
        the allowed failure (above delta), the closer they are to e^epsilon.

        >>> from sfumato.privacy import ApproxDP
        >>> attacker = Attacker(ApproxDP(1, "1e-6"))
        >>> attacker.posterior("0.1").highest
        1.0
        >>> str(attacker.posterior("0.1", failure="1e-5"))
        'a belief of 0.1 stays from 0.03548 to 0.2513, except with probability up to 0.00001, when
        it may become certainty'
        """
        before, failing = _share("prior", prior), _share("failure", failure)
        factor = self._factor(failing)
        against = 1 - Fraction(self._updated(1 - before, factor))
        return Posterior(
            before, max(float_down(against), 0.0), self._updated(before, factor), failing
        )

    def harm(self, usual: Number, largest: Number | None = None) -> float:
        """Returns a bound of the expected harm to a unit that is in the data.

        ``usual`` is the expected harm if it is not, ``largest`` the largest possible one. The bound
        is at most e^epsilon usual + delta largest (RULES 26); often less, since a harm cannot
        exceed its largest value. Without ``largest`` only a guarantee with delta = 0 bounds the
        mean.

        >>> from sfumato.privacy import ApproxDP
        >>> round(Attacker(ApproxDP(1, "1e-6")).harm("0.01", largest=1), 5)
        0.02718
        """
        mean = _amount("usual", usual)
        if largest is not None:
            most = _amount("largest", largest)
            if mean > most:
                raise InvalidNumber(
                    f"usual = {usual} above largest = {largest}.",
                    allowed="a mean of at most the largest",
                )
            return float_up(most * (1 - self._misses(mean / most))) if most else 0.0
        factor = self._factor(Fraction(0))
        bound = math.inf if factor is None else float_up(factor * mean)
        if bound == math.inf:
            raise InvalidNumber(
                "The promise bounds no harm that has no largest value.",
                remedy="Give largest=: with probability up to delta the harm may be that.",
            )
        return bound

    def trade_off(self, points: int = 100) -> tuple[tuple[float, float], ...]:
        """Returns points (false positive rate, least false negative rate) of the curve, for plots.

        The corners are included.

        >>> from sfumato.privacy import PureDP
        >>> [(round(x, 4), round(y, 4)) for x, y in Attacker(PureDP(1)).trade_off(1)]
        [(0.0, 1.0), (0.2689, 0.2689), (1.0, 0.0)]
        """
        if isinstance(points, bool) or not isinstance(points, int) or not 1 <= points <= 10_000:
            raise InvalidNumber(f"{shown(points)} points.", allowed="an integer from 1 to 10,000")
        places = {Fraction(numerator, points) for numerator in range(points + 1)}
        places.update(statement.corner for statement in self._statements)
        curve = []
        for place in sorted(places):
            most = max(statement.misses(place) for statement in self._statements)
            curve.append((float(place), float_down(most)))
        return tuple(curve)

    def _misses(self, false_alarms: Fraction) -> Fraction:
        return self._best(lambda statement: statement.misses(false_alarms))

    def _factor(self, share: Fraction) -> Fraction | None:
        """The largest growth of the odds on an answer of probability ``share``; None: unbounded."""
        if share == 0:
            pure = [
                statement.odds
                for statement in self._statements
                if statement.delta == 0 and statement.odds is not None
            ]
            return min(pure, default=None)
        least = self._misses(1 - share)
        return share / least if least else None

    @staticmethod
    def _updated(prior: Fraction, factor: Fraction | None) -> float:
        if prior == 0:
            return 0.0
        return 1.0 if factor is None else float_up(factor * prior / (factor * prior + 1 - prior))

    def _best(self, score: Callable[[Statement], Fraction]) -> Fraction:
        """The largest score over statements: on a grid of places, then refined around the best."""
        scores = [score(statement) for statement in self._statements]
        best = max(scores)
        if len(set(self._statements)) == 1:
            return best
        first, last = scores.index(best), _PLACES - 1
        left, right = max(first - 1, 0) / last, min(first + 1, last) / last
        low, high = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
        below, above = score(self._family(low)), score(self._family(high))
        for _ in range(_STEPS):
            best = max(best, below, above)
            if below >= above:
                right, high, above = high, low, below
                low = right - _GOLDEN * (right - left)
                below = score(self._family(low))
            else:
                left, low, below = low, high, above
                high = left + _GOLDEN * (right - left)
                above = score(self._family(high))
        return max(best, below, above)


_ALWAYS = (
    (
        "Facts about the population: what follows from the answers about people like you follows "
        "whether or not you took part."
    ),
    "Other sources: what somebody can learn of you elsewhere, he still learns.",
    (
        "Groups larger than the unit: what many share (a family, a village) is protected less, see "
        "the group's row."
    ),
    "Who holds the data: the owner and the operator see it as it is.",
)
_SECRET = {
    Relation.ADD_REMOVE: (
        "The secret is presence: whether a unit is in the data. That somebody known to be in it "
        "has this value and not"
        " that one is two steps, a group of 2."
    ),
    Relation.REPLACE_ONE: (
        "The secret is value: what a unit that is known to take part contributes. How many units "
        "there are is public."
    ),
}


def unprotected(relation: Relation) -> tuple[str, ...]:
    """Returns sentences that say which secret a guarantee with this neighbour relation protects,
    and which it does not.

    >>> unprotected(Relation.REPLACE_ONE)[0][:19]
    'The secret is value'
    """
    return (_SECRET[relation], *_ALWAYS)


def _share(name: str, value: Number) -> Fraction:
    number = to_fraction(name, value)
    if not 0 <= number <= 1:
        raise InvalidNumber(f"{name} = {value}.", allowed="from 0 to 1")
    return number


def _amount(name: str, value: Number) -> Fraction:
    number = to_fraction(name, value)
    if number < 0:
        raise InvalidNumber(f"{name} = {value}.", allowed="0 or greater")
    return number
