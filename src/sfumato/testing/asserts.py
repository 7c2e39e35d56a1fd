# SPDX-License-Identifier: Apache-2.0
"""Statistical assertions whose two error rates are proved, not simulated."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence

FALSE_ALARM = 1e-9


def assert_follows(
    draws: Sequence[int],
    cdf: Callable[[int], float],
    *,
    notices: Callable[[int], float],
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Fails if ``draws`` are not from the law of ``cdf``.

    Dvoretzky-Kiefer-Wolfowitz-Massart: the empirical cdf is further than t from the true
    one with probability at most 2 exp(-2 n t^2) = ``false_alarm``. ``notices`` is the cdf of
    a wrong law that the test is sure to notice (with the same probability of error): one
    further than 2t away. A sample too small for that is itself a failure.
    """
    n = len(draws)
    t = math.sqrt(math.log(2 / false_alarm) / (2 * n))
    ordered = sorted(draws)
    # also just below each draw: a cdf that should have grown in between is a deviation too
    points = sorted({point for draw in draws for point in (draw - 1, draw)})
    power = max(abs(cdf(x) - notices(x)) for x in points)
    if power <= 2 * t:
        raise AssertionError(f"{n} draws notice a distance of {2 * t:.2g}; the wrong law is only {power:.2g} away")
    distance = max(abs(bisect_right(ordered, x) / n - cdf(x)) for x in points)
    if distance > t:
        raise AssertionError(f"the draws are {distance:.3g} from the stated law; {t:.3g} has probability {false_alarm}")


def assert_at_most(
    failures: int, trials: int, probability: float, *, notices: float, false_alarm: float = FALSE_ALARM
) -> None:
    """Fails if ``failures`` of ``trials`` are too many for a failure probability.

    Hoeffding: more than probability + t of them happen with probability at most
    exp(-2 trials t^2) = ``false_alarm``. A true probability of ``notices`` or more is sure to
    be noticed (same error): it must be 2t above.
    """
    t = math.sqrt(math.log(1 / false_alarm) / (2 * trials))
    if notices < probability + 2 * t:
        raise AssertionError(f"{trials} trials notice {probability + 2 * t:.3g}, not {notices:.3g}")
    if failures / trials > probability + t:
        raise AssertionError(f"{failures} of {trials} failed; {probability} was stated")
