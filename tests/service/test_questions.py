# SPDX-License-Identifier: Apache-2.0
"""Bodies become the arguments of a session; numbers keep their digits."""

from decimal import Decimal

import pytest

import sfumato as sf
from sfumato.errors import WrongUse
from sfumato.service.questions import (
    arguments_of,
    cells_of,
    cost_arguments_of,
    require_number,
    require_statements,
    time_limit_of,
)


def test_a_question_keeps_its_digits() -> None:
    form = {"sql": "s", "epsilon": "0.10", "delta": Decimal("1e-7"), "purpose": "study",
            "parameters": {"a": 1, "b": "x"}, "interval": True, "rho": None,
            "error": {"on_average": Decimal("2.5")}, "values": "clipped"}  # fmt: skip
    assert arguments_of(form) == {
        "sql": "s", "epsilon": "0.10", "delta": Decimal("1e-7"), "parameters": {"a": 1, "b": "x"},
        "interval": True, "error": sf.OnAverage(Decimal("2.5")), "values": sf.Clipped,
    }  # fmt: skip
    assert "values" not in arguments_of({"sql": "s", "values": "table"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"sql": 1},
        {},
        {"sql": "s", "epsilon": True},
        {"sql": "s", "epsilon": [1]},
        {"sql": "s", "error": {"on_average": True}},
        {"sql": "s", "error": {"average": 1}},
        {"sql": "s", "interval": "yes"},
        {"sql": "s", "values": "all"},
        {"sql": "s", "parameters": "x"},
        {"sql": "s", "parameters": [[1]]},
    ],
)
def test_a_field_of_another_type_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(WrongUse):
        arguments_of(wrong)


def test_time_limits_and_numbers() -> None:
    assert time_limit_of({}) is None and time_limit_of({"time_limit": Decimal("0.5")}) == 0.5
    assert require_number("epsilon", 1) == 1
    for wrong in ("1", True, []):
        with pytest.raises(WrongUse):
            time_limit_of({"time_limit": wrong})


def test_a_cost_keeps_its_digits() -> None:
    form = {"rho": Decimal("0.10"), "error": {"on_average": 3}, "epsilon": None, "table": "t"}
    assert cost_arguments_of(form) == {"rho": Decimal("0.10"), "error": sf.OnAverage(3)}
    for wrong in ({"epsilon": True}, {"delta": []}, {"error": {}}):
        with pytest.raises(WrongUse):
            cost_arguments_of(wrong)


def test_sets_of_columns_are_lists_of_names() -> None:
    assert cells_of({"table": "t", "cliques": [["a", "b"], []]}) == ("t", [["a", "b"], []])
    for wrong in (None, "a", [1], [["a", 1]], ["ab"], {"a": 1}):
        with pytest.raises(WrongUse):
            cells_of({"table": "t", "cliques": wrong})
    with pytest.raises(WrongUse):
        cells_of({"table": 1, "cliques": []})


def test_questions_have_names() -> None:
    assert require_statements({"a": "SELECT 1"}) == {"a": "SELECT 1"}
    many = {str(number): "SELECT 1" for number in range(101)}
    for wrong in (None, {}, [], ["SELECT 1"], {"a": 1}, many):
        with pytest.raises(WrongUse):
            require_statements(wrong)
