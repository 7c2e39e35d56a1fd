# SPDX-License-Identifier: Apache-2.0
"""The test of a claim by guesses about many secret coins of one run.

Each secret is a fair coin: heads and the record is in the data, tails and it is not. An attacker
sees what was released and guesses some of the coins. Only the number of right guesses counts, so
every attack is scored alike. Sources: Steinke, Nasr, Jagielski, "Privacy Auditing with One (1)
Training Run" (NeurIPS 2023); Mahloujifar, Melis, Chaudhuri, "Auditing f-Differential Privacy in One
Run" (2024). Proof: one_run.proof.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from sfumato.accounting.approx_statement import Promise, family
from sfumato.audit.attack import CONFIDENCE
from sfumato.audit.trade_off_inverse import Inverse, inverse_of
from sfumato.audit.verdict import Verdict
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rational import Number
from sfumato.exact.rounding import float_down
from sfumato.noise.law import open_unit
from sfumato.privacy.guarantee import (
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)

PValue: TypeAlias = Callable[[int, int, int], float]

# Far above the relative error of scipy's incomplete beta function.
_SLACK = 1e-6
_ROUND_DOWN = 1 - 2.0**-48
_MOST_COINS = 10**7
# ln of the smallest p-value that is computed
_SMALLEST = -600.0
_HALVINGS = 24
_CLAIM_HALVINGS = 12
_LARGEST_CLAIM = 64
# The most coins that ``needed`` tries.
_MOST_NEEDED = 2**16
# Shares of the coins that ``guesses`` guesses at.
_SHARES = (0.004, 0.015, 0.05, 0.15, 0.4, 1.0)


@dataclass(frozen=True, slots=True)
class OneRun:
    """The result of ``one_run``: ``right`` of ``made`` guesses about ``coins`` fair coins.

    ``tries`` is how many numbers of guesses were tried; the p-value is multiplied by it.

    >>> result = one_run(right=180, made=200, coins=1000, claim=PureDP(1), confidence="0.95")
    >>> result.p_value < 1e-6, result.verdict.value, round(float(result.least.epsilon), 1)
    (True, 'VIOLATED', 1.8)
    """

    right: int
    made: int
    coins: int
    claim: Promise
    confidence: Fraction
    p_value: float
    tries: int = 1

    @property
    def verdict(self) -> Verdict:
        """VIOLATED or UNDECIDED: guesses can never prove that a claim holds."""
        refuted = self.p_value <= float_down(1 - self.confidence)
        return Verdict.VIOLATED if refuted else Verdict.UNDECIDED

    @property
    def least(self) -> Promise | None:
        """The least claim of the same kind that is not refuted, rounded up; None for a curve.

        An (epsilon, delta) claim keeps its delta, a Renyi claim its order. None also if even an
        epsilon of 64 is refuted.
        """
        make = _claims_of_kind(self.claim)
        if make is None:
            return None
        doubt = float_down(1 - self.confidence) / self.tries

        def refuted(size: Fraction) -> bool:
            return p_values(make(size))(self.right, self.made, self.coins) <= doubt

        if not refuted(Fraction(0)):
            return make(Fraction(0))
        low, high = Fraction(0), Fraction(1)
        while refuted(high):
            low, high = high, 2 * high
            if high > _LARGEST_CLAIM:
                return None
        for _ in range(_CLAIM_HALVINGS):
            middle = (low + high) / 2
            if refuted(middle):
                low = middle
            else:
                high = middle
        return make(high)

    @property
    def needed(self) -> int | None:
        """The number of coins with which the claim could be refuted if every guess were right; None
        if not even 65,536 suffice.
        """
        doubt = float_down(1 - self.confidence) / self.tries
        p_value = p_values(self.claim)

        def enough(coins: int) -> bool:
            return p_value(coins, coins, coins) <= doubt

        high = 1
        while not enough(high):
            high *= 2
            if high > _MOST_NEEDED:
                return None
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            if enough(middle):
                high = middle
            else:
                low = middle
        return high

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        text = f"{self.right} of {self.made} guesses about {self.coins} coins were right"
        doubt = f"{float(1 - self.confidence):.2g}"
        if self.verdict is Verdict.VIOLATED:
            return f"VIOLATED: {text}; under the claim, p <= {self.p_value:.2g} (limit {doubt})."
        needed = self.needed
        if needed is None:
            limit = "Not even 65,536 coins could refute it in one run: claim the privacy curve"
        else:
            limit = f"{needed} coins could refute the claim, if every guess were right"
        return (
            f"UNDECIDED: {text}; under the claim, p <= {self.p_value:.2g} (limit {doubt}). {limit}."
        )


def one_run(
    *, right: int, made: int, coins: int, claim: Promise, confidence: Number = CONFIDENCE
) -> OneRun:
    """Tests a claim by the number of right guesses about the fair coins of one run.

    ``claim``: what the released numbers promise about one flipped coin: any guarantee, or the
    privacy curve of a plan. If a coin chooses between two values, that is two steps under
    add/remove: take ``for_group(claim, 2)``. ``made``, the number of guesses, must be fixed before
    the coins are looked at.

    An (epsilon, delta) claim is hardly ever refuted in one run: the p-value is about
    2 coins delta / made or more. Claim the curve, or the guarantee that the noise has.

    Guarantees:
        a true claim is refuted as rarely as stated

    Raises:
        InvalidNumber: counts that are not 0 <= right <= made <= coins with 1 <= made, or a
            confidence outside (0, 1).
        InvalidDeclaration: a claim that is no guarantee.

    >>> result = one_run(right=180, made=200, coins=1000, claim=ApproxDP(1, "1e-5"))
    >>> result.verdict.value, result.p_value > 1e-5
    ('UNDECIDED', True)
    """
    counts = (right, made, coins)
    if any(isinstance(count, bool) or not isinstance(count, int) for count in counts):
        raise InvalidNumber("A count that is no integer.", allowed="right, made, coins: integers")
    if not 0 <= right <= made <= coins <= _MOST_COINS or made == 0:
        raise InvalidNumber(
            f"right = {right}, made = {made}, coins = {coins}.",
            allowed="0 <= right <= made <= coins <= 10,000,000, and at least one guess",
        )
    sure = open_unit("confidence", confidence)
    return OneRun(right, made, coins, claim, sure, p_values(claim)(right, made, coins))


def guesses(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    claim: Promise,
    confidence: Number = CONFIDENCE,
) -> OneRun:
    """Turns scores of many secrets into guesses, and tests the claim with ``one_run``.

    ``scores``: higher means more probably included; ``included``: the fair coins. The secrets with
    the highest scores are guessed to be in, as many with the lowest to be out. Six numbers of
    guesses, which depend on the number of coins alone, are tried, and the doubt is divided by six.

    Guarantees:
        trying several numbers of guesses is paid for

    Raises:
        InvalidDeclaration: arrays of different lengths; scores that are no numbers; coins that are
            all alike, or that are no booleans.

    >>> import numpy as np
    >>> coins = np.random.default_rng(1).random(1000) < 0.5
    >>> guesses(coins * 1.0, coins, claim=PureDP(1)).verdict.value
    'VIOLATED'
    """
    values, coins = _checked(scores, included)
    sure = open_unit("confidence", confidence)
    order = np.argsort(values, kind="stable")
    p_value = p_values(claim)
    best: OneRun | None = None
    for made in sorted({max(2, 2 * math.ceil(share * len(coins) / 2)) for share in _SHARES}):
        half = min(made, len(coins)) // 2
        right = int(coins[order[-half:]].sum()) + int((~coins[order[:half]]).sum())
        p = min(1.0, len(_SHARES) * p_value(right, 2 * half, len(coins)))
        if best is None or p < best.p_value:
            best = OneRun(right, 2 * half, len(coins), claim, sure, p, len(_SHARES))
    assert best is not None
    return best


def p_values(claim: Promise) -> PValue:
    """Returns a function of (right, made, coins): an upper bound of the probability of at least so
    many right guesses, if the claim is true.

    >>> round(p_values(PureDP(0))(9, 10, 10), 6) == round(11 / 1024, 6)
    True
    """
    match claim:
        case PureDP(epsilon):
            return lambda right, made, coins: _pure(right, made, float(epsilon))
        case ApproxDP(epsilon, delta):
            return partial(_approximate, epsilon=float(epsilon), delta=float(delta))
        case _:
            return partial(_curve, inverse=inverse_of(family(claim)))


def _pure(right: int, made: int, epsilon: float) -> float:
    """The tail of a binomial with the probability e^epsilon / (1 + e^epsilon)."""
    return min(1.0, float(_tails(np.array([right]), made, epsilon)[0]) * (1 + _SLACK))


def _approximate(right: int, made: int, coins: int, *, epsilon: float, delta: float) -> float:
    """Theorem 5.2 of Steinke, Nasr, Jagielski (2023)."""
    if right == 0 or delta >= 1:
        return 1.0
    pure = _pure(right, made, epsilon)
    if delta == 0:
        return pure
    lost = np.arange(1, right + 1)
    between = _tails(right - lost, made, epsilon) * (1 + _SLACK) - pure / (1 + _SLACK) ** 2
    largest = float(np.max(np.maximum(between, 0) / lost))
    return min(1.0, pure + 2 * coins * delta * largest * (1 + _SLACK))


def _tails(counts: NDArray[np.int64], made: int, epsilon: float) -> NDArray[np.float64]:
    """P(X >= count) for each count, X binomial with the probability e^epsilon / (1 + e^epsilon)."""
    chance = 1 / (1 + math.exp(-min(epsilon, 700.0)))
    tails = np.ones(len(counts))
    some = counts > 0
    tails[some] = betainc(counts[some], made - counts[some] + 1, chance)
    return tails


def _curve(right: int, made: int, coins: int, *, inverse: Inverse) -> float:
    """The least probability, of those tried, that the recursion shows to be too large."""
    if right == 0 or not _impossible(right, made, coins, inverse, 1.0):
        return 1.0
    low, high = _SMALLEST, 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _impossible(right, made, coins, inverse, math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


def _impossible(right: int, made: int, coins: int, inverse: Inverse, probability: float) -> bool:
    """Whether the claim excludes that so many guesses are right with this probability.

    If they are, at least i guesses are right with a probability of at least ``tail``, for each i
    downward from ``right``. A probability above 1 is a contradiction.
    """
    tail = total = probability
    for i in range(right, 0, -1):
        hit = ((i - 1) * tail + total) / coins * _ROUND_DOWN
        lower = (total + coins * inverse(hit)) / (made - i + 1) * _ROUND_DOWN
        if lower > 1:
            return True
        if lower <= tail:
            return False
        tail = lower
        total = (total + tail) * _ROUND_DOWN
    return False


def _claims_of_kind(claim: Promise) -> Callable[[Fraction], Promise] | None:
    """A function from a number to the claim of this kind that has it; None for a curve."""
    match claim:
        case ApproxDP(_, delta):
            return lambda epsilon: ApproxDP(epsilon, delta)
        case RenyiDP(order, _):
            return lambda epsilon: RenyiDP(order, epsilon)
        case PureDP() | BoundedRangeDP() | GaussianDP() | ZeroConcentratedDP():
            return type(claim)
    return None


def _checked(
    scores: ArrayLike, included: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The scores and coins as arrays; refuses what cannot be ranked."""
    values, coins = np.asarray(scores), np.asarray(included)
    if values.ndim != 1 or values.shape != coins.shape or coins.dtype != np.bool_:
        raise InvalidDeclaration(
            f"scores of shape {values.shape}, included of shape {coins.shape}.",
            allowed="as many scores as booleans",
        )
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise InvalidDeclaration("A score that is no finite number.", allowed="finite numbers")
    if coins.all() or not coins.any():
        raise InvalidDeclaration(
            "Every secret is included, or none.", allowed="coins that were thrown independently"
        )
    return values.astype(np.float64), coins
