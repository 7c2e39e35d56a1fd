# SPDX-License-Identifier: Apache-2.0
"""Three times 0.1 from a budget of 0.3."""

from fractions import Fraction

from benchmarks.attacks import peers
from benchmarks.attacks.case import REFUSED, RIGHT, Case, Seen, judged


def _sfumato() -> Seen:
    import sfumato as sf
    from benchmarks.attacks.ours import session

    with session({"x": [1] * 9}, epsilon="0.3", x=sf.Integer(0, 5)) as opened:
        for least in range(3):
            opened.query(f"SELECT COUNT(*) AS n FROM t WHERE x > {least}", epsilon=0.1)
        left = opened.budget.left
    return judged(holds=left == 0, seen=f"three charges, {left} left")


def _opendp() -> Seen:
    dp = peers.opendp()
    cost = dp.c.make_composition([peers.opendp_count(10.0)] * 3).map(1)
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


CASE = Case(
    "Float budgets",
    "0.1 three times from 0.3",
    "a charge counts less than it costs",
    "exact, or rounded up",
    "Tumult Labs, known vulnerabilities",
    {"sfumato": _sfumato, "opendp": _opendp, "diffprivlib": _diffprivlib},
    not_expressed=("python-dp",),
)
