# SPDX-License-Identifier: Apache-2.0
"""Accounting: computes the privacy guarantee of an event. Pure functions.

May import: ``privacy``, ``noise``, ``exact``, ``errors``. Begin with ``account``: one table from
event type to rule; an event that is not in it raises. ``budget_gates`` holds the two gates of an
adaptively spent budget, with its proof beside it.
"""

from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import Charge, Gates, charge_for
from sfumato.accounting.calibrate import split
from sfumato.accounting.gaussian import gaussian_delta, gaussian_for
from sfumato.accounting.profile import Profile
from sfumato.accounting.zcdp import approx_from_zcdp, zcdp_from_pure

__all__ = [
    "Charge",
    "Gates",
    "Profile",
    "account",
    "approx_from_zcdp",
    "charge_for",
    "gaussian_delta",
    "gaussian_for",
    "split",
    "zcdp_from_pure",
]
