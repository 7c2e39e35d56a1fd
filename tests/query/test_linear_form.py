# SPDX-License-Identifier: Apache-2.0
"""The error of linear expressions, against the interval of the expression itself."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.metadata.dataset import Dataset
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Arithmetic, Constant, Estimate, Operation, Scalar
from sfumato.query import linear_form as module
from sfumato.query.linear_form import LinearForm, linear_form
from sfumato.sql.lower import understand
from tests.contracts.people import dataset

DATA: Dataset = dataset()


def column(sql: str) -> Scalar:
    """The expression of a column of a statement."""
    return understand(f"SELECT {sql} AS r FROM people", DATA).output.items[0].expression


@pytest.mark.parametrize(
    ("sql", "weights", "slack", "offset"),
    [
        ("COUNT(*)", ["1"], 0, False),
        ("2 * COUNT(*)", ["2"], 0, False),
        ("COUNT(*) / 4", ["1/4"], 0, False),
        ("-COUNT(*)", ["1"], 0, False),
        ("100 * AVG(age) - 3", ["100"], 0, True),
        ("SUM(age) - 2 * COUNT(*)", ["1", "2"], 0, False),
        ("COUNT(*) + COUNT(*)", ["2"], 0, False),
        ("COUNT(*) * (7 - 4)", ["3"], 0, False),
        ("ROUND(100 * AVG(age), 1)", ["100"], "1/10", False),
        ("ROUND(AVG(age))", ["1"], 1, False),
        ("FLOOR(COUNT(*) / 2)", ["1/2"], 1, False),
    ],
)
def test_the_weights_of_a_linear_expression(
    sql: str, weights: list[str], slack: object, offset: bool
) -> None:
    form = linear_form(column(sql))
    assert form is not None
    assert sorted(form.weights.values()) == sorted(map(Fraction, weights))
    assert (form.slack, form.has_offset) == (Fraction(slack), offset)


@pytest.mark.parametrize(
    "sql",
    [
        "COUNT(*) * COUNT(*)",
        "SUM(age) / COUNT(*)",
        "1 / COUNT(*)",
        "COUNT(*) / (1 - 1)",
        "GREATEST(COUNT(*), 0)",
        "CASE WHEN COUNT(*) > 0 THEN COUNT(*) + 100 ELSE COUNT(*) END",
        "CASE WHEN COUNT(*) >= 0 THEN COUNT(*) ELSE -COUNT(*) END",
        "NULLIF(COUNT(*), 0)",
    ],
)
def test_what_is_not_linear_has_no_form(sql: str) -> None:
    assert linear_form(column(sql)) is None


numbers = st.fractions(-9, 9, max_denominator=8)


@st.composite
def linear(draw: st.DrawFn, depth: int = 3) -> Scalar:
    """A linear expression of three estimates."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.builds(Estimate, st.integers(0, 2)))
    inner = draw(linear(depth - 1))
    by_constant = [Operation.MULTIPLY, Operation.DIVIDE]
    if draw(st.booleans()):
        factor = draw(numbers.filter(bool))
        return Arithmetic(draw(st.sampled_from(by_constant)), inner, Constant(factor))
    other = draw(linear(depth - 1) | st.builds(Constant, numbers))
    return Arithmetic(draw(st.sampled_from([Operation.ADD, Operation.SUBTRACT])), inner, other)


def largest_move(expression: Scalar, halves: list[Fraction]) -> Fraction:
    """The largest change of an expression if estimate k moves by at most halves[k], by corners."""
    start = evaluate(expression, lambda leaf: Fraction(0))
    moves = []
    for corner in range(8):
        ends = [half if corner >> k & 1 else -half for k, half in enumerate(halves)]
        moves.append(abs(evaluate(expression, lambda leaf, at=ends: at[leaf.index]) - start))
    return max(moves)


@given(linear(), st.lists(st.fractions(0, 9, max_denominator=4), min_size=3, max_size=3))
def test_no_move_of_the_estimates_goes_beyond_the_half_width(
    expression: Scalar, halves: list[Fraction]
) -> None:
    form = linear_form(expression)
    assert form is not None
    by_estimate = {Estimate(place): half for place, half in enumerate(halves)}
    assert largest_move(expression, halves) <= form.half_width(by_estimate)


def test_a_form_that_forgets_a_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.LinearForm, "_times", lambda form, factor: form)
    form = linear_form(column("100 * AVG(age)"))
    assert form == LinearForm({Estimate(0): Fraction(1)})
    assert largest_move(column("100 * AVG(age)"), [Fraction(1)] * 3) > form.half_width(
        {Estimate(0): Fraction(1)}
    )
