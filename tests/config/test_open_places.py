# SPDX-License-Identifier: Apache-2.0
"""Open places of a ``sfumato.toml`` are named, and nothing else is taken for one."""

import pytest

from sfumato.config.open_places import require_filled
from sfumato.errors import InvalidConfig


def table(**columns: object) -> dict[str, object]:
    return {"tables": {"people": {"columns": columns}}}


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"budget": {"epsilon": "?"}}, "1 place is still open:\n  budget: epsilon"),
        (table(age={"lower": 0}), "tables.people.columns.age: type"),
        (table(age={"type": "integer", "lower": "?", "upper": "?"}), "columns.age: lower, upper"),
        (table(unit={"type": "category", "values": "?"}), "tables.people.columns.unit: values"),
        ({"tables": {"people": {"unit": {"max_rows": 1}}}}, "tables.people.unit: column"),
        ({"tables": {"people": {"unit": {"column": "?"}}}}, "tables.people.unit: column"),
    ],
)
def test_an_open_place_is_named(form: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        require_filled(form)
    assert said in str(caught.value)


def test_all_open_places_are_named_and_counted() -> None:
    columns = {f"c{n}": {"lower": "?"} for n in range(30)}
    with pytest.raises(InvalidConfig, match="60 places are still open") as caught:
        require_filled(table(**columns))
    assert all(f"columns.c{n}: type, lower" in str(caught.value) for n in range(30))


@pytest.mark.parametrize(
    "column",
    [
        {"type": "integer", "lower": 0, "upper": 9, "missing": "?"},
        {"type": "category", "values": ["?"]},
        {"type": "category", "values": {"1": "?", "lower": "?"}},
        {"type": "boolean", "true": "y", "false": "?"},
    ],
)
def test_a_question_mark_of_the_data_is_no_open_place(column: dict[str, object]) -> None:
    require_filled(table(unit=column, age=column))
