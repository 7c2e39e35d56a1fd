# SPDX-License-Identifier: Apache-2.0
"""Private top-k: the k candidates with the highest scores, selected one by one or jointly.

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
    """The parameters of a top-k mechanism: k, the rate, and whether scores are monotone.

    Monotone: between neighbours all scores move in the same direction.
    """

    k: int
    rate: Fraction
    _: KW_ONLY
    monotone: bool = False

    def __post_init__(self) -> None:
        count("k", self.k)
        object.__setattr__(self, "rate", positive("rate", self.rate))


@dataclass(frozen=True, slots=True)
class PeelingMechanism(_TopK):
    """The peeling mechanism of private top-k: selects k candidates by k exponential mechanisms in
    turn, each among the candidates left.

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
        """Returns the event of a release; each score changes by at most ``distance`` (Linf)."""
        one = Selection(Rule.EXPONENTIAL, self.rate, distance, self.monotone)
        return Repeated(one, self.k)

    def release(self, scores: Scores, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """Returns the indices of the selected candidates, in the order of selection."""
        left = vector("scores", scores)
        _enough(self.k, len(left))
        places = np.arange(len(left))
        picked = []
        for _ in range(self.k):
            at = select.exponential(left, self.rate, entropy)
            picked.append(int(places[at]))
            places = np.delete(places, at)
            left = _without(left, at)
        return tuple(picked)

    def error(self, confidence: Number, candidates: int) -> Fraction:
        """Returns an x such that, with this confidence, every i-th selected candidate has a score
        above the i-th best score - x.
        """
        _enough(self.k, count("candidates", candidates))
        return union(self.k * (candidates - 1), confidence) / self.rate


@dataclass(frozen=True, slots=True)
class JointMechanism(_TopK):
    """The joint mechanism of private top-k: selects k candidates by a single exponential mechanism
    over all sequences of k candidates.

    Scores must be integers. The loss of a sequence is the largest difference, over i, between the
    i-th best score and the score of its i-th member. For the same epsilon it is usually more
    accurate than peeling; for the same zCDP cost it is not, as k selections then cost less than one
    of the same epsilon.

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
        """Returns the event of a release; each score changes by at most ``distance`` (Linf).

        The loss of a sequence changes by at most ``distance`` if monotone, else by twice as much.
        """
        moved = distance.value * _moves(monotone=self.monotone)
        loss = Distance(distance.norm, moved, distance.relation)
        return Selection(Rule.EXPONENTIAL, self.rate, loss)

    def release(
        self, scores: Integers | Sequence[int], entropy: Entropy = SYSTEM
    ) -> tuple[int, ...]:
        """Returns the indices of the selected candidates, the best first."""
        exact = integers("scores", scores)
        _enough(self.k, len(exact))
        order = np.argsort(exact, kind="stable")[::-1]
        ranks = _draw(exact[order], self.k, self.rate, entropy)
        return tuple(int(order[rank]) for rank in ranks)

    def error(self, confidence: Number, candidates: int) -> Fraction:
        """Returns an x such that, with this confidence, every i-th selected candidate has a score
        above the i-th best score - x.
        """
        _enough(self.k, count("candidates", candidates))
        others = math.perm(candidates, self.k) - 1
        return union(others, confidence) / self.rate


def peeled_top_k(
    distance: Distance,
    k: int,
    epsilon: Number,
    *,
    monotone: bool = False,
) -> PeelingMechanism:
    """Top-k by peeling, epsilon-DP: rate epsilon / (2 k sensitivity) (Linf).

    For monotone scores the rate is epsilon / (k sensitivity).

    Raises:
        InvalidDeclaration: a distance that is not in Linf.
        InvalidNumber: an invalid epsilon, or k below 1.

    >>> from sfumato.privacy.distance import Norm
    >>> peeled_top_k(Distance(Norm.LINF, Fraction(1)), k=5, epsilon=1).rate
    Fraction(1, 10)
    """
    moves = count("k", k) * distance.value * _moves(monotone=monotone)
    mechanism = PeelingMechanism(k, positive("epsilon", epsilon) / moves, monotone=monotone)
    mechanism.event(distance)
    return mechanism


def joint_top_k(
    distance: Distance,
    k: int,
    epsilon: Number,
    *,
    monotone: bool = False,
) -> JointMechanism:
    """Joint top-k, epsilon-DP: rate epsilon / (4 sensitivity) (Linf); Gillenwater et al. (2022).

    For monotone scores the rate is epsilon / (2 sensitivity).

    Raises:
        InvalidDeclaration: a distance that is not in Linf.
        InvalidNumber: an invalid epsilon, or k below 1.

    >>> from sfumato.privacy.distance import Norm
    >>> joint_top_k(Distance(Norm.LINF, Fraction(1)), k=5, epsilon=1).rate
    Fraction(1, 4)
    """
    moves = 2 * distance.value * _moves(monotone=monotone)
    mechanism = JointMechanism(k, positive("epsilon", epsilon) / moves, monotone=monotone)
    mechanism.event(distance)
    return mechanism


def _without(scores: NDArray[Any] | Sequence[Any], index: int) -> NDArray[Any] | Sequence[Any]:
    """The scores without the one at ``index``."""
    if isinstance(scores, np.ndarray):
        return np.delete(scores, index)
    return [*scores[:index], *scores[index + 1 :]]


def _draw(
    ranked: NDArray[Any],
    k: int,
    rate: Fraction,
    entropy: Entropy,
) -> list[int]:
    """Draws the ranks of a sequence with probability proportional to e^(-rate loss).

    ``ranked`` are the scores in descending order. Rejection sampling: draw a band of losses by an
    upper bound of its weight, draw a uniform sequence whose loss is at most the band's largest,
    and accept it with the ratio of its weight to the bound.
    """
    bands = _bands(ranked, k, rate)
    sizes = [math.prod(_choices(ranked, k, last)) for _, last in bands]
    scores = [-first for first, _ in bands]
    while True:
        chosen = select.exponential(scores, rate, entropy, weights=sizes)
        first, last = bands[chosen]
        ranks = _sequence(_choices(ranked, k, last), entropy)
        losses = [int(ranked[place]) - int(ranked[rank]) for place, rank in enumerate(ranks)]
        excess = max(losses) - first
        weight = rate * excess
        if excess >= 0 and bernoulli_exp(weight.numerator, weight.denominator, entropy):
            return ranks


def _bands(ranked: NDArray[Any], k: int, rate: Fraction) -> list[tuple[int, int]]:
    """Intervals (first, last) of losses, about ln 2 / rate long, that cover all losses.

    The last one holds all larger losses, whose total weight is negligible.
    """
    step = max(int(Fraction(7, 10) / rate), 1)
    largest = int(ranked[0]) - int(ranked[-1])
    # from here on all sequences together weigh less than 2^-40
    sequences = math.perm(len(ranked), k)
    end = math.ceil((sequences.bit_length() + 40) / rate) + step
    firsts = range(0, min(largest, end) + 1, step)
    bands = [(first, first + step - 1) for first in firsts[:-1]]
    return [*bands, (firsts[-1], largest)]


def _choices(ranked: NDArray[Any], k: int, loss: int) -> list[int]:
    """The number of candidates for each place, after those before it, within this loss."""
    least = ranked[:k] - loss
    ascending = ranked[::-1]
    fit = len(ranked) - np.searchsorted(ascending, least, side="left")
    choices: list[int] = (fit - np.arange(k)).tolist()
    return choices


def _sequence(choices: list[int], entropy: Entropy) -> list[int]:
    """Draws a sequence of distinct ranks uniformly; place i has ``choices[i]`` candidates left."""
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
