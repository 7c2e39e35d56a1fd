# SPDX-License-Identifier: Apache-2.0
"""Expressions in SQL mean what they mean; each way in which DuckDB differs is noticed."""

import duckdb
import pytest

import sfumato as sf
from sfumato.engines import expression, relation
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.expression import alias, truth, typed, value
from sfumato.engines.value_sql import stored
from sfumato.errors import EngineFailed
from sfumato.metadata.column import Column, Integer, Text
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    Estimate,
    Extreme,
    Field,
    Key,
    Not,
    Operation,
)
from sfumato.plan.value import Value
from tests.contracts import conformance
from tests.contracts.labels import label
from tests.contracts.verbatim import Verbatim

A, T = Field(Column("a", Integer(-7, 7))), Field(Column("t", Text()))


def shown(expression):
    """The DuckDB text of an expression."""
    return printed(value(expression))


def test_an_expression_means_what_evaluate_says(suite):
    # node by node over whole domains in the suite; here one of every kind at once
    every = Extreme(
        True,
        (
            Arithmetic(Operation.MULTIPLY, A, A),
            Case(((Compare(Comparison.LT, A, Constant(0)), A),), A),
        ),
    )
    suite.agree({"every": every}, (A.column,), [(code,) for code in (*range(-7, 8), None)])


def test_no_row_can_make_an_expression_fail(suite):
    suite.test_an_expression_of_the_widest_codes_means_what_evaluate_says()


def _bare(word):
    def bare(node):
        operands = ", ".join(shown(operand) for operand in node.operands)
        return Verbatim(f"{word[0 if node.greatest else 1]}({operands})")

    return bare


MUTANTS = {
    "GREATEST that skips NULL": ("_extreme", _bare(("greatest", "least"))),
    "GREATEST for LEAST": ("_extreme", _bare(("greatest", "greatest"))),
    "truncation for floor": (
        "_floor_divide",
        lambda operand, divisor: Verbatim(f"({shown(operand)} // {min(divisor, 2**62)})"),
    ),
    "division by zero": ("_nonzero_divisor", value),
    "a table from its end": (
        "_lookup",
        lambda operand, first, table: Verbatim(
            f"([{', '.join(str(code or 'NULL') for code in table)}]::BIGINT[])[{shown(operand)} - {first} + 1]"
        ),
    ),
    "a test for its branch": (
        "_case_or_coalesce",
        lambda node, inner: inner(node.otherwise if isinstance(node, Case) else node.operands[0]),
    ),
    "a member of NULL": (
        "_member_test",
        lambda operand, values: Verbatim(
            f"({shown(operand)} IS NOT NULL AND {shown(operand)} IN (-7, 0, 3))"
        ),
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_expression_is_noticed(suite, monkeypatch, mutant):
    monkeypatch.setattr(expression, *MUTANTS[mutant])
    with pytest.raises((AssertionError, EngineFailed)):
        suite.test_an_expression_means_what_evaluate_says()
        suite.test_a_test_means_what_evaluate_says()


def test_a_pattern_with_an_escape_is_noticed(suite, monkeypatch):
    written = expression.truth

    def escaped(node):
        text = printed(written(node))
        if "LIKE" not in text:
            return written(node)
        return Verbatim(text.removesuffix(")") + " ESCAPE '\\')")

    monkeypatch.setattr(expression, "truth", escaped)
    with pytest.raises((AssertionError, EngineFailed)):
        suite.test_a_pattern_means_what_evaluate_says()


def test_a_day_in_another_week_is_noticed(suite, monkeypatch):
    honest = expression._date_of_code
    monkeypatch.setattr(
        expression, "_date_of_code", lambda operand: Verbatim(f"({printed(honest(operand))} + 1)")
    )
    with pytest.raises(AssertionError):
        suite.test_a_day_means_what_evaluate_says()


def test_operands_that_are_written_twice_are_noticed(suite, monkeypatch):
    deep = A
    for _ in range(12):
        deep = Extreme(True, (Coalesce((deep, A)), Constant(-7)))
    assert len(shown(deep)) < 2_000
    asked_twice = "(CASE WHEN {0} IS NOT NULL THEN greatest({0}, -7) END)"
    monkeypatch.setattr(
        expression,
        "_extreme",
        lambda node: Verbatim(asked_twice.format(shown(node.operands[0]))),
    )
    assert len(shown(deep)) > 20_000


@pytest.mark.parametrize(
    ("write", "wrong"),
    [
        (truth, A), (truth, Constant(1)), (truth, And((A,))), (truth, Not(A)), (truth, Key(0)),
        (value, Key(0)), (value, Estimate(0)), (value, Compare(Comparison.EQ, A, A)), (value, Constant(True)),
        (value, Arithmetic(Operation.DIVIDE, A, A)), (value, Arithmetic(Operation.ADD, A, T)), (value, Coalesce((A, T))),
        (truth, Compare(Comparison.EQ, A, Compare(Comparison.EQ, A, A))),
    ],
    ids=label,
)  # fmt: skip
def test_what_has_no_meaning_over_a_row_is_refused(write, wrong):
    with pytest.raises(TypeError):
        write(wrong)


def test_what_is_always_null_takes_the_type_that_is_declared():
    nothing = Constant(None)
    found = [typed(Value("v", kind, nothing)) for kind in (Text(), sf.Integer(0, 1))]
    types = [
        duckdb.connect().execute(f"SELECT typeof({printed(each)})").fetchone()[0] for each in found
    ]
    assert types == ["VARCHAR", "BIGINT"]


def test_names_that_differ_in_case_stay_apart():
    names = ["a", "A", "a^1", "A^1", "a^", "aB", "AB", "Ab", "É", "é"]
    lowered = {alias(Column(name, Text())).name.lower() for name in names}
    assert len(lowered) == len(names)


def test_names_without_their_case_are_noticed(monkeypatch):
    assert not conformance.differs(DuckDB, "names that differ in case")
    for module in (expression, relation):
        monkeypatch.setattr(module, "alias", lambda column: stored(f"c_{column.name}"))
    assert conformance.differs(DuckDB, "names that differ in case")
