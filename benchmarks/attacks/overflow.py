# SPDX-License-Identifier: Apache-2.0
"""Overflow.

Given: SUM of 100 values of 2^30.
Broken: the sum wraps: an answer about nothing (its noise wraps too, so the guarantee holds).
Right: a wider sum, or one that saturates.
Source: Casacuberta et al. (CCS 2022).
"""

from benchmarks.attacks.case import Case, Seen, judged
from benchmarks.attacks.questions import sums

LARGE, ROWS = 2**30, 100


def _near(total: float) -> Seen:
    exact = LARGE * ROWS
    return judged(holds=abs(total - exact) < 40 * LARGE, seen=f"{total:.4g} of {exact:.4g}")


_SYSTEMS = ("sfumato", "opendp", "diffprivlib", "pipelinedp", "python-dp", "tumult")
CASE = Case(
    __doc__,
    sums(_near, [LARGE] * ROWS, LARGE, *_SYSTEMS),
    {"python-dp": "https://github.com/google/differential-privacy/issues/40"},
)
