# SPDX-License-Identifier: Apache-2.0
"""Itemsets: frequent sets near the true ones, rules, what is noise."""

from typing import Any

import pytest

import sfumato as sf
from sfumato import mining as mn
from sfumato.errors import SfumatoError

COST: dict[str, Any] = {"rho": 5, "delta": "1e-7"}


def test_items_of_a_text_go_together(session: sf.Session) -> None:
    found = mn.mine(session, mn.Itemsets(), "SELECT note FROM notes", **COST)
    rows = {row["items"]: row for row in found.to_dicts()}
    assert abs(rows["eye, red, 眼睛"]["n"] - 2000) < 200
    assert abs(rows["ear, left"]["support"] - 1 / 3) < 0.1
    assert "ear, eye" not in rows
    for row in rows.values():
        assert row["low"] <= row["n"] <= row["high"] and row["size"] <= 3
    assert abs(found.people[0] - 3000) < 100


def test_items_of_columns_have_their_names_and_need_no_delta(session: sf.Session) -> None:
    statement = "SELECT ward, day FROM notes"
    found = mn.mine(session, mn.Itemsets(support="0.2"), statement, epsilon=50)
    rows = {row["items"]: row["n"] for row in found.to_dicts()}
    assert abs(rows["day=1, ward=eye"] - 2000) < 50
    assert abs(rows["day=1, day=5, ward=ear, ward=eye"] - 2000) < 50
    assert found.cost.delta == "0"


def test_rules_have_intervals_and_say_what_is_noise(session: sf.Session) -> None:
    found = mn.mine(session, mn.Itemsets(size=2), "SELECT note, plain FROM notes", **COST)
    rules = {(row["antecedent"], row["consequent"]): row for row in found.rules("0.3").to_dicts()}
    sure = rules["note=red", "note=eye"]
    assert sure["confidence"] > 0.9 and sure["lift_low"] > 1 and not sure["noise"]
    # half of all people have a cold, whatever their notes
    independent = rules["note=red", "plain=cold"]
    assert independent["noise"] and independent["lift_low"] <= 1 <= independent["lift_high"]
    assert "<svg" in found.rules().plot().svg
    with pytest.raises(SfumatoError, match="confidence"):
        found.rules("1.5")


@pytest.mark.parametrize(
    "given",
    [{"size": 9}, {"size": 0}, {"keep": 0}, {"width": 0}, {"support": 0}, {"support": 2},
     {"size": 4, "keep": 3}],
    ids=repr,
)  # fmt: skip
def test_settings_out_of_bounds_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(SfumatoError):
        mn.Itemsets(**given)
