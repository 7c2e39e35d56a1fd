# SPDX-License-Identifier: Apache-2.0
"""The best candidate by a score of sensitive data: exponential mechanism and permute-and-flip.

Source: McSherry and Talwar (FOCS 2007), Theorem 6; Dwork and Roth (2014), Theorem 3.11;
McKenna and Sheldon (NeurIPS 2020), Theorem 1. Proof: selection.proof.md.
"""

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from sfumato.errors import InvalidNumber, shown
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
    """Names a candidate whose score is high, likelier the higher.

    ``monotone``: between neighbours all scores move in the same direction, as counts do when
    rows are added; it halves the cost, and is a claim that the caller proves.

    Guarantees:
        the event names the very rule and rate that are drawn
        a selection costs at most its epsilon
        only the exponential mechanism costs an eighth
        the error of a selection covers as often as stated

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
        """What happens to data between whose neighbours each score moves by at most ``distance`` (Linf)."""
        return Selection(self.rule, self.rate, distance, self.monotone)

    def release(self, scores: Scores, entropy: Entropy = SYSTEM) -> int:
        """The index of the selected candidate. Scores are finite; floats count as their binary values."""
        return _DRAW[self.rule](scores, self.rate, entropy)

    def error(self, confidence: Number, candidates: int) -> Fraction:
        """x with P(score of the selected > best score - x) >= confidence, in units of the score."""
        return union(count("candidates", candidates) - 1, confidence) / self.rate


def exponential(
    distance: Distance, epsilon: Number, *, monotone: bool = False
) -> SelectionMechanism:
    """The exponential mechanism of rate epsilon / (2 sensitivity), monotone epsilon / sensitivity (Linf)."""
    return _calibrated(Rule.EXPONENTIAL, distance, epsilon, monotone=monotone)


def permute_and_flip(
    distance: Distance, epsilon: Number, *, monotone: bool = False
) -> SelectionMechanism:
    """Permute-and-flip of the same rates: never a worse choice for the same pure epsilon.

    Of its zCDP only epsilon^2/2 can be said (RULES 9), so where choices are composed under
    zCDP the exponential mechanism is the cheaper one.
    """
    return _calibrated(Rule.PERMUTE_AND_FLIP, distance, epsilon, monotone=monotone)


def _calibrated(
    rule: Rule, distance: Distance, epsilon: Number, *, monotone: bool
) -> SelectionMechanism:
    moves = distance.value * (1 if monotone else 2)
    mechanism = SelectionMechanism(rule, positive("epsilon", epsilon) / moves, monotone=monotone)
    mechanism.event(distance)
    return mechanism


def union(events: int, confidence: Number) -> Fraction:
    """x >= 0 with events e^-x <= 1 - confidence: none of them happens, if each does with at most e^-x."""
    miss = 1 - open_unit("confidence", confidence)
    return log_up(events / miss) if events else Fraction(0)


def count(name: str, value: int) -> int:
    """A number of things, 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidNumber(f"{name} = {shown(value)}.", allowed="an integer >= 1")
    return value
