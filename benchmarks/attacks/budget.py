# SPDX-License-Identifier: Apache-2.0
"""Float budgets.

Given: 0.1 three times from 0.3.
Broken: a charge counts less than it costs.
Right: exact, or rounded up.
Source: Tumult Labs, known vulnerabilities.
"""

from fractions import Fraction

from benchmarks.attacks.case import REFUSED, RIGHT, Case, Seen, judged
from benchmarks.attacks.questions import ALL, opendp, opendp_count, session, tumult


def _sfumato() -> Seen:
    import sfumato as sf

    with session({"x": [1] * 9}, epsilon="0.3", x=sf.Integer(0, 5)) as opened:
        for least in range(3):
            opened.query(f"{ALL} WHERE x > {least}", epsilon=0.1)
        left = opened.budget.left
    return judged(holds=left == 0, seen=f"three charges, {left} left")


def _opendp() -> Seen:
    dp = opendp()
    cost = dp.c.make_composition([opendp_count(10.0)] * 3).map(1)
    return judged(holds=Fraction(cost) >= Fraction(3, 10), seen=f"{cost!r}, rounded up")


def _diffprivlib() -> Seen:
    from diffprivlib import BudgetAccountant  # type: ignore[import-not-found]
    from diffprivlib.utils import BudgetError  # type: ignore[import-not-found]

    account = BudgetAccountant(epsilon=0.3)
    try:
        for _ in range(3):
            account.spend(0.1, 0)
    except BudgetError:
        return REFUSED, "the third charge: 0.1 + 0.1 + 0.1 > 0.3 in floats"
    return RIGHT, "three charges"


def _tumult() -> Seen:
    from tmlt.analytics import PureDPBudget  # type: ignore[import-not-found]

    opened, query = tumult({"x": [1] * 9}, 0.3)
    for _ in range(3):
        opened.evaluate(query.count(), PureDPBudget(0.1))
    return RIGHT, f"three charges, {opened.remaining_privacy_budget.epsilon} left"


CASE = Case(
    __doc__,
    {"sfumato": _sfumato, "opendp": _opendp, "diffprivlib": _diffprivlib, "tumult": _tumult},
    not_expressed=("python-dp",),
)
