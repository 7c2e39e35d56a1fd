# SPDX-License-Identifier: Apache-2.0
"""NaN.

Given: a sum over rows of which some are NaN.
Broken: the answer is NaN: that such a row is there is seen.
Right: a number, by one path for all rows.
Source: the thread beside it.
"""

import math

from benchmarks.attacks.case import Case, Seen, judged
from benchmarks.attacks.questions import sums

VALUES = [1.0, float("nan"), 2.0] * 20


def _hidden(number: float) -> Seen:
    return judged(holds=math.isfinite(number), seen=f"{number:.4g}")


_SYSTEMS = ("sfumato", "opendp", "diffprivlib", "python-dp", "smartnoise", "tumult")
CASE = Case(
    __doc__,
    sums(_hidden, VALUES, 5.0, *_SYSTEMS),
    {"diffprivlib": "https://github.com/IBM/differential-privacy-library/issues/80"},
)
