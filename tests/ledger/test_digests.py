# SPDX-License-Identifier: Apache-2.0
"""Digests of rows: whatever is stored of a row changes its digest, but for a charge's lease."""

import pytest

from sfumato.ledger.digests import (
    DIGEST,
    NUMBER,
    answer_digest,
    charge_digest,
    row_digest,
    stored_digest,
)
from sfumato.ledger.store.base import COMMITTED, AnswerRow, ChargeRow, KeyRow, PartRow

CHARGE = ChargeRow("c", "d", 2, "d", "d/p/a", "a", COMMITTED, "q", "s", "x", "{}", "", "", 7, 0)
ANSWER = AnswerRow("q", "s", "x", "c", b"bytes")


@pytest.mark.parametrize("name", [each for each in ChargeRow._fields if each != "lease_until"])
def test_whatever_changes_in_a_charge_changes_its_digest(name: str) -> None:
    before = getattr(CHARGE, name)
    other = CHARGE._replace(**{name: before + 1 if isinstance(before, int) else before + "!"})
    assert stored_digest(other) != stored_digest(CHARGE)
    assert len(stored_digest(CHARGE)) == DIGEST


def test_a_charge_has_the_digest_of_its_state_and_no_lease() -> None:
    assert stored_digest(CHARGE._replace(lease_until=9)) == stored_digest(CHARGE)
    assert charge_digest(CHARGE, "forfeited", "engine", 1) == stored_digest(
        CHARGE._replace(state="forfeited", reason="engine", acknowledged=1)
    )


def test_an_answer_counts_under_the_keys_of_its_charge_alone() -> None:
    assert len(answer_digest(CHARGE, ANSWER)) == DIGEST + NUMBER
    assert answer_digest(CHARGE, None) == bytes(DIGEST + NUMBER)
    assert answer_digest(CHARGE, ANSWER._replace(seq=9)) != answer_digest(CHARGE, ANSWER)
    assert answer_digest(CHARGE, ANSWER._replace(body=b"other")) != answer_digest(CHARGE, ANSWER)
    for name in ("question", "statement", "shared", "charge"):
        assert answer_digest(CHARGE, ANSWER._replace(**{name: "other"})) == b""
    # what was shared is not shared again under this charge
    given = CHARGE._replace(source="b")
    assert answer_digest(given, ANSWER) == b""
    assert answer_digest(given, ANSWER._replace(shared="")) == answer_digest(CHARGE, ANSWER)


@pytest.mark.parametrize("row", [KeyRow("d/p/a", "k", "r", "c", "d", 2), PartRow("p", "c", "d", 2)])
def test_whatever_changes_in_a_key_or_a_part_changes_its_digest(row: KeyRow | PartRow) -> None:
    others = [row._replace(**{name: 9 if name == "seq" else "other"}) for name in row._fields]
    assert len({row_digest(each) for each in (row, *others)}) == 1 + len(others)
