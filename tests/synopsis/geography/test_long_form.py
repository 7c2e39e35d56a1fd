# SPDX-License-Identifier: Apache-2.0
"""Tables with a row for each cell."""

import pytest

from sfumato.errors import WrongUse
from sfumato.synopsis.geography.census import census
from tests.synopsis.geography.surveys import ASKED, SPINE, opened


def test_tables_of_a_level_and_their_parts_are_shown_and_no_others(tmp_path):
    with opened(tmp_path) as session:
        found = census(session, "people", SPINE, rho=1, **ASKED)
    whole = found.table("state", ["sex", "age_group"])
    assert whole.column_names == [
        "state", "age_group", "sex", "estimate", "standard_error", "margin", "low", "high",
    ]  # fmt: skip
    assert whole["state"].to_pylist() == ["s0"] * 6 + ["s1"] * 6
    assert whole["sex"].to_pylist() == ["F", "M"] * 6
    assert whole["age_group"].to_pylist()[:6] == ["young", "young", "adult", "adult", "old", "old"]
    part = found.table("state", ["sex"])
    for state in ("s0", "s1"):
        for sex in ("F", "M"):
            wanted = _sum(whole, state=state, sex=sex)
            assert _sum(part, state=state, sex=sex) == wanted
    # fewer cells are added up for the part, and each has less error than they together
    assert part["standard_error"][0].as_py() < 3 * whole["standard_error"][0].as_py()
    for level, axes in (("county", ["age_group"]), ("state", ["job"]), ("tract", ["sex"])):
        with pytest.raises(WrongUse):
            found.table(level, axes)


def test_a_wider_confidence_is_a_wider_margin(tmp_path):
    with opened(tmp_path) as session:
        found = census(session, "people", SPINE, rho=1, **ASKED)
    margins = [found.table("county", [], level)["margin"][0].as_py() for level in ("0.5", "0.99")]
    assert margins[0] < margins[1]


def _sum(table, **where):
    return sum(
        line["estimate"]
        for line in table.to_pylist()
        if all(line[name] == value for name, value in where.items())
    )
