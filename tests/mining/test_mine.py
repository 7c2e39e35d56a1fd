# SPDX-License-Identifier: Apache-2.0
"""Mining as a user does it: one charge, the same answer again, everything refused at no cost."""

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import mining as mn
from sfumato.errors import BudgetExceeded, MissingDeclaration, UnknownName, WrongUse
from tests.mining.clinic import COLUMNS, open_clinic, people, table_of

NOTES = "SELECT note, ward FROM notes"
COST: dict[str, Any] = {"rho": "0.5", "delta": "1e-7"}


def test_a_question_is_charged_once_and_recalled(session: sf.Session) -> None:
    recipe = mn.Terms("note", by="ward", grams=2)
    found = mn.mine(session, recipe, NOTES, **COST)
    spent = session.budget.spent
    again = mn.mine(session, recipe, NOTES, **COST)
    loaded = mn.load(session, found.charge)
    assert not found.recalled and again.recalled
    assert found.to_dicts() == again.to_dicts() == loaded.to_dicts()
    assert type(loaded) is mn.FoundTerms and loaded.notes == found.notes
    assert session.budget.spent == spent and found.cost == loaded.cost


def test_a_preview_is_free_and_states_the_cost(session: sf.Session) -> None:
    recipe = mn.Terms("note", by="ward")
    shown = mn.preview(session, recipe, NOTES, epsilon=1, delta="1e-6")
    assert [name for name, *_ in shown.releases] == ["keys of 1", "groups"]
    assert "nothing was charged" in repr(shown) and session.budget.spent == "0"
    found = mn.mine(session, recipe, NOTES, epsilon=1, delta="1e-6")
    assert found.cost == shown.cost


def test_another_setting_is_another_question(session: sf.Session) -> None:
    charges = {
        mn.mine(session, recipe, NOTES, **COST).charge
        for recipe in (mn.Terms("note"), mn.Terms("note", keep=5), mn.Terms("note", by="ward"))
    }
    assert len(charges) == 3


REFUSED = [
    (mn.Terms("note", by="plain"), "note, plain", COST, "plain.*open text"),
    (mn.Terms("note", by="scan"), "note, scan", COST, "scan.*array.*prototypes="),
    (mn.Terms("note", by="age"), "note, age", COST, "age.*5,001 values"),
    (mn.Terms("note", by="nowhere"), "note", COST, "nowhere"),
    (mn.Terms("ward"), "ward", COST, "ward.*no text"),
    (mn.Terms("note"), "note", {"rho": 1}, "delta"),
    (mn.Terms("note"), "note", {"epsilon": 1}, "delta"),
    (mn.Terms("note"), "note", {"rho": 1, "epsilon": 1, "delta": "1e-6"}, "epsilon"),
    (
        mn.Terms("note", only=["two words"]),
        "note",
        {"epsilon": 1},
        r"two words.*\['two', 'words'\]",
    ),
    (mn.Terms("note", only=["the"]), "note", {"epsilon": 1}, "the.*token"),
    (mn.Means("scan", by="note"), "scan, note", {"rho": 1}, "note.*open text.*only="),
    (mn.Paths("ward", order="plain"), "ward, plain", COST, "plain.*order"),
    (mn.Paths("age", order="day"), "age, day", COST, "age.*5,001"),
    (mn.Paths("ward", order="ward"), "ward", COST, "one column"),
    (mn.Itemsets(), "ward, age", {"epsilon": 1}, "age.*5,001.*FLOOR"),
    (mn.Itemsets(), "ward, scan", {"epsilon": 1}, "scan.*array"),
    (mn.Itemsets(), "note", {"epsilon": 1}, "delta"),
]


@pytest.mark.parametrize(("recipe", "columns", "cost", "named"), REFUSED, ids=repr)
def test_what_cannot_be_answered_is_refused_free_by_name(
    session: sf.Session, recipe: Any, columns: str, cost: Any, named: str
) -> None:
    for ask in (mn.mine, mn.preview):
        with pytest.raises(sf.SfumatoError, match=f"(?s){named}"):
            ask(session, recipe, f"SELECT {columns} FROM notes", **cost)
    assert session.budget.spent == "0"


def test_a_recipe_that_is_none_a_charge_that_is_none_and_no_limit(
    session: sf.Session, tmp_path: Path
) -> None:
    with pytest.raises(WrongUse, match=r"mn\.Terms"):
        mn.mine(session, "Terms", NOTES, rho=1)  # type: ignore[arg-type]
    with pytest.raises(UnknownName):
        mn.load(session, "0" * 32)
    counted = session.query("SELECT COUNT(*) AS n FROM notes", epsilon=1)
    with pytest.raises(WrongUse, match="no result of mining"):
        mn.load(session, counted.charge_id)
    rows = people(2)
    table = sf.Table(table_of(rows).source, unit=sf.Unit("who"), columns=COLUMNS)
    (tmp_path / "other").mkdir()
    with (
        open_clinic(tmp_path / "other", table) as unlimited,
        pytest.raises(MissingDeclaration, match="max_rows"),
    ):
        mn.mine(unlimited, mn.Terms("note"), NOTES, **COST)


def test_who_cannot_pay_is_refused_before_anything_is_read(session: sf.Session) -> None:
    with pytest.raises(BudgetExceeded):
        mn.mine(session, mn.Terms("note"), NOTES, rho=10**5, delta="1e-7")


UGLY = {
    "note": [
        "",
        None,
        "a\0b",
        "\u202etfel",
        "\U0001f469\u200d",
        "e\u0301 \u00e9",
        "x" * 10**6,
        "N",
    ],
}


def test_ugly_texts_and_no_rows_are_read(tmp_path: Path) -> None:
    rows = people(4)
    rows["note"] = UGLY["note"]
    rows["scan"] = [[1], None, [0, 1], [1, 2, 3], [], [None, 1], [0, 0], [1, 1]]
    for name, table in (("ugly", table_of(rows)), ("none", table_of(people(0)))):
        (tmp_path / name).mkdir()
        if name == "none":
            table = table_of({key: values or [] for key, values in people(1).items()})
        with open_clinic(tmp_path / name, table) as session:
            where = " WHERE day = 9" if name == "none" else ""
            cost = {"rho": "0.1", "delta": "1e-7"}
            for recipe, columns in (
                (mn.Terms("note", grams=3, by="ward"), "note, ward"),
                (mn.Paths("plain", order="day"), "plain, day"),
                (mn.Itemsets(), "plain, ward"),
                (mn.Means("scan", by="ward"), "scan, ward"),
                (mn.Means("scan", by="plain", only=["flu"]), "scan, plain"),
            ):
                paid = {"rho": "0.1"} if isinstance(recipe, mn.Means) else cost
                found = mn.mine(session, recipe, f"SELECT {columns} FROM notes{where}", **paid)
                assert len(found) <= 3 and repr(found) and found.to_arrow().num_rows == len(found)


def test_a_secret_of_one_person_is_in_no_answer(session: sf.Session) -> None:
    """One person has a number in both notes. It is shown with less than the stated delta."""
    secret = "4711081547110815"
    found = mn.mine(session, mn.Terms("note", grams=2), "SELECT note FROM notes", **COST)
    baskets = mn.mine(session, mn.Itemsets(), "SELECT note FROM notes", **COST)
    everything = repr(found) + str(found.facts) + str(baskets.facts) + found.plot().svg
    assert secret not in everything
    assert "eye" in everything
