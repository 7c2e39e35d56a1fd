# SPDX-License-Identifier: Apache-2.0
"""Sparse vector: which answers of a stream are above a threshold, at a cost per positive answer.

Source: Lyu, Su, Li, "Understanding the Sparse Vector Technique for Differential Privacy"
(VLDB 2017), Algorithm 7; gaps: Ding, Wang, Zhang, Kifer, "Free Gap Information from the
Differentially Private Sparse Vector and Noisy Max Mechanisms" (VLDB 2019). Proof: sparse.proof.md.
"""

import math
import os
import threading
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np

from sfumato.accounting.calibrate import split
from sfumato.errors import BudgetExceeded, InvalidDeclaration, InvalidNumber, WrongUse, shown
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import exp_down, exp_up, log_up
from sfumato.mechanisms.selection import count
from sfumato.noise import SYSTEM, DiscreteLaplace, Entropy
from sfumato.noise.law import open_unit
from sfumato.noise.search import smallest
from sfumato.noise.window import shortfall
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import SparseVector

# Scales with a smaller relative difference are treated as this far apart; the bound stays valid.
_APART = Fraction(1, 1 << 20)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one question of the sparse vector technique: whether its noisy answer was above
    the noisy threshold, and by how much if gaps are released.

    >>> bool(Verdict(above=True, gap=3)), Verdict(above=False).gap
    (True, None)
    """

    above: bool
    gap: int | None = None

    def __bool__(self) -> bool:
        return self.above


@dataclass(frozen=True, slots=True)
class SparseVectorMechanism:
    """The sparse vector technique: compares noisy answers with one noisy threshold, until
    ``positives`` of them are above it.

    ``gap`` also releases by how much each of these exceeds the threshold, at no further cost.
    ``monotone`` states that between neighbours all answers move in the same direction. It halves
    the noise of the answers; the caller must prove it.

    Guarantees:
        a sparse vector costs its whole epsilon at opening
        answers of neighbours are within e to the epsilon
        a session stops for ever after its positives
        a session is never copied
        noise is drawn before the answer
        verdicts are right up to the error as often as stated

    >>> mechanism = sparse_vector(Distance(Norm.LINF, Fraction(1)), 1, threshold=1000, positives=1)
    >>> [bool(verdict) for verdict in mechanism.release([0, 0, 5000, 0])]
    [False, False, True]
    """

    threshold_noise: DiscreteLaplace
    query_noise: DiscreteLaplace
    threshold: int
    positives: int
    _: KW_ONLY
    gap: bool = False
    monotone: bool = False

    def __post_init__(self) -> None:
        if type(self.threshold) is not int:
            raise InvalidNumber(f"threshold = {shown(self.threshold)}.", allowed="an integer")
        count("positives", self.positives)

    def event(self, distance: Distance) -> SparseVector:
        """Returns the event of the whole stream; each answer changes by at most ``distance``
        (Linf).
        """
        return SparseVector(
            self.threshold_noise,
            self.query_noise,
            distance,
            self.positives,
            monotone=self.monotone,
            gap=self.gap,
        )

    def open(self, entropy: Entropy = SYSTEM) -> "SparseSession":
        """Opens a stream whose questions may depend on earlier verdicts.

        The whole cost must be charged before this call.
        """
        return SparseSession(self, entropy)

    def release(self, answers: Iterable[int], entropy: Entropy = SYSTEM) -> tuple[Verdict, ...]:
        """Returns the verdicts on a stream of answers, up to the last allowed positive one."""
        session = self.open(entropy)
        verdicts = []
        for answer in answers:
            verdicts.append(session.ask(answer))
            if session.left == 0:
                break
        return tuple(verdicts)

    def error(self, confidence: Number, queries: int) -> int:
        """Returns h: with this confidence the first ``queries`` verdicts are right up to h.

        Right means: a positive answer is >= threshold - h, a negative one is < threshold + h, and a
        gap is within h of answer - threshold. It holds for adaptive questions too. Source: Dwork
        and Roth (2014), Theorem 3.24, here with the exact law of the difference of two noises.
        """
        miss = 1 - open_unit("confidence", confidence)
        miss /= 2 * count("queries", queries)

        def suffices(h: int) -> bool:
            return h >= 0 and _apart(self.threshold_noise, self.query_noise, h) <= miss

        largest_scale = max(self.threshold_noise.scale, self.query_noise.scale)
        return smallest(suffices, below=int(largest_scale * log_up(1 / miss)))


class SparseSession:
    """An open stream of sparse-vector comparisons with one noisy threshold, until all positives are
    used.

    It is safe to share between threads. It cannot be copied, pickled or used after a fork, and it
    answers nothing after it has stopped, so that noise is never used twice.

    >>> change = Distance(Norm.LINF, Fraction(1))
    >>> session = sparse_vector(change, 1, threshold=1000, positives=1).open()
    >>> bool(session.ask(0)), bool(session.ask(5000)), session.left
    (False, True, 0)
    """

    __slots__ = ("_entropy", "_left", "_level", "_lock", "_mechanism", "_noise", "_process")

    def __init__(self, mechanism: SparseVectorMechanism, entropy: Entropy) -> None:
        self._mechanism = mechanism
        self._entropy = entropy
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._left = mechanism.positives
        self._level = mechanism.threshold + mechanism.threshold_noise.sample_one(entropy)
        self._noise: int | None = mechanism.query_noise.sample_one(entropy)

    @property
    def left(self) -> int:
        """The number of positive verdicts left; at 0 the stream has stopped for ever."""
        return 0 if self._noise is None else self._left

    def ask(self, answer: int) -> Verdict:
        """Returns the verdict whether an exact integer answer, plus noise, is above the noisy
        threshold.

        Raises:
            BudgetExceeded: the stream has stopped.
            WrongUse: the stream was opened in another process.
            InvalidDeclaration: the answer is not an integer.
        """
        if isinstance(answer, bool | np.bool_) or not isinstance(answer, int | np.integer):
            raise InvalidDeclaration(
                f"An answer of type {type(answer).__name__}.", allowed="an integer"
            )
        if self._process != os.getpid():
            raise WrongUse(
                "A sparse vector session after a fork.",
                remedy="Open one in this process: a new charge.",
            )
        with self._lock:
            noise = self._noise
            self._noise = None
            if noise is None:
                raise BudgetExceeded(
                    f"This sparse vector has given its {self._mechanism.positives} positives.",
                    remedy="Open another one: a new charge.",
                )
            gap = int(answer) + noise - self._level
            self._left -= gap >= 0
            if self._left:
                self._noise = self._mechanism.query_noise.sample_one(self._entropy)
        if gap < 0:
            return Verdict(above=False)
        return Verdict(above=True, gap=gap if self._mechanism.gap else None)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise WrongUse(
            "A copy of a sparse vector session would use its noise twice.",
            allowed="the session itself",
        )


def sparse_vector(
    distance: Distance,
    epsilon: Number,
    threshold: int,
    positives: int,
    *,
    gap: bool = False,
    monotone: bool = False,
) -> SparseVectorMechanism:
    """The sparse vector mechanism, epsilon-DP in all; ``distance`` bounds each answer (Linf).

    Epsilon is split 1 : (2c)^(2/3) between threshold and answers, for monotone answers 1 : c^(2/3),
    where c is the number of positives. This minimises the variance of each comparison (Lyu, Su, Li
    2017, section 4.2).

    Raises:
        InvalidDeclaration: the distance is not in Linf.
        InvalidNumber: epsilon, the threshold or the number of positives is invalid.

    >>> from sfumato.accounting import account
    >>> change = Distance(Norm.LINF, Fraction(1))
    >>> account(sparse_vector(change, "0.5", threshold=100, positives=3).event(change)).epsilon
    Fraction(1, 2)
    """
    if distance.norm is not Norm.LINF:
        raise InvalidDeclaration(
            f"A stream of answers bounded in {distance.norm.value}.",
            allowed="the change of each answer: Distance(Norm.LINF, ...)",
        )
    count("positives", positives)
    step = Fraction(math.ceil(distance.value))
    moves = positives if monotone else 2 * positives
    total = positive("epsilon", epsilon)
    weights = [Fraction(1), Fraction(moves)]
    for_threshold, for_answers = split(total, weights, Norm.L1)
    return SparseVectorMechanism(
        DiscreteLaplace(step / for_threshold),
        DiscreteLaplace(moves * step / for_answers),
        threshold,
        positives,
        gap=gap,
        monotone=monotone,
    )


def _apart(one: DiscreteLaplace, other: DiscreteLaplace, h: int) -> Fraction:
    """An upper bound of P(X - Y > h), h >= 0, for independent draws X and Y of the two laws.

    With the ratios a < b, a = e^(-1/scale), the exact value is ((1-a)^2 b^(h+2) / (1+b) - (1-b)^2
    a^(h+2) / (1+a)) / ((1-ab) (b-a)). If the scales are nearly equal, the larger one is increased.
    """
    quick = 1 / min(one.scale, other.scale)
    slow = min(1 / max(one.scale, other.scale), quick / (1 + _APART))
    least_a, most_a = shortfall(quick)
    least_b, most_b = shortfall(slow)
    slow_decay = exp_up(-(h + 1) * slow)
    wide = most_a**2 * slow_decay / (2 - most_b)
    quick_decay = exp_down(slow - (h + 2) * quick)
    narrow = least_b**2 * quick_decay / (2 - least_a)
    least_sum, _ = shortfall(quick + slow)
    least_difference, _ = shortfall(quick - slow)
    return (wide - narrow) / (least_sum * least_difference)
