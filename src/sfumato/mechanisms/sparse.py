# SPDX-License-Identifier: Apache-2.0
"""Sparse vector: which of a stream of answers are above a threshold, paid by the positives only.

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

# Scales closer than this, relatively, count as this far apart: the tail grows by less than 2^-10.
_APART = Fraction(1, 1 << 20)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer was above the threshold, and by how much where gaps are told."""

    above: bool
    gap: int | None = None

    def __bool__(self) -> bool:
        return self.above


@dataclass(frozen=True, slots=True)
class SparseVectorMechanism:
    """Compares each answer plus noise with one noisy threshold, until ``positives`` are above it.

    ``gap``: each of these also tells by how much, at no further cost. ``monotone``: between
    neighbours all answers move in the same direction; it halves the noise of the answers, and
    is a claim that the caller proves.

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
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, int):
            raise InvalidNumber(f"threshold = {shown(self.threshold)}.", allowed="an integer")
        count("positives", self.positives)

    def event(self, distance: Distance) -> SparseVector:
        """The whole stream, with answers that each move by at most ``distance`` (Linf) between neighbours."""
        return SparseVector(
            self.threshold_noise,
            self.query_noise,
            distance,
            self.positives,
            monotone=self.monotone,
            gap=self.gap,
        )

    def open(self, entropy: Entropy = SYSTEM) -> "SparseSession":
        """A new stream of answers, which may depend on earlier verdicts; its whole cost is charged before this."""
        return SparseSession(self, entropy)

    def release(self, answers: Iterable[int], entropy: Entropy = SYSTEM) -> tuple[Verdict, ...]:
        """The verdicts on a stream known beforehand, up to the last one that is given."""
        session, verdicts = self.open(entropy), []
        for answer in answers:
            verdicts.append(session.ask(answer))
            if session.left == 0:
                break
        return tuple(verdicts)

    def error(self, confidence: Number, queries: int) -> int:
        """h so that with at least this confidence the first ``queries`` verdicts are all right up to h.

        Right: above only for answers >= threshold - h, not above only for answers < threshold
        + h, and a gap within h of answer - threshold. Also of answers that depend on verdicts.
        (Dwork and Roth 2014, Theorem 3.24, with the exact law of the two noises together.)
        """
        miss = (1 - open_unit("confidence", confidence)) / (2 * count("queries", queries))
        guess = int(max(self.threshold_noise.scale, self.query_noise.scale) * log_up(1 / miss))
        return smallest(
            lambda h: h >= 0 and _apart(self.threshold_noise, self.query_noise, h) <= miss,
            below=guess,
        )


class SparseSession:
    """A stream in progress: one noisy threshold, and verdicts until the positives are given.

    Safe to share between threads. It can be neither copied nor stored nor used after a fork,
    and once it has stopped it says nothing more: noise is never used twice.
    """

    __slots__ = ("_entropy", "_left", "_level", "_lock", "_mechanism", "_noise", "_process")

    def __init__(self, mechanism: SparseVectorMechanism, entropy: Entropy) -> None:
        self._mechanism, self._entropy = mechanism, entropy
        self._lock, self._process = threading.Lock(), os.getpid()
        self._left = mechanism.positives
        self._level = mechanism.threshold + mechanism.threshold_noise.sample_one(entropy)
        self._noise: int | None = mechanism.query_noise.sample_one(entropy)

    @property
    def left(self) -> int:
        """How many more positives will be told; 0: it has stopped for ever."""
        return 0 if self._noise is None else self._left

    def ask(self, answer: int) -> Verdict:
        """Whether the answer, an exact integer, is above the threshold, both with noise.

        Raises:
            BudgetExceeded: it has stopped.
            WrongUse: another process holds it.
            InvalidDeclaration: an answer that is not an integer.
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
            noise, self._noise = self._noise, None
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
    """Above threshold for epsilon in all: noise split 1 : (2c)^(2/3), monotone 1 : c^(2/3), c the positives.

    That split minimises the variance of each comparison (Lyu, Su, Li 2017, section 4.2).

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
    step, moves = Fraction(math.ceil(distance.value)), positives * (1 if monotone else 2)
    ours, all_others = split(positive("epsilon", epsilon), [Fraction(1), Fraction(moves)], Norm.L1)
    return SparseVectorMechanism(
        DiscreteLaplace(step / ours),
        DiscreteLaplace(moves * step / all_others),
        threshold,
        positives,
        gap=gap,
        monotone=monotone,
    )


def _apart(one: DiscreteLaplace, other: DiscreteLaplace, h: int) -> Fraction:
    """An upper bound of P(difference of two draws > h), h >= 0.

    With a < b the ratios e^(-1/scale) of the laws it is ((1-a)^2 b^(h+2) / (1+b) - (1-b)^2
    a^(h+2) / (1+a)) / ((1-ab) (b-a)). Scales that are (nearly) equal are drawn apart.
    """
    quick = 1 / min(one.scale, other.scale)
    slow = min(1 / max(one.scale, other.scale), quick / (1 + _APART))
    (least_a, most_a), (least_b, most_b) = shortfall(quick), shortfall(slow)
    wide = most_a**2 * exp_up(-(h + 1) * slow) / (2 - most_b)
    narrow = least_b**2 * exp_down(slow - (h + 2) * quick) / (2 - least_a)
    return (wide - narrow) / (shortfall(quick + slow)[0] * shortfall(quick - slow)[0])
