# SPDX-License-Identifier: Apache-2.0
"""The ledger: a durable record of what has been spent, and of the answers.

May import: ``accounting``, ``metadata``, ``privacy``, ``noise``, ``exact``, ``errors``. Begin with
``spend``: a charge is reserved, marked executing, and committed together with the bytes of its
answer; only then is the answer returned. ``account_path`` names accounts, ``account_transaction``
updates them, ``balance`` is the arithmetic. ``journal`` holds the hash chains, ``verify`` replays
them and ``signed_heads`` signs their ends. ``owner`` has the owner's commands, ``store`` the
storage backends.
"""

from sfumato.ledger.account_path import Scope
from sfumato.ledger.account_status import Period, Standing
from sfumato.ledger.balance import Balance
from sfumato.ledger.request import Request
from sfumato.ledger.signed_heads import Head, Signer
from sfumato.ledger.spend import Ledger
from sfumato.ledger.verify import Report, verify

__all__ = [
    "Balance",
    "Head",
    "Ledger",
    "Period",
    "Report",
    "Request",
    "Scope",
    "Signer",
    "Standing",
    "verify",
]
