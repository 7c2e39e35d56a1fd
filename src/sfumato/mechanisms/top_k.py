# SPDX-License-Identifier: Apache-2.0
"""The k best candidates, in order: one selection after the other, or all at once.

Source: peeling is composition of exponential mechanisms; the joint form: Gillenwater, Joseph,
Munoz Medina, Ribero, "A Joint Exponential Mechanism For Differentially Private Top-k" (ICML
2022), drawn here in another way. Proof: top_k.proof.md.
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
from sfumato.mechanisms.selection import count, union
from sfumato.noise import SYSTEM, Entropy, Integers, select
from sfumato.noise.bernoulli import bernoulli_exp
from sfumato.noise.entropy import below
from sfumato.noise.select import Scores, integers, vector
from sfumato.privacy.distance import Distance
from sfumato.privacy.event import Repeated, Rule, Selection


@dataclass(frozen=True, slots=True)
class _TopK:
    """How many, and how sharply they are chosen; ``monotone``: between neighbours all scores move in one direction."""

    k: int
    rate: Fraction
    _: KW_ONLY
    monotone: bool = False

    def __post_init__(self) -> None:
        count("k", self.k)
        object.__setattr__(self, "rate", positive("rate", self.rate))


@dataclass(frozen=True, slots=True)
class PeelingMechanism(_TopK):
    """k exponential mechanisms, each among the candidates that are left.

    Guarantees:
        the event of peeling is one selection for each
        peeling costs at most its epsilon
        peeling draws each of the k from those that are left
        the error of peeling covers as often as stated

    >>> from sfumato.privacy.distance import Norm
    >>> mechanism = peeled_top_k(Distance(Norm.LINF, Fraction(1)), k=2, epsilon=2)
    >>> mechanism.rate
    Fraction(1, 2)
    >>> mechanism.release([3, 900, 500, 17])
    (1, 2)
    """

    def event(self, distance: Distance) -> Repeated:
        """What happens to data between whose neighbours each score moves by at most ``distance`` (Linf)."""
        return Repeated(Selection(Rule.EXPONENTIAL, self.rate, distance, self.monotone), self.k)

    def release(self, scores: Scores, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """The indices of the selected candidates, in the order of selection."""
        left = vector("scores", scores)
        _enough(self.k, len(left))
        places, picked = np.arange(len(left)), []
        for _ in range(self.k):
            at = select.exponential(left, self.rate, entropy)
            picked.append(int(places[at]))
            places = np.delete(places, at)
            left = (
                np.delete(left, at)
                if isinstance(left, np.ndarray)
                else [*left[:at], *left[at + 1 :]]
            )
        return tuple(picked)

    def error(self, confidence: Number, candidates: int) -> Fraction:
        """x: with the confidence, every i-th pick scores above the i-th best score - x."""
        _enough(self.k, count("candidates", candidates))
        return union(self.k * (candidates - 1), confidence) / self.rate


@dataclass(frozen=True, slots=True)
class JointMechanism(_TopK):
    """One exponential mechanism over all sequences of k candidates, for integer scores.

    A sequence is as bad as its worst place: its loss is the largest, over i, of the i-th best
    score less the score of its i-th member. For the same pure epsilon it usually chooses
    better than peeling; for the same zCDP it does not, as k selections cost less than one.

    Guarantees:
        the event of a joint choice is one selection
        a joint choice costs at most its epsilon
        sequences are drawn in proportion to their exponential weights
        the error of a joint choice covers as often as stated

    >>> from sfumato.privacy.distance import Norm
    >>> mechanism = joint_top_k(Distance(Norm.LINF, Fraction(1)), k=2, epsilon=2, monotone=True)
    >>> mechanism.rate
    Fraction(1, 1)
    >>> mechanism.release([3, 900, 500, 17])
    (1, 2)
    """

    def event(self, distance: Distance) -> Selection:
        """What happens to data between whose neighbours each score moves by at most ``distance`` (Linf).

        Its own distance is that of the loss of a sequence: once ``distance`` where monotone, else twice.
        """
        loss = Distance(
            distance.norm, distance.value * _moves(monotone=self.monotone), distance.relation
        )
        return Selection(Rule.EXPONENTIAL, self.rate, loss)

    def release(
        self, scores: Integers | Sequence[int], entropy: Entropy = SYSTEM
    ) -> tuple[int, ...]:
        """The indices of the selected candidates, the best first."""
        exact = integers("scores", scores)
        _enough(self.k, len(exact))
        order = np.argsort(exact, kind="stable")[::-1]
        return tuple(int(order[rank]) for rank in _draw(exact[order], self.k, self.rate, entropy))

    def error(self, confidence: Number, candidates: int) -> Fraction:
        """x: with the confidence, every i-th member scores above the i-th best score - x."""
        _enough(self.k, count("candidates", candidates))
        return union(math.perm(candidates, self.k) - 1, confidence) / self.rate


def peeled_top_k(
    distance: Distance, k: int, epsilon: Number, *, monotone: bool = False
) -> PeelingMechanism:
    """Peeling of rate epsilon / (2 k sensitivity), monotone epsilon / (k sensitivity) (Linf)."""
    moves = count("k", k) * distance.value * _moves(monotone=monotone)
    mechanism = PeelingMechanism(k, positive("epsilon", epsilon) / moves, monotone=monotone)
    mechanism.event(distance)
    return mechanism


def joint_top_k(
    distance: Distance, k: int, epsilon: Number, *, monotone: bool = False
) -> JointMechanism:
    """A joint choice of rate epsilon / (4 sensitivity), monotone epsilon / (2 sensitivity) (Linf)."""
    moves = 2 * distance.value * _moves(monotone=monotone)
    mechanism = JointMechanism(k, positive("epsilon", epsilon) / moves, monotone=monotone)
    mechanism.event(distance)
    return mechanism


def _draw(ranked: NDArray[Any], k: int, rate: Fraction, entropy: Entropy) -> list[int]:
    """The ranks of a sequence, with probability proportional to e^(-rate loss), from falling scores.

    A band of losses by an upper bound of its weight, a sequence of at most its largest loss
    evenly, and that kept with what is missing to its weight.
    """
    bands = _bands(ranked, k, rate)
    sizes = [math.prod(_choices(ranked, k, last)) for _, last in bands]
    while True:
        first, last = bands[
            select.exponential([-first for first, _ in bands], rate, entropy, weights=sizes)
        ]
        ranks = _sequence(_choices(ranked, k, last), entropy)
        excess = (
            max(int(ranked[place]) - int(ranked[rank]) for place, rank in enumerate(ranks)) - first
        )
        weight = rate * excess
        if excess >= 0 and bernoulli_exp(weight.numerator, weight.denominator, entropy):
            return ranks


def _bands(ranked: NDArray[Any], k: int, rate: Fraction) -> list[tuple[int, int]]:
    """First and last losses of bands that cover all, each of about ln 2 / rate; the last one has what is negligible."""
    step = max(int(Fraction(7, 10) / rate), 1)
    largest = int(ranked[0]) - int(ranked[-1])
    # all sequences together weigh less than 2^-40 where the last band begins
    end = math.ceil((math.perm(len(ranked), k).bit_length() + 40) / rate) + step
    firsts = range(0, min(largest, end) + 1, step)
    return [(first, first + step - 1) for first in firsts[:-1]] + [(firsts[-1], largest)]


def _choices(ranked: NDArray[Any], k: int, loss: int) -> list[int]:
    """For each place the candidates left to it, when the places before are filled within this loss."""
    fit = len(ranked) - np.searchsorted(ranked[::-1], ranked[:k] - loss, side="left")
    choices: list[int] = (fit - np.arange(k)).tolist()
    return choices


def _sequence(choices: list[int], entropy: Entropy) -> list[int]:
    """Ranks, all different, evenly among those that these numbers of choices allow."""
    pool: list[int] = []
    ranks = []
    for place, many in enumerate(choices):
        pool.extend(range(len(pool) + place, many + place))
        chosen = below(many, entropy)
        pool[chosen], pool[-1] = pool[-1], pool[chosen]
        ranks.append(pool.pop())
    return ranks


def _moves(*, monotone: bool) -> int:
    return 1 if monotone else 2


def _enough(k: int, candidates: int) -> None:
    if candidates < k:
        raise InvalidDeclaration(
            f"The best {k} of {candidates} candidates.", allowed=f"{k} candidates or more"
        )
