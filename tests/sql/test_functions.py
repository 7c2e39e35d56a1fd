# SPDX-License-Identifier: Apache-2.0
"""Only the functions of the table exist.

Every other one of the parser is refused, however it is built.
"""

import pytest
from sqlglot import exp

from sfumato.errors import Refused, UnsupportedSql
from sfumato.sql import functions, understand
from sfumato.sql.functions import FUNCTIONS

SYNTAX = {exp.Case, exp.If, exp.And, exp.Or, exp.Not, exp.Count}
# the parser has other names for what is allowed: COUNT_IF and so on are aggregates, CURRENT_DATE a
# constant
ALLOWED = set(FUNCTIONS) | SYNTAX | {exp.CurrentDate}
OTHERS = sorted(set(exp.ALL_FUNCTIONS) - ALLOWED, key=lambda kind: kind.__name__)
OPERANDS = [
    exp.column("amount"),
    exp.column("day"),
    exp.column("region"),
    exp.column("user_id"),
    exp.Literal.number(2),
]


def built(kind):
    """A node of a kind with every shape of arguments that is tried."""
    yield kind()
    for operand in OPERANDS:
        yield kind(this=operand.copy())
        yield kind(this=operand.copy(), expression=exp.column("amount"))
        yield kind(expressions=[operand.copy()])


def test_the_parser_knows_many_functions():
    assert len(OTHERS) > 350
    # a kind that is allowed does not let its sub-kinds through: the table is looked up by the very
    # kind
    assert any(issubclass(kind, tuple(FUNCTIONS)) for kind in OTHERS)


@pytest.mark.parametrize("part", range(4))
def test_no_other_function_of_a_row_is_understood(shop, part):
    for kind in OTHERS[part::4]:
        for node in built(kind):
            for select in (
                exp.select(exp.Sum(this=node.copy())).from_("events"),
                exp.select("COUNT(*)")
                .from_("events")
                .where(exp.EQ(this=node.copy(), expression=exp.Literal.number(1))),
            ):
                with pytest.raises(Refused) as refusal:
                    understand(select, shop)
                assert refusal.value.remedy or refusal.value.allowed, kind


def test_an_allowed_function_is_understood_or_refused_whatever_it_is_given(shop):
    for kind in sorted(ALLOWED, key=lambda kind: kind.__name__):
        for node in built(kind):
            for select in (
                exp.select(exp.Count(this=node.copy())).from_("events"),
                exp.select("COUNT(*)").from_("events").where(exp.Paren(this=node.copy())),
                exp.select("COUNT(*)").from_("events").group_by(node.copy()),
                exp.select("COUNT(*)").from_("events").having(exp.Paren(this=node.copy())),
            ):
                try:
                    assert understand(select, shop).raw.aggregates
                except Refused as refusal:
                    assert refusal.problem


@pytest.mark.parametrize(
    "call", ["my_udf", "error", "random", "getenv", "read_text", "hash", "uuid"]
)
def test_functions_are_refused_by_the_name_that_was_written(ask, call):
    for text in (
        f"SELECT {call}(age) FROM events",
        f"SELECT COUNT(*) FROM events WHERE {call}(age) = 1",
    ):
        with pytest.raises(UnsupportedSql) as refusal:
            ask(text)
        assert refusal.value.remedy
        assert (
            call.upper() in refusal.value.problem.upper()
            or "SELECT without" in refusal.value.problem
        )


def test_a_function_let_through_is_noticed(ask, monkeypatch):
    with pytest.raises(Refused):
        ask("SELECT SUM(SQRT(amount)) FROM events")
    monkeypatch.setitem(functions.FUNCTIONS, exp.Sqrt, functions.FUNCTIONS[exp.Abs])
    assert ask("SELECT SUM(SQRT(amount)) FROM events").raw.aggregates
