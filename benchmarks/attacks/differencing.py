# SPDX-License-Identifier: Apache-2.0
"""Differencing.

Given: COUNT(*) of 100 rows, and of all but one; epsilon 0.25 each.
Broken: the difference is the row.
Right: noise in both, and an end.
Source: Dinur and Nissim (PODS 2003).
"""

from functools import partial

from benchmarks.attacks.case import REFUSED, Case, Seen, judged
from benchmarks.attacks.questions import ALL, COUNTS, session

TRIES, EPSILON = 40, 0.25


def _apart(system: str) -> Seen:
    count = COUNTS[system]
    exact = sum(round(count(100, EPSILON) - count(99, EPSILON)) == 1 for _ in range(TRIES))
    return judged(holds=exact < 0.6 * TRIES, seen=f"{exact} of {TRIES} differences tell the row")


def _sfumato() -> Seen:
    import sfumato as sf

    done = 0
    with session({"x": list(range(100))}, epsilon=1, x=sf.Integer(0, 99)) as opened:
        try:
            while True:
                opened.query(f"{ALL} WHERE x <> {done}", epsilon=EPSILON)
                done += 1
        except sf.errors.BudgetExceeded:
            return REFUSED, f"after {done} noisy counts"


CASE = Case(__doc__, {"sfumato": _sfumato, **{name: partial(_apart, name) for name in COUNTS}})
