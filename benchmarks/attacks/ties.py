# SPDX-License-Identifier: Apache-2.0
"""Ties of a median.

Given: MEDIAN where 80% of the values are equal.
Broken: an error that depends on the data.
Right: an ordinary noisy answer.
Source: the thread beside it.
"""

from benchmarks.attacks.case import BROKEN, RIGHT, Case, Seen, judged
from benchmarks.attacks.questions import asked

EQUAL, OTHERS = 80_000, 20_000


def _sfumato() -> Seen:
    import sfumato as sf

    rows = {"x": [65] * EQUAL + [number % 500 for number in range(OTHERS)]}
    text = "SELECT MEDIAN(x) AS m FROM t"
    median = asked(rows, text, {"epsilon": "0.5"}, x=sf.Integer(0, 500))[0][0]
    return judged(holds=abs(median - 65) <= 5, seen=f"{median} (exact 65)")


def _diffprivlib() -> Seen:
    import numpy as np
    from diffprivlib.tools import quantile  # type: ignore[import-not-found]

    values = np.r_[np.full(EQUAL, 65_000), np.arange(OTHERS) * 25]
    try:
        return RIGHT, f"{quantile(values, 0.5, epsilon=0.5, bounds=(0, 500_000)):.0f}"
    except RuntimeError as error:
        return BROKEN, f"RuntimeError: {str(error).partition('.')[0]}"


CASE = Case(
    __doc__,
    {"sfumato": _sfumato, "diffprivlib": _diffprivlib},
    {"diffprivlib": "https://github.com/IBM/differential-privacy-library/issues/107"},
    not_expressed=("python-dp",),
)
