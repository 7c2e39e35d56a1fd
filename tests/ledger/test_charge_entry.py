# SPDX-License-Identifier: Apache-2.0
"""An entry that opens a charge says the row of that charge, and how it is called in a message."""

import json
from pathlib import Path

from sfumato.ledger.charge_entry import named, opened_row
from tests.contracts.charges import charges, entries, in_state, opened


def test_the_entry_of_a_charge_says_its_row(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    in_state(ledger, "reserved", "one")
    (row,) = charges(ledger)
    entry = entries(ledger)[-1]
    assert opened_row(entry, json.loads(entry.body), row.cost) == row._replace(lease_until=0)
    assert named(entry) == "entry 2 of 'd'"
    assert named(entry._replace(chain="")) == "entry 2"
