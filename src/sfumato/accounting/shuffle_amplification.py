# SPDX-License-Identifier: Apache-2.0
"""Bounds of how well shuffled reports of others hide one report, by sums in integers.

Every number is an integer over 2^bits, rounded in a named direction. Proof:
shuffle_amplification.proof.md. Source: Feldman, McMillan, Talwar, "Hiding Among the Clones" (FOCS
2021), Section 3.
"""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache

from sfumato.exact.rounding import exp_down, exp_up, log_down, log_up

HALF = Fraction(1, 2)
# Guard bits, so that the rounding errors of millions of steps stay below what is ignored.
_GUARD = 64
_PLACES = 256
_PI = (
    Fraction(31415926535897932384626433832, 10**28),
    Fraction(31415926535897932384626433833, 10**28),
)


def hidden_delta(
    odds: Fraction, rate: Fraction, others: int, factor: Fraction, ignored: Fraction
) -> Fraction:
    """Returns an upper bound of delta at epsilon = ln(``factor``) for one shuffled report hidden
    among clones, reports that are drawn independently of their value.

    The victim (the unit under attack) reports 0 or 1 by randomised response with these ``odds``;
    each of the ``others`` is a clone with probability ``rate``, which reports 0 or 1 by a fair
    coin. The observer sees the number of zeros and of ones. The bound is loose by at most about
    ``ignored``.

    Guarantees:
        a victim among clones hides at least so well

    ``odds`` > ``factor`` >= 1, 0 < ``rate`` < 1, ``others`` >= 0, ``ignored`` > 0.

    >>> delta = hidden_delta(Fraction(3), Fraction(1, 2), 0, Fraction(1), Fraction(1, 10**9))
    >>> round(float(delta), 9)
    0.5
    """
    bits = _GUARD + math.ceil(1 / ignored).bit_length()
    alone = (odds - factor) / (odds + 1)
    gain, loss = _up(alone, bits), _down(factor - 1, bits)
    first, weights, rest = binomial_weights(others, rate, bits, ignored)
    total = sum(
        weight * max(gain * here - loss * beyond, 0)
        for weight, (here, beyond) in zip(
            weights, _verdicts(first, odds, factor, bits), strict=False
        )
    )
    return min(Fraction(total, 1 << 3 * bits) + rest * alone, alone)


def lone_delta(high: Fraction, low: Fraction, others: int, factor: Fraction) -> Fraction:
    """Returns a lower bound of delta at epsilon = ln(``factor``) for a shuffled yes-or-no report.

    All ``others`` report yes with probability ``low``. The victim (the unit under attack) reports
    yes with probability ``low`` in one data set and ``high`` in its neighbour. The attacker sees
    the number of yes.

    Guarantees:
        a lone report shows at least so much

    ``high`` > ``low`` > 0, ``factor`` >= 1.

    >>> float(lone_delta(Fraction(3, 4), Fraction(1, 4), 0, Fraction(1)))
    0.5
    """
    # either many reports are "yes", or, on the other side, many are "no"
    yes = _shown(others, low, high, low, factor)
    return max(yes, _shown(others, 1 - low, 1 - low, 1 - high, factor))


def _shown(
    others: int, chance: Fraction, here: Fraction, there: Fraction, factor: Fraction
) -> Fraction:
    """A lower bound of P(answers >= J) - factor Q(answers >= J), at the J where it is largest.

    The victim gives this answer with probability ``here`` or ``there``, each of the others with
    ``chance``.
    """
    gain = here - factor * there
    if gain <= 0:
        return Fraction(0)
    slope = gain / (factor * (1 - there) - (1 - here))
    before = min(math.floor((others + 1) * chance / (chance + slope * (1 - chance))), others)
    bound = gain * chance_of(others, before, chance, upper=False)
    if factor > 1:
        bound -= (factor - 1) * Fraction(
            _tail(others, before, chance, _PLACES, upper=True), 1 << _PLACES
        )
    return max(bound, Fraction(0))


@lru_cache(maxsize=4)
def binomial_weights(
    trials: int, chance: Fraction, bits: int, ignored: Fraction
) -> tuple[int, tuple[int, ...], Fraction]:
    """Returns upper bounds of the binomial probabilities that are not negligible, over 2^``bits``.

    The first result is the smallest number of successes they are for, the second the bounds, the
    third bounds the probability of all other numbers, at most ``ignored``.

    >>> first, weights, rest = binomial_weights(2, Fraction(1, 2), 100, Fraction(1, 10**9))
    >>> first, [round(weight / 2**100, 9) for weight in weights], rest
    (0, [0.25, 0.5, 0.25], Fraction(0, 1))
    """
    mode = min(math.floor((trials + 1) * chance), trials)
    middle = _up(chance_of(trials, mode, chance, upper=True), bits)
    cut = _down(ignored / 2, bits)
    fewer = _run(
        middle,
        cut,
        bits,
        _up((1 - chance) / chance, bits),
        ((k, trials - k + 1) for k in range(mode, 0, -1)),
    )
    more = _run(
        middle,
        cut,
        bits,
        _up(chance / (1 - chance), bits),
        ((trials - k, k + 1) for k in range(mode, trials)),
    )
    return mode - len(fewer[0]), (*reversed(fewer[0]), middle, *more[0]), fewer[1] + more[1]


def _run(
    weight: int, cut: int, bits: int, odds: int, steps: Iterable[tuple[int, int]]
) -> tuple[list[int], Fraction]:
    """Weights computed by their ratios over * odds / under, until all that follow are at most
    ``cut``.
    """
    weights: list[int] = []
    for over, under in steps:
        up, down = over * odds, under << bits
        weight = -(-weight * up // down)
        if up < down and weight * down <= cut * (down - up):
            return weights, Fraction(weight * down, (down - up) << bits)
        weights.append(weight)
    return weights, Fraction(0)


def _verdicts(
    clones: int, odds: Fraction, factor: Fraction, bits: int
) -> Iterator[tuple[int, int]]:
    """For a number of clones and each larger number: an upper bound of P(A = j), a lower bound of
    P(A > j).

    A is the number of clones that report 0; more than j reports of 0 favour the victim's by more
    than ``factor``.
    """
    bar = (odds * factor - 1) / ((odds - 1) * (factor + 1))
    top, bottom = bar.numerator, bar.denominator
    j = (clones + 1) * top // bottom
    high = _up(chance_of(clones, j, HALF, upper=True), bits)
    low = _down(chance_of(clones, j, HALF, upper=False), bits)
    beyond = _tail(clones, j, HALF, bits, upper=False)
    while True:
        yield high, beyond
        # one more clone, which falls on either side of j with probability 1/2
        beyond += low >> 1
        clones += 1
        high = -(-high * clones // (2 * (clones - j)))
        low = low * clones // (2 * (clones - j))
        if (clones + 1) * top // bottom > j:
            high, low = -(-high * (clones - j) // (j + 1)), low * (clones - j) // (j + 1)
            j += 1
            beyond = max(beyond - high, 0)


def _tail(trials: int, at: int, chance: Fraction, bits: int, *, upper: bool) -> int:
    """P(Binomial > ``at``) in one direction, ``at`` not below the mean."""
    start = chance_of(trials, at, chance, upper=upper)
    odds = chance / (1 - chance)
    if upper:
        cut = 1 << bits // 4
        weights, rest = _run(
            _up(start, bits),
            cut,
            bits,
            _up(odds, bits),
            ((trials - k, k + 1) for k in range(at, trials)),
        )
        return sum(weights) + _up(rest, bits)
    weight, total, fixed = _down(start, bits), 0, _down(odds, bits)
    for k in range(at, trials):
        weight = weight * (trials - k) * fixed // ((k + 1) << bits)
        if weight == 0:
            break
        total += weight
    return total


def chance_of(trials: int, successes: int, chance: Fraction, *, upper: bool) -> Fraction:
    """Returns P(Binomial = ``successes``), rounded up or down by less than a relative 1e-16.

    Guarantees:
        the chance of a number of successes lies between its bounds

    >>> float(chance_of(4, 2, Fraction(1, 2), upper=True))
    0.375
    """
    end, other = (1, 0) if upper else (0, 1)
    ways = (
        log_factorial(trials)[end]
        - log_factorial(successes)[other]
        - log_factorial(trials - successes)[other]
    )
    log, exp = (log_up, exp_up) if upper else (log_down, exp_down)
    return exp(ways + successes * log(chance) + (trials - successes) * log(1 - chance))


def log_factorial(number: int) -> tuple[Fraction, Fraction]:
    """Returns lower and upper bounds of ln(number!), at most 1e-17 apart.

    Guarantees:
        the logarithm of a factorial lies between its bounds

    >>> [round(float(bound), 12) for bound in log_factorial(10**6)]
    [12815518.384658169, 12815518.384658169]
    """
    if number < 1000:
        exact = Fraction(math.factorial(number))
        return log_down(exact), log_up(exact)
    # Stirling's series: each partial sum is on the other side of the truth than the one before
    n = Fraction(number)
    series = 1 / (12 * n) - 1 / (360 * n**3)
    return (
        (n + HALF) * log_down(n) - n + log_down(2 * _PI[0]) / 2 + series,
        (n + HALF) * log_up(n) - n + log_up(2 * _PI[1]) / 2 + series + 1 / (1260 * n**5),
    )


def _up(number: Fraction, bits: int) -> int:
    return -(-(number.numerator << bits) // number.denominator)


def _down(number: Fraction, bits: int) -> int:
    return (number.numerator << bits) // number.denominator
