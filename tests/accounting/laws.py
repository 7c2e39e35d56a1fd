# SPDX-License-Identifier: Apache-2.0
"""The exact output laws of small instances, in 200 bits, and what they lose: nothing here is
sfumato's.

A law is a mapping from outcome to probability. Where noise is endless it is cut where it is
below e^-100, far beyond what the tests tell apart.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product
from math import comb
from typing import TypeAlias

from flint import arb, ctx, fmpq

PRECISION = 200
SLACK = arb(fmpq(1, 10**25))
ORDERS = (fmpq(9, 8), fmpq(2), fmpq(8), fmpq(50))
NOTHING = arb(0)
# far above what is cut off, far below what is looked at
TINY = arb(fmpq(1, 10**36))

Law: TypeAlias = Mapping[Hashable, arb]
Pmf: TypeAlias = Callable[[int], arb]


def number(value: object) -> arb:
    """A ball around an exact number."""
    exact = Fraction(value)
    with ctx.workprec(PRECISION):
        return arb(fmpq(exact.numerator, exact.denominator))


class Noise:
    """A law on the integers by its weights: its masses and its cumulated masses within its
    reach.
    """

    def __init__(self, weight: Callable[[int], arb], lower: int, upper: int) -> None:
        self.lower, self.upper = lower, upper
        with ctx.workprec(PRECISION):
            weights = [weight(x) for x in range(lower, upper + 1)]
            total = sum(weights, NOTHING)
            self._mass = [each / total for each in weights]
            self._upto = [NOTHING]
            for each in self._mass:
                self._upto.append(self._upto[-1] + each)

    def pmf(self, x: int) -> arb:
        return self._mass[x - self.lower] if self.lower <= x <= self.upper else NOTHING

    def cdf(self, x: int) -> arb:
        return self._upto[min(max(x + 1 - self.lower, 0), len(self._mass))]

    def least(self, x: int) -> arb:
        """P(X >= x)."""
        with ctx.workprec(PRECISION):
            return self._upto[-1] - self.cdf(x - 1)


@cache
def laplace(scale: Fraction, cut: tuple[int, int] | None = None) -> Noise:
    """e^(-|x| / scale), truncated where ``cut`` says so."""
    reach = int(100 * scale) + 1
    with ctx.workprec(PRECISION):
        g = (-1 / number(scale)).exp()
        return Noise(lambda x: g ** abs(x), *(cut or (-reach, reach)))


@cache
def gaussian(variance: Fraction) -> Noise:
    """e^(-x^2 / (2 sigma^2))."""
    reach = int(15 * float(variance) ** 0.5) + 2
    with ctx.workprec(PRECISION):
        rate = 1 / (2 * number(variance))
        return Noise(lambda x: (-x * x * rate).exp(), -reach, reach)


@cache
def staircase(epsilon: Fraction, sensitivity: int, step: int) -> Noise:
    """e^(-epsilon) for each stair: the first ends at ``step``, the others are ``sensitivity``
    long.
    """
    reach = int(100 / epsilon) * sensitivity + step
    with ctx.workprec(PRECISION):
        fall = (-number(epsilon)).exp()

        def weight(x: int) -> arb:
            height = 0 if abs(x) < step else 1 + (abs(x) - step) // sensitivity
            return fall**height

        return Noise(weight, -reach, reach)


def shifted(noise: Noise, exact: int) -> Law:
    """An exact integer plus noise."""
    return {exact + x: noise.pmf(x) for x in range(noise.lower, noise.upper + 1)}


def together(*laws: Law) -> Law:
    """Independent answers, one of each law."""
    with ctx.workprec(PRECISION):
        joint: dict[Hashable, arb] = {(): arb(1)}
        for law in laws:
            joint = {
                (*seen, x): mass * each for seen, mass in joint.items() for x, each in law.items()
            }
        return joint


def mixed(parts: Iterable[tuple[object, Law]]) -> Law:
    """One of several laws, each with its probability."""
    law: dict[Hashable, arb] = defaultdict(lambda: NOTHING)
    with ctx.workprec(PRECISION):
        for share, part in parts:
            for outcome, mass in part.items():
                law[outcome] += number(share) * mass
    return law


def exponential(scores: Sequence[int], rate: Fraction) -> Law:
    """The exponential mechanism."""
    with ctx.workprec(PRECISION):
        weights = [(number(rate) * score).exp() for score in scores]
        total = sum(weights, NOTHING)
        return {index: weight / total for index, weight in enumerate(weights)}


def permute_and_flip(scores: Sequence[int], rate: Fraction) -> Law:
    """By its words: every order equally likely, then coins until the first that falls heads."""
    law: dict[Hashable, arb] = defaultdict(lambda: NOTHING)
    with ctx.workprec(PRECISION):
        heads = [(number(rate) * (score - max(scores))).exp() for score in scores]
        orders = list(permutations(range(len(scores))))
        for order in orders:
            left = arb(1) / len(orders)
            for index in order:
                law[index] += left * heads[index]
                left *= 1 - heads[index]
    return law


def noisy_max(
    scores: Sequence[int], noise: Noise, gaps: range | None = None, *, naive: bool = False
) -> Law:
    """The first of the largest noisy scores; with ``gaps`` also by how much it could be smaller and
    still win.

    ``naive``: by how much it is above the second largest, which is another number where there are
    ties.
    """
    law: dict[Hashable, arb] = defaultdict(lambda: NOTHING)
    levels = range(min(scores) + noise.lower, max(scores) + noise.upper + 1)
    with ctx.workprec(PRECISION):
        for index, score in enumerate(scores):
            before = arb(0)
            for level in levels:
                # P(the least noisy score that wins <= level): one above those before, level with
                # those after
                upto = arb(1)
                for other, its in enumerate(scores):
                    if other != index:
                        upto *= noise.cdf(level - its - (other < index))
                here, before = upto - before, upto
                if gaps is None:
                    law[index] += here * noise.least(level - score)
                for gap in gaps or ():
                    law[index, gap] += here * noise.pmf(level + gap - score)
            if naive:
                law[index, 0] = _level_with_a_later_one(scores, index, noise, levels)
    return law


def _level_with_a_later_one(scores: Sequence[int], index: int, noise: Noise, levels: range) -> arb:
    """P(the winner is level with the second largest): then none before it reaches it, and one after
    it does.
    """
    total = NOTHING
    for level in levels:
        before, upto, below = arb(1), arb(1), arb(1)
        for other, its in enumerate(scores):
            if other < index:
                before *= noise.cdf(level - 1 - its)
            elif other > index:
                upto *= noise.cdf(level - its)
                below *= noise.cdf(level - 1 - its)
        total += noise.pmf(level - scores[index]) * before * (upto - below)
    return total


def sparse_vector(
    answers: Sequence[int],
    threshold: Noise,
    each: Noise,
    positives: int,
    gaps: Sequence[int | None] = (None,),
) -> Law:
    """Each answer plus noise against one noisy threshold (0 plus noise), until ``positives`` are
    not below it.

    An outcome is a verdict for each answer that was asked: "below", or the gap, or None where none
    is told.
    """
    told = ("below", *gaps)
    return {
        verdicts: chance_of(verdicts, answers, threshold, each)
        for length in range(1, len(answers) + 1)
        for verdicts in product(told, repeat=length)
        if _is_whole(verdicts, len(answers), positives)
    }


def _is_whole(verdicts: Sequence[object], answers: int, positives: int) -> bool:
    """Whether a stream ends here: with its last positive, or with its last answer."""
    above = len(verdicts) - verdicts.count("below")
    stopped = above == positives and verdicts[-1] != "below"
    return stopped or (len(verdicts) == answers and above < positives)


def chance_of(
    verdicts: Sequence[int | str | None], answers: Sequence[int], threshold: Noise, each: Noise
) -> arb:
    """The probability that a sparse vector says this."""
    total = NOTHING
    with ctx.workprec(PRECISION):
        for level in range(threshold.lower, threshold.upper + 1):
            mass = threshold.pmf(level)
            for answer, verdict in zip(answers, verdicts, strict=False):
                if verdict == "below":
                    mass *= each.cdf(level - 1 - answer)
                elif verdict is None:
                    mass *= each.least(level - answer)
                else:
                    mass *= each.pmf(level + verdict - answer)
            total += mass
    return total


def response(truth: int, epsilon: Fraction, categories: int) -> Law:
    """Randomised response."""
    with ctx.workprec(PRECISION):
        high = number(epsilon).exp()
        total = high + categories - 1
        return {value: (high if value == truth else 1) / total for value in range(categories)}


def thresholded(counts: Sequence[int], noise: Noise, threshold: int) -> Law:
    """Noisy counts of the keys that are there (count >= 1), each shown where it reaches the
    threshold.
    """
    return together(*(_shown(count, noise, threshold) for count in counts))


def _shown(count: int, noise: Noise, threshold: int) -> Law:
    if count == 0:
        return {None: arb(1)}
    shown = {value: mass for value, mass in shifted(noise, count).items() if value >= threshold}
    return shown | {None: noise.cdf(threshold - 1 - count)}


def poisson(units: int, rate: Fraction, law: Callable[[int], Law]) -> Law:
    """``law`` of the number of units that are in a Poisson sample."""
    sizes = range(units + 1)
    return mixed(
        (comb(units, size) * rate**size * (1 - rate) ** (units - size), law(size)) for size in sizes
    )


def fixed(values: Sequence[int], size: int, law: Callable[[int], Law]) -> Law:
    """``law`` of the sum of the values in a uniform subset of this size: all subsets, listed."""
    subsets = list(combinations(values, size))
    return mixed((Fraction(1, len(subsets)), law(sum(subset))) for subset in subsets)


def redrawn(values: Sequence[int], size: int, law: Callable[[int], Law]) -> Law:
    """``law`` of the sum of so many draws with replacement: all sequences of draws, listed."""
    draws = list(product(values, repeat=size))
    return mixed((Fraction(1, len(draws)), law(sum(each))) for each in draws)


def loss(one: Law, other: Law) -> arb:
    """The largest |ln(P/Q)|; infinite where only one of them is possible."""
    worst = NOTHING
    with ctx.workprec(PRECISION):
        for p, q in _pairs(one, other):
            if bool(p == 0) or bool(q == 0):
                return arb("inf")
            worst = worst.max(abs((p / q).log()))
    return worst


def hockey_stick(one: Law, other: Law, epsilon: object) -> arb:
    """The smallest delta of (epsilon, delta), in the direction in which it is larger."""
    with ctx.workprec(PRECISION):
        factor = number(epsilon).exp()
        there = sum(((p - factor * q).max(NOTHING) for p, q in _pairs(one, other)), NOTHING)
        back = sum(((q - factor * p).max(NOTHING) for p, q in _pairs(one, other)), NOTHING)
        return there.max(back)


def renyi(one: Law, other: Law, order: fmpq) -> arb:
    """The Renyi divergence of this order, in the direction in which it is larger."""
    power = arb(order) - 1
    with ctx.workprec(PRECISION):
        ratios = [(p, q, (p / q).log() * power) for p, q in _pairs(one, other)]
        there = sum((p * ratio.exp() for p, _, ratio in ratios), NOTHING)
        back = sum((q * (-ratio).exp() for _, q, ratio in ratios), NOTHING)
        return there.max(back).log() / power


def _pairs(one: Law, other: Law) -> Iterable[tuple[arb, arb]]:
    """The two masses of each outcome, without those that both laws have cut off."""
    for outcome in {*one, *other}:
        p, q = one.get(outcome, NOTHING), other.get(outcome, NOTHING)
        if bool(p > TINY) or bool(q > TINY):
            yield p, q


def best(law: Law, shape: Fraction, stop: Fraction, runs: int = 0) -> Law:
    """The largest outcome of a number of runs, drawn by its series; of ``runs`` if that is above 0.

    The weights of the numbers are multiplied up one by one, until they are below 2^-160.
    """
    with ctx.workprec(PRECISION):
        weights = {runs: arb(1)}
        if not runs:
            weights = dict(_weights(number(shape), number(1 - stop)))
        total = sum(weights.values(), NOTHING)
        found, below, reached = {}, NOTHING, NOTHING
        for outcome in sorted(law):
            reached = below + law[outcome]
            found[outcome] = sum(
                (weight * (reached**k - below**k) for k, weight in weights.items()), NOTHING
            )
            found[outcome] /= total
            below = reached
        return found


def _weights(shape: arb, going_on: arb) -> Iterable[tuple[int, arb]]:
    """(1 - stop)^k times the product of (l + shape) / (l + 1) for 0 < l < k, for k = 1, 2, ..."""
    weight, k = going_on, 1
    while bool(weight > arb(2) ** -160):
        yield k, weight
        weight *= going_on * (k + shape) / (k + 1)
        k += 1
