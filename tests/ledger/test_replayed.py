# SPDX-License-Identifier: Apache-2.0
"""Accounts and charges that are kept between two verifications come back as they were."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.accounting.budget_gates import Charge
from sfumato.ledger.replayed import Book, Open, Sum
from tests.contracts.charges import charges, in_state, opened

BOOK = Book(
    "{}", "{}", "", Sum(1, 2, 3, 1), Sum(4, 5, 6, 2), "frozen", "{}", [{"limit": None}], 7, "digest"
)


def test_a_sum_takes_out_what_was_added() -> None:
    found = Sum()
    for charge in (Charge(1, 2, 3), Charge(None, 5, 7)):
        found.move(charge, 1)
    assert found.charge == Charge(None, 7, 10)
    found.move(Charge(None, 5, 7), -1)
    assert found.charge == Charge(1, 2, 3)


def test_a_book_comes_back_with_all_that_its_row_does_not_tell() -> None:
    again = Book.from_json(json.loads(json.dumps(BOOK.to_json())))
    assert again == BOOK
    assert again.held == Sum(3, 3, 3, 1)
    # an unbounded sum hides what it would be without the unbounded charges
    assert Book.from_json(replace(BOOK, spent=Sum(9, 2, 3, 1)).to_json()) != BOOK


def test_a_charge_comes_back_at_another_place(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    in_state(ledger, "executing")
    (row,) = charges(ledger)
    found = Open(
        80,
        row,
        Charge(10**11, 5 * 10**9, 0),
        ("d", "d/unstated", "d/unstated/owner"),
        "executing",
        "why",
    )
    again = Open.from_json(0, json.loads(json.dumps(found.to_json())))
    assert again == replace(found, place=0)
    assert again.digest() == found.digest()


@pytest.mark.parametrize("form", [[], ["{}"] * 9, None])
def test_what_is_no_book_is_refused(form: object) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)):
        Book.from_json(form)  # type: ignore[arg-type]
