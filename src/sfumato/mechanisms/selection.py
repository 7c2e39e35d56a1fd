# SPDX-License-Identifier: Apache-2.0
"""Private selection of a candidate with a high score: exponential mechanism, permute-and-flip.

Source: McSherry and Talwar (FOCS 2007), Theorem 6; Dwork and Roth (2014), Theorem 3.11;
McKenna and Sheldon (NeurIPS 2020), Theorem 1. Proof: selection.proof.md.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import log_up
from sfumato.noise import SYSTEM, Entropy, select
from sfumato.noise.law import open_unit
from sfumato.noise.select import Scores
from sfumato.privacy.distance import Distance
from sfumato.privacy.event import Rule, Selection

_DRAW = {Rule.EXPONENTIAL: select.exponential, Rule.PERMUTE_AND_FLIP: select.permute_and_flip}


@dataclass(frozen=True, slots=True)
class SelectionMechanism:
    """A mechanism that selects one candidate at random, with a higher probability for a higher
    score.

    ``monotone`` states that between neighbours all scores move in the same direction, as counts do
    when rows are added. It halves the cost; the caller must prove it.

    Guarantees:
        the event names the very rule and rate that are drawn
        a selection costs at most its epsilon
        only the exponential mechanism costs an eighth
        the error of a selection covers as often as stated
        a tuple is selected in proportion to the weight of its sum

    >>> from sfumato.privacy.distance import Norm
    >>> mechanism = exponential(Distance(Norm.LINF, Fraction(1)), epsilon=1)
    >>> mechanism.rate
    Fraction(1, 2)
    >>> mechanism.release([3, 900, 17])
    1
    >>> float(mechanism.error("0.95", candidates=3))  # doctest: +ELLIPSIS
    7.37...
    """

    rule: Rule
    rate: Fraction
    _: KW_ONLY
    monotone: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive("rate", self.rate))

    def event(self, distance: Distance) -> Selection:
        """Returns the event of a release; each score changes by at most ``distance`` (Linf)."""
        return Selection(self.rule, self.rate, distance, self.monotone)

    def release(self, scores: Scores, entropy: Entropy = SYSTEM) -> int:
        """Returns the index of the selected candidate.

        Scores must be finite; floats are taken as their exact binary values.
        """
        draw = _DRAW[self.rule]
        return draw(scores, self.rate, entropy)

    def release_each(
        self,
        groups: Sequence[Scores],
        entropy: Entropy = SYSTEM,
    ) -> tuple[int, ...]:
        """Selects one candidate in each group and returns their indices.

        It is the selection of one tuple, whose score is the sum of its members' scores; ``event``
        is then of the sensitivity of these sums. Only the exponential mechanism selects a tuple by
        selecting in each group.

        Raises:
            InvalidDeclaration: the rule is not the exponential mechanism.
        """
        if self.rule is not Rule.EXPONENTIAL:
            raise InvalidDeclaration(
                f"A tuple by {self.rule.value}.", allowed="the exponential mechanism"
            )
        return tuple(select.exponential(scores, self.rate, entropy) for scores in groups)

    def error(self, confidence: Number, candidates: int) -> Fraction:
        """Returns x with P(selected score > best score - x) >= confidence."""
        others = count("candidates", candidates) - 1
        return union(others, confidence) / self.rate


def exponential(
    distance: Distance, epsilon: Number, *, monotone: bool = False
) -> SelectionMechanism:
    """The exponential mechanism, epsilon-DP: rate epsilon / (2 sensitivity) (Linf).

    For monotone scores the rate is epsilon / sensitivity. Source: McSherry and Talwar (2007).

    Raises:
        InvalidDeclaration: the distance is not in Linf.
        InvalidNumber: epsilon is not above 0.

    >>> from sfumato.privacy.distance import Norm
    >>> exponential(Distance(Norm.LINF, Fraction(1)), 1, monotone=True).rate
    Fraction(1, 1)
    """
    return _calibrated(Rule.EXPONENTIAL, distance, epsilon, monotone=monotone)


def permute_and_flip(
    distance: Distance, epsilon: Number, *, monotone: bool = False
) -> SelectionMechanism:
    """Permute-and-flip, epsilon-DP: never worse than ``exponential`` for the same epsilon.

    Arguments, rate and errors are those of ``exponential``. Its zCDP cost is only known to be at
    most epsilon^2/2 (RULES 9), so under zCDP composition the exponential mechanism is cheaper.
    Source: McKenna and Sheldon (2020).

    >>> from sfumato.privacy.distance import Norm
    >>> permute_and_flip(Distance(Norm.LINF, Fraction(1)), 1).rate
    Fraction(1, 2)
    """
    return _calibrated(Rule.PERMUTE_AND_FLIP, distance, epsilon, monotone=monotone)


def _calibrated(
    rule: Rule,
    distance: Distance,
    epsilon: Number,
    *,
    monotone: bool,
) -> SelectionMechanism:
    moves = distance.value * (1 if monotone else 2)
    rate = positive("epsilon", epsilon) / moves
    mechanism = SelectionMechanism(rule, rate, monotone=monotone)
    mechanism.event(distance)
    return mechanism


def union(events: int, confidence: Number) -> Fraction:
    """Returns an x >= 0 with events e^-x <= 1 - confidence, where ``events`` is a number of events.

    If each of so many events has probability at most e^-x, then none of them happens with the
    confidence (union bound).
    """
    miss = 1 - open_unit("confidence", confidence)
    return log_up(events / miss) if events else Fraction(0)


def count(name: str, value: int) -> int:
    """Checks that ``value``, the argument called ``name``, is an integer from 1 on, and returns it."""
    if type(value) is not int or value < 1:
        raise InvalidNumber(f"{name} = {shown(value)}.", allowed="an integer >= 1")
    return value
