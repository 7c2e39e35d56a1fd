# SPDX-License-Identifier: Apache-2.0
"""A digest is of everything that is stored but what may change."""

from pathlib import Path

import pytest

from sfumato.ledger import Ledger
from sfumato.ledger.digests import DIGEST, answer_digest, row_digest, stored_digest
from sfumato.ledger.store.base import AnswerRow, KeyRow
from tests.contracts.charges import charges, opened, paid, pure


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = opened(tmp_path / "l.db")
    paid(ledger, pure("0.1"))
    return ledger


def test_the_digest_of_an_answer_is_of_its_keys_too(ledger: Ledger) -> None:
    (row, answer), *_ = ledger.store.read(lambda rows: list(rows.history()))
    assert isinstance(answer, AnswerRow)
    assert len(answer_digest(row, answer)) == len(answer_digest(row, None)) == DIGEST + 8
    for change in ({"question": "x"}, {"statement": "x"}, {"shared": "x"}, {"charge": "x"}, {"body": b"x"}, {"seq": 9}):
        assert answer_digest(row, answer._replace(**change)) != answer_digest(row, answer)


def test_digests_differ_with_every_field(ledger: Ledger) -> None:
    row = charges(ledger)[0]
    for name in row._fields:
        if name != "lease_until":
            value = getattr(row, name)
            changed = row._replace(**{name: value + 1 if isinstance(value, int) else value + "x"})
            assert stored_digest(changed) != stored_digest(row), name
    key = KeyRow("a", "k", "r", "c", "d", 1)
    digests = {row_digest(key._replace(**{name: "x" if name != "seq" else 2})) for name in key._fields}
    assert len({row_digest(key), *digests}) == 7
