# SPDX-License-Identifier: Apache-2.0
"""The epsilon, at a delta, of Gaussian charges, which is shown beside their rho.

A sum of Gaussian charges has no pure epsilon. Its rho converts to (epsilon, delta) if the questions
were fixed in advance. If questions were chosen after seeing answers, only the limit of the account
holds (``accounting/budget_gates.proof.md``).
"""

from fractions import Fraction
from functools import lru_cache

from sfumato.accounting.budget_gates import DELTA_INCREMENTS, INCREMENTS, Charge
from sfumato.accounting.zcdp import approx_from_zcdp
from sfumato.exact.rational import decimal_text
from sfumato.privacy.guarantee import ZeroConcentratedDP

# An epsilon is shown in multiples of one over this, rounded up.
_SHOWN = 10_000


@lru_cache(maxsize=1024)
def planned_epsilon(charge: Charge, delta: Fraction) -> Fraction | None:
    """Returns the epsilon with which questions of this cost are (epsilon, delta)-DP if fixed in
    advance.

    As in an account, half of delta is for the conversion and half for the deltas of the questions.
    None if that half is too small, or if there is no delta.

    Guarantees:
        the epsilon shown is never below that of the conversion

    >>> planned_epsilon(Charge(None, INCREMENTS // 2, 0), Fraction("2e-6"))
    Fraction(6527, 1250)
    """
    half = delta / 2
    if half == 0 or charge.delta > half * DELTA_INCREMENTS:
        return None
    cost = ZeroConcentratedDP(Fraction(charge.rho, INCREMENTS))
    orders = [None] if charge.orders is None else sorted(charge.orders)
    best = min((approx_from_zcdp(cost, half, order).epsilon for order in orders), default=None)
    if best is None:
        return None
    return Fraction(-(-best * _SHOWN // 1), _SHOWN)


def planned_text(charge: Charge, delta: Fraction) -> str:
    """Returns ``planned_epsilon`` in words; "" if the charge has a pure epsilon, or there is none.

    >>> planned_text(Charge(None, INCREMENTS // 2, 0), Fraction("2e-6"))
    'epsilon 5.2216 at delta 0.000002 if fixed in advance'
    """
    epsilon = planned_epsilon(charge, delta) if charge.epsilon is None else None
    if epsilon is None:
        return ""
    return f"epsilon {decimal_text(epsilon)} at delta {decimal_text(delta)} if fixed in advance"
