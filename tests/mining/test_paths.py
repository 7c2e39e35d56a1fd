# SPDX-License-Identifier: Apache-2.0
"""Paths: sequences in the order of rows, and shares of transitions."""

from typing import Any

import pytest

import sfumato as sf
from sfumato import mining as mn
from sfumato.errors import WrongUse

COST: dict[str, Any] = {"rho": 5, "delta": "1e-7"}
ROWS = "SELECT ward, day FROM notes"


def test_sequences_are_counted_by_people(session: sf.Session) -> None:
    found = mn.mine(session, mn.Paths("ward", order="day"), ROWS, **COST)
    rows = {row["path"]: row for row in found.to_dicts()}
    expected = {"ear": 3000, "eye": 2000, "eye > ear": 2000, "ear > ear": 1000}
    assert set(rows) == set(expected)
    assert all(abs(rows[path]["n"] - n) < 100 for path, n in expected.items())
    assert rows["eye > ear"]["size"] == 2
    shares = {(row["item"], row["next"]): row for row in found.transitions().to_dicts()}
    assert shares["eye", "ear"]["share"] > 0.9
    assert abs(shares["ear", "ear"]["share"] - 1 / 3) < 0.05
    for row in shares.values():
        assert row["share_low"] <= row["share"] <= row["share_high"] <= 1


def test_a_text_is_one_item_and_a_single_level_has_no_transitions(session: sf.Session) -> None:
    recipe = mn.Paths("plain", order="day", length=1)
    found = mn.mine(session, recipe, "SELECT plain, day FROM notes", **COST)
    assert {row["path"] for row in found.to_dicts()} == {"flu", "cold"}
    assert len(found.transitions()) == 0


@pytest.mark.parametrize("given", [{"length": 0}, {"length": 9}, {"keep": 0}], ids=repr)
def test_settings_out_of_bounds_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(WrongUse):
        mn.Paths("ward", order="day", **given)
