# SPDX-License-Identifier: Apache-2.0
"""The order of rows in plain Python, worked out by hand."""

import hashlib

import numpy as np
import pytest

from sfumato.engines import reference_order
from sfumato.engines.reference import Reference
from sfumato.engines.reference_order import hashed
from sfumato.plan.rows import MISSING
from tests.contracts import world
from tests.contracts.unit_rows import blocks, bounded

PEOPLE, EACH = world.scan("people", "people."), world.scan("rows", "r.")
N, OWN = world.read(PEOPLE, "people.n"), world.read(EACH, "r.n")


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def found(plan: object, rows: list[dict[str, object]], table: str = "people") -> list[object]:
    with Reference({table: rows}).rows(plan, "k") as opened:
        return blocks(opened)


def test_the_parts_of_a_hash_have_bars_between_them() -> None:
    assert hashed("k", 3, None, "u", 1) == md5("k|3|N|u|1")


def test_units_and_their_rows_come_by_their_hashes() -> None:
    rows = [{"who": who, "n": number} for who in "pqr" for number in "0123"]
    units = sorted("pqr", key=lambda who: md5(f"k|{who}"))
    expected = [
        [[code] for code in sorted(range(4), key=lambda code: md5(f"k|{code}|{who}|1"))][:3]
        for who in units
    ]
    assert found(bounded(PEOPLE, N, most=3), rows) == expected
    assert found(bounded(PEOPLE, N, most=3), rows[::-1]) == expected


def test_equal_rows_of_a_unit_are_numbered() -> None:
    rows = [{"who": "p", "n": "1"}] * 3 + [{"who": "p", "n": "2"}]
    places = sorted([(md5(f"k|1|p|{number}"), 1) for number in (1, 2, 3)] + [(md5("k|2|p|1"), 2)])
    assert found(bounded(PEOPLE, N, most=2), rows) == [[[code] for _, code in places[:2]]]


def test_rows_that_are_units_are_units_of_one_row() -> None:
    """In the order of their codes, missing ones first: none of them is left out."""
    rows = [{"n": "2"}, {"n": "1"}, {"n": None}, {"n": "1"}]
    expected = [[[MISSING]], [[1]], [[1]], [[2]]]
    assert found(bounded(EACH, OWN), rows, "rows") == expected
    assert found(bounded(EACH, OWN), rows[::-1], "rows") == expected


def test_rows_of_nobody_are_left_out() -> None:
    assert found(bounded(PEOPLE, N), [{"who": None, "n": "1"}]) == []


def test_numbers_of_equal_rows_that_are_left_out_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without them the kept share of a value would be all or nothing."""
    rows = [{"who": "p", "n": str(place % 2)} for place in range(40)]
    plan = bounded(PEOPLE, N, most=20)
    mixed = np.array(found(plan, rows)).sum()
    assert 0 < mixed < 20
    monkeypatch.setattr(reference_order, "hashed", lambda key, code, *rest: md5(f"{key}|{code}"))
    assert np.array(found(plan, rows)).sum() in (0, 20)
