# SPDX-License-Identifier: Apache-2.0
"""Expressions of a row: what is a test, what is a number, and choices of one kind."""

from fractions import Fraction

import pytest

from sfumato.errors import MissingDeclaration, UnsupportedSql
from sfumato.metadata.column import Category, Column, Date, Integer, Real
from sfumato.plan.scalar import And, Case, Coalesce, Constant, Extreme, Field, IsNull, Member, Not
from sfumato.sql.row_expressions import counted, kept, unified
from sfumato.sql.typed import Null, Number, number, text
from tests.sql.conftest import EVENTS

AGE, REGION, SMOKER = (Field(Column(name, EVENTS[name])) for name in ("age", "region", "smoker"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CASE WHEN smoker THEN 1 ELSE 0.5 END", Real("0.5", 1, step="0.5")),
        ("CASE WHEN smoker THEN age ELSE 30 END", Integer(10, 30)),
        ("CASE WHEN smoker THEN day ELSE '2025-01-01' END", Date("2024-01-01", "2025-01-01")),
        ("CASE WHEN smoker THEN region ELSE 'none' END", Category("R01", "R02", "R03", "none")),
        ("CASE region WHEN 'R01' THEN 'one' WHEN 'R02' THEN 'two' END", Category("one", "two")),
        ("COALESCE(age, 0)", Integer(0, 20)),
        ("LEAST(age, 12)", Integer(10, 12)),
        ("GREATEST(day, DATE '2024-06-01')", Date("2024-06-01", "2024-12-31")),
        ("NULLIF(age, 10)", Integer(10, 20)),
        ("age - 10", Integer(0, 10)),
        ("amount / 4", Real(0, 50, step="0.125")),
    ],
)
def test_the_range_of_a_choice_is_the_hull_of_its_branches(value, text, kind):
    assert value(text).type == kind


def test_a_case_is_the_first_branch_that_is_true(value):
    assert value("CASE WHEN smoker THEN 1 END").expression == Case(
        ((Member(SMOKER, (1,)), Constant(1)),), Constant(None)
    )
    assert (
        value("IF(smoker, 1, 2)").expression
        == value("CASE WHEN smoker THEN 1 ELSE 2 END").expression
    )
    assert value("COALESCE(region, 'R02')").expression == Coalesce((REGION, Constant(1)))
    assert value("LEAST(age, 12, 11)").expression == Extreme(
        greatest=False, operands=(AGE, Constant(12), Constant(11))
    )


def test_null_is_a_value_of_every_kind_of_choice():
    wrap, codes = unified([Null(), number(Fraction(1, 2)), number(2)])
    assert codes == [Constant(None), Constant(1), Constant(4)]
    assert wrap(AGE) == Number(AGE, Fraction(1, 2))
    with pytest.raises(UnsupportedSql, match="nothing but NULL"):
        unified([Null(), Null()])


def test_what_is_kept_is_null_elsewhere():
    test = Member(SMOKER, (1,))
    assert kept(number(3), test).expression == Case(((test, Constant(3)),), Constant(None))
    assert kept(number(3), None) == number(3)
    both = And((test, Not(IsNull(AGE))))
    assert counted(Number(AGE, Fraction(1)), test).expression == Case(
        ((both, Constant(1)),), Constant(None)
    )
    assert counted(text("a"), None) == text("a")


@pytest.mark.parametrize(
    ("text", "error", "word"),
    [
        ("SUM(product)", MissingDeclaration, "'product' is declared as Text"),
        ("SUM(product + 1)", MissingDeclaration, "A number needs declared bounds"),
        ("SUM(day * 2)", UnsupportedSql, "day where a number is needed"),
        ("COUNT(YEAR(age))", UnsupportedSql, "age where a date is needed"),
        ("COUNT(UPPER(age))", UnsupportedSql, "age where a text with declared values is needed"),
        ("SUM(user_id)", UnsupportedSql, "user_id names single persons"),
        ("SUM(CASE WHEN age THEN 1 END)", UnsupportedSql, "Column 'age' alone is not a test"),
        ("SUM(CASE WHEN age + 1 THEN 1 END)", UnsupportedSql, "An expression alone is not a test"),
        (
            "COUNT(CASE WHEN smoker THEN user_id ELSE user_id END)",
            UnsupportedSql,
            "user_id names single persons",
        ),
        ("COUNT(INTERVAL 3 DAY)", UnsupportedSql, "INTERVAL that is not added"),
        ("SUM(COUNT(*))", UnsupportedSql, "COUNT stands where only a row is known"),
        ("SUM(age IS 3)", UnsupportedSql, "This test"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_name(ask, text, error, word):
    with pytest.raises(error, match=word) as refusal:
        ask(f"SELECT {text} FROM events")
    assert refusal.value.remedy or refusal.value.allowed


def test_a_value_of_the_unit_is_noted_where_it_is_tested(ask):
    asked = ask("SELECT SUM(user_id = 'p1'), COUNT(*) FROM events WHERE user_id IN ('p1', 'p2')")
    assert len(asked.notes) == 1 and "user_id" in asked.notes[0] and "noise" in asked.notes[0]
    assert (
        Column("user_id", asked.raw.relation.source.columns[-1].type)
        in asked.raw.relation.source.columns
    )
    assert not ask("SELECT COUNT(DISTINCT user_id) FROM events").notes
