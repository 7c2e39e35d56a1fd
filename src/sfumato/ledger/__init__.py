# SPDX-License-Identifier: Apache-2.0
"""What has been spent, durably.

May import: ``accounting``, ``metadata``, ``privacy``, ``noise``, ``exact``, ``errors``. Begin
with ``spend``: a charge is reserved, marked executing, and committed with the bytes of its
answer; only then is the answer given. ``tree`` names the accounts and ``books`` moves them,
``balance`` is the arithmetic, ``journal`` the hash chains, ``owner`` what only the owner
does; ``verify`` replays the journal and ``seal`` signs its heads; ``store`` is where it lies.
"""

from sfumato.ledger.account_path import Scope
from sfumato.ledger.account_status import Standing
from sfumato.ledger.balance import Balance
from sfumato.ledger.request import Request
from sfumato.ledger.signed_heads import Head, Signer
from sfumato.ledger.spend import Ledger
from sfumato.ledger.verify import Report, verify

__all__ = [
    "Balance",
    "Head",
    "Ledger",
    "Report",
    "Request",
    "Scope",
    "Signer",
    "Standing",
    "verify",
]
