# SPDX-License-Identifier: Apache-2.0
"""Sampler.

Given: 4,000 draws of discrete Laplace noise, epsilon 1.
Broken: another law than the stated one.
Right: the stated law.
Source: opendp/opendp#2639, #2708 (mended).
"""

import math
from collections.abc import Callable
from statistics import fmean

from benchmarks.attacks.case import Case, Seen, judged
from benchmarks.attacks.questions import asked, opendp_count

DRAWS = 4000


def _distributed(release: Callable[[], float]) -> Seen:
    draws = [release() for _ in range(DRAWS)]
    zeros, size = sum(each == 0 for each in draws) / DRAWS, fmean(map(abs, draws))
    # P(0) = tanh(1/2), E|X| = 1 / sinh(1), each with six standard errors
    zero, mean, slack = math.tanh(0.5), 1 / math.sinh(1), 6 / math.sqrt(DRAWS)
    fits = abs(zeros - zero) < 0.5 * slack and abs(size - mean) < 1.2 * slack
    return judged(holds=fits, seen=f"zeros {zeros:.3f} ({zero:.3f}), size {size:.3f} ({mean:.3f})")


def _sfumato() -> Seen:
    import sfumato as sf

    text = "SELECT x, COUNT(*) AS n FROM t GROUP BY x"
    rows = asked({"x": [0]}, text, {"epsilon": 1}, x=sf.Integer(0, DRAWS - 1))
    noise = iter([count - (key == 0) for key, count in rows])
    return _distributed(lambda: next(noise))


def _opendp() -> Seen:
    release = opendp_count(1.0)
    return _distributed(lambda: release(0))


def _diffprivlib() -> Seen:
    from diffprivlib.mechanisms import Geometric  # type: ignore[import-not-found]

    mechanism = Geometric(epsilon=1, sensitivity=1)
    return _distributed(lambda: mechanism.randomise(0))


CASE = Case(
    __doc__,
    {"sfumato": _sfumato, "opendp": _opendp, "diffprivlib": _diffprivlib},
)
