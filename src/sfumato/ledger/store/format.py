# SPDX-License-Identifier: Apache-2.0
"""The format number of a ledger, one for all stores.

========  ======================================================================
1         one hash chain for all datasets (SQLite only)
2         a chain for each dataset; accounts for purposes and analysts; leases
3         the index of the parts of answers
4         what each store keeps beside its tables, see the step in its schema file
5         answers in instalments; bodies that are compressed, or outside their rows
========  ======================================================================

Each schema file has one step from each format to the next. A step runs inside the
transaction that also writes the new number: it happens as a whole or not at all.
"""

from sfumato.errors import LedgerTooNew

FORMAT = 5


def too_new(place: str, version: int) -> LedgerTooNew:
    """Returns the error for a ledger of a format that this version of sfumato does not know."""
    return LedgerTooNew(
        f"The ledger {place} has format {version}; this version reads up to {FORMAT}.",
        remedy="Use the newer sfumato that wrote it. Nothing was changed.",
    )
