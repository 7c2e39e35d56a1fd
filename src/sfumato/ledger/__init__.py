# SPDX-License-Identifier: Apache-2.0
"""What has been spent, durably.

May import: ``accounting``, ``metadata``, ``privacy``, ``exact``, ``errors``. Begin with
``spend``: a charge is reserved, marked executing, and committed with the bytes of its
answer; only then is the answer given. ``balance`` is the arithmetic, ``journal`` the hash
chain, ``store`` where it lies.
"""

from sfumato.ledger.balance import Balance
from sfumato.ledger.spend import Ledger, Request
from sfumato.ledger.verify import Report, verify

__all__ = ["Balance", "Ledger", "Report", "Request", "verify"]
