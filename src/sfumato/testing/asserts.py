# SPDX-License-Identifier: Apache-2.0
"""Statistical assertions with proved rates of false alarms and of missed deviations."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FALSE_ALARM = 1e-9

Floats: TypeAlias = NDArray[np.float64]


def assert_follows(
    draws: Sequence[int],
    cdf: Callable[[int], float],
    *,
    notices: Callable[[int], float],
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Fails if ``draws`` are not from the distribution of ``cdf``.

    By Dvoretzky-Kiefer-Wolfowitz-Massart the empirical cdf is further than t from the true one
    with probability at most 2 exp(-2 n t^2) = ``false_alarm``. ``notices`` is the cdf of a wrong
    distribution that the test must detect (with the same probability of error): it must be
    further than 2t away. A sample too small for that fails too.

    >>> from sfumato.noise import DiscreteLaplace
    >>> from sfumato.testing import Replay
    >>> def cdf(scale):
    ...     return lambda x: DiscreteLaplace(scale).cdf(x).upper
    >>> draws = DiscreteLaplace(3).sample(4000, Replay(1)).tolist()
    >>> assert_follows(draws, cdf(3), notices=cdf(6))
    """
    n = len(draws)
    t = math.sqrt(math.log(2 / false_alarm) / (2 * n))
    ordered = sorted(draws)
    # also just below each draw, where a wrong cdf may already be too large
    points = sorted({*draws, *(draw - 1 for draw in draws)})
    power = max(abs(cdf(x) - notices(x)) for x in points)
    if power <= 2 * t:
        raise AssertionError(
            f"{n} draws notice a distance of {2 * t:.2g}; the wrong law is only {power:.2g} away"
        )
    distance = max(abs(bisect_right(ordered, x) / n - cdf(x)) for x in points)
    if distance > t:
        raise AssertionError(
            f"the draws are {distance:.3g} from the stated law; "
            f"{t:.3g} has probability {false_alarm}"
        )


def assert_counts_follow(
    counts: ArrayLike, law: ArrayLike, *, notices: ArrayLike, false_alarm: float = FALSE_ALARM
) -> None:
    """Fails if ``counts``, the numbers of draws in each cell, are not from ``law``.

    ``law`` and ``notices`` are the probabilities of the cells. The test checks K sets of cells that
    are fixed beforehand: each cell, each first few cells up to the median, each last few beyond it.
    The number of draws in a set of probability p is binomial. By Chernoff its share s has
    n kl(s, p) > t, where kl(s, p) = s ln(s/p) + (1-s) ln((1-s)/(1-p)), with probability at most
    2 e^-t. That is ``false_alarm`` / K for t = ln(2 K / false_alarm), so ``false_alarm`` in all.

    ``notices`` is a wrong law that the test must detect (with the same probability of error): in
    some set, of probability q under it, there is a share b between p and q with n kl(b, p) = t and
    n kl(b, q) >= ln(1 / false_alarm). By Chernoff again the share stays on p's side of b with
    probability at most ``false_alarm``. Too few draws for that fail too. Rounding errors in ``law``
    do not matter if they are far below sqrt(p / n).

    >>> die, loaded = [1 / 6] * 6, [1 / 2] + [1 / 10] * 5
    >>> assert_counts_follow([335, 338, 329, 331, 330, 337], die, notices=loaded)
    """
    middle = int(np.searchsorted(np.cumsum(law), 0.5))
    draws = _sets(counts, middle)
    right = _sets(law, middle)
    wrong = _sets(notices, middle)
    n = int(np.sum(counts))
    t = math.log(2 * len(right) / false_alarm)
    power = n * float(np.max(_divergence(_border(right, wrong, t / n), wrong)))
    # "not >=" instead of "<", so that NaN fails
    if not power >= math.log(1 / false_alarm):
        raise AssertionError(
            f"{n} draws do not notice the wrong law: they may miss it with e^-{power:.3g}"
        )
    evidence = n * float(np.max(_divergence(draws / n, right)))
    if not evidence <= t:
        raise AssertionError(
            f"the counts are e^-{evidence:.3g} unlikely; e^-{t:.3g} has probability {false_alarm}"
        )


def assert_counts_agree(
    counts: ArrayLike,
    others: ArrayLike,
    *,
    notices: tuple[ArrayLike, ArrayLike],
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Fails if two samples, counted in the same cells, have different (unknown) distributions.

    In each of the K sets of ``assert_counts_follow`` the difference of the two shares is a sum of
    independent terms, n of range 1/n and m of range 1/m, with mean 0. By Hoeffding it exceeds u
    with probability at most 2 exp(-2 u^2 / (1/n + 1/m)) = ``false_alarm`` / K. ``notices`` are two
    laws whose difference the test must detect (with the same probability of error): they differ by
    at least u + v in some set, where exp(-2 v^2 / (1/n + 1/m)) = ``false_alarm``. Too few draws for
    that fail too.

    >>> die, loaded = [1 / 6] * 6, [1 / 2] + [1 / 10] * 5
    >>> some, others = [3350, 3380, 3290, 3310, 3300, 3370], [335, 338, 329, 331, 330, 337]
    >>> assert_counts_agree(some, others, notices=(die, loaded))
    """
    middle = int(np.searchsorted(np.cumsum(notices[0]), 0.5))
    n, m = float(np.sum(counts)), float(np.sum(others))
    spread = (1 / n + 1 / m) / 2
    apart = np.abs(_sets(notices[0], middle) - _sets(notices[1], middle))
    u = math.sqrt(spread * math.log(2 * len(apart) / false_alarm))
    least = u + math.sqrt(spread * math.log(1 / false_alarm))
    if not float(np.max(apart)) >= least:
        raise AssertionError(
            f"{n:.0f} and {m:.0f} draws notice a distance of {least:.2g}, not {np.max(apart):.2g}"
        )
    distance = float(np.max(np.abs(_sets(counts, middle) / n - _sets(others, middle) / m)))
    if distance > u:
        raise AssertionError(
            f"the samples are {distance:.3g} apart; {u:.3g} has probability {false_alarm}"
        )


def assert_at_most(
    failures: int,
    trials: int,
    probability: float,
    *,
    notices: float,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Fails if ``failures`` of ``trials`` are too many for a failure probability.

    By Hoeffding the share of failures exceeds probability + t with probability at most
    exp(-2 trials t^2) = ``false_alarm``. A true probability of ``notices`` or more is detected
    (with the same probability of error); it must be at least 2t above.

    >>> assert_at_most(failures=48, trials=1000, probability=0.05, notices=0.3)
    """
    t = math.sqrt(math.log(1 / false_alarm) / (2 * trials))
    if notices < probability + 2 * t:
        raise AssertionError(f"{trials} trials notice {probability + 2 * t:.3g}, not {notices:.3g}")
    if failures / trials > probability + t:
        raise AssertionError(f"{failures} of {trials} failed; {probability} was stated")


def _sets(cells: ArrayLike, middle: int) -> Floats:
    """The totals of the sets: each cell, the first few up to ``middle``, the last few after it."""
    values = np.asarray(cells, np.float64)
    first_few = np.cumsum(values[:middle])
    last_few = np.cumsum(values[:middle:-1])
    return np.concatenate((values, first_few, last_few))


def _divergence(shares: Floats, probabilities: Floats) -> Floats:
    """The Kullback-Leibler divergence kl(s, p) of each share from its probability."""
    rest = 1 - shares
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(shares > 0, shares * np.log(shares / probabilities), 0.0)
        outside = np.where(shares < 1, rest * np.log(rest / (1 - probabilities)), 0.0)
    result: Floats = inside + outside
    return result


def _border(near: Floats, far: Floats, least: float) -> Floats:
    """The share b between p and q at which kl(b, p) reaches ``least``, by bisection.

    It is q if kl(b, p) stays below ``least``.
    """
    low, high = near, far
    for _ in range(60):
        middle = (low + high) / 2
        accepted = _divergence(middle, near) <= least
        low = np.where(accepted, middle, low)
        high = np.where(accepted, high, middle)
    return high
