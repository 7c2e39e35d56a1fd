# SPDX-License-Identifier: Apache-2.0
"""Terms: counts and shares near the true ones, comparisons, declared terms."""

from typing import Any

import pytest

import sfumato as sf
from sfumato import mining as mn
from sfumato.accounting.account import account
from sfumato.errors import UnknownName, WrongUse
from sfumato.mining.recipe import Asked
from sfumato.query.pipeline import compile_rows
from sfumato.sql.row_list import row_list

NOTES = "SELECT note, ward FROM notes"
# of 3,000 people; noise of rho 5 is far below 100
COST: dict[str, Any] = {"rho": 5, "delta": "1e-7"}


def test_terms_and_terms_in_a_row_are_counted_by_people(session: sf.Session) -> None:
    found = mn.mine(session, mn.Terms("note", grams=3), "SELECT note FROM notes", **COST)
    expected = dict.fromkeys(["red", "eye", "眼睛", "red eye", "eye 眼睛", "red eye 眼睛"], 2000)
    expected |= dict.fromkeys(["left", "ear", "hurts", "left ear", "ear hurts"], 1000)
    expected["left ear hurts"] = 1000
    rows = {row["term"]: row for row in found.to_dicts()}
    assert set(rows) == set(expected)
    for term, n in expected.items():
        assert abs(rows[term]["n"] - n) < 100 and rows[term]["low"] <= rows[term]["n"]
    assert found.terms[0] in ("red", "eye", "眼睛", "red eye", "eye 眼睛", "red eye 眼睛")


def test_groups_have_shares_and_lifts_and_are_compared(session: sf.Session) -> None:
    found = mn.mine(session, mn.Terms("note", by="ward"), NOTES, **COST)
    assert abs(found.groups["eye"] - 2000) < 200 and abs(found.groups["ear"] - 3000) < 200
    by = {(row["ward"], row["term"]): row for row in found.to_dicts()}
    assert by["eye", "red"]["share"] > 0.9 and by["eye", "red"]["lift"] > 1.1
    assert abs(by["ear", "hurts"]["share"] - 1 / 3) < 0.1
    table = found.compare("eye", "ear")
    rows = {row["term"]: row for row in table.to_dicts()}
    assert rows["hurts"]["difference"] < 0 < rows["red"]["difference"]
    assert rows["hurts"]["differs"] and rows["red"]["differs"]
    for row in rows.values():
        assert row["difference_low"] <= row["difference"] <= row["difference_high"]
    assert "<svg" in table.plot().svg
    with pytest.raises(UnknownName, match="nose"):
        found.compare("eye", "nose")


def test_declared_terms_need_no_delta_and_are_all_shown(session: sf.Session) -> None:
    recipe = mn.Terms("note", by="ward", only=["red", "zebra"])
    found = mn.mine(session, recipe, NOTES, epsilon=10)
    rows = {(row["ward"], row["term"]): row["n"] for row in found.to_dicts()}
    assert len(rows) == 6 and abs(rows["eye", "red"] - 2000) < 30 and abs(rows["ear", "zebra"]) < 30
    assert found.cost.delta == "0"


def test_the_deltas_of_all_levels_add_up_to_the_stated_one(session: sf.Session) -> None:
    plan = compile_rows(row_list("SELECT note FROM notes", session.dataset), session.dataset)
    for grams in (1, 2, 4):
        asked = Asked(None, 1, "1e-6")
        task = mn.Terms("note", grams=grams).planned(plan, asked)
        spent = account(task.event).delta
        assert 0.2e-6 < spent <= 1e-6
        assert len(getattr(task.event, "events", [task.event])) == grams


@pytest.mark.parametrize(
    "given",
    [{"keep": 0}, {"keep": True}, {"grams": 5}, {"only": []}, {"only": ["a", "a"]}, {"only": "a"},
     {"only": [1]}, {"only": 3}, {"only": ["a"], "grams": 2}],
    ids=repr,
)  # fmt: skip
def test_settings_out_of_bounds_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(WrongUse):
        mn.Terms("note", **given)


def test_terms_without_groups_are_not_compared(session: sf.Session) -> None:
    found = mn.mine(session, mn.Terms("note"), "SELECT note FROM notes", **COST)
    with pytest.raises(WrongUse, match="by="):
        found.compare("eye", "ear")  # type: ignore[attr-defined]


def test_a_group_column_with_the_name_of_another_column_is_told_apart(session: sf.Session) -> None:
    statement = "SELECT note, ward AS term FROM notes"
    found = mn.mine(session, mn.Terms("note", by="term"), statement, **COST)
    assert found.columns[:3] == ("term_", "term", "n")
    assert {row["term_"] for row in found.to_dicts()} == {"eye", "ear"}
    assert "red" in found.terms and "<svg" in found.plot().svg
