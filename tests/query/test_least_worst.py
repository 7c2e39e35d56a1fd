# SPDX-License-Identifier: Apache-2.0
"""A cost that is split for the least worst error, against previews and against other splits."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import WrongUse
from sfumato.query.least_worst import relative_error

COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
OLD = "SELECT COUNT(*) AS n FROM people WHERE age > 60"
MEAN = "SELECT AVG(age) AS a FROM people"
SUM = "SELECT SUM(age) AS s FROM people"
ALL = {"count": COUNT, "old": OLD, "mean": MEAN, "sum": SUM}
SIZES = {"count": 1000, "old": 100, "mean": 200, "sum": 500}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[sf.Session]:
    rows = pa.table({"age": [30, 40] * 50, "sex": ["F", "M"] * 50})
    people = sf.Table(rows, columns={"age": sf.Integer(0, 99), "sex": sf.Category("F", "M")})
    ledger = tmp_path / "l.db"
    with sf.connect(
        {"people": people}, dataset="d", budget=sf.Budget(9, "1e-5"), ledger=ledger
    ) as opened:
        yield opened


def worst(planned: Any, sizes: dict[str, int]) -> list[float]:
    """The relative error of each question."""
    found = [relative_error(planned[name].preview, size) for name, size in sizes.items()]
    return [float(each or 0) for each in found]


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": "0.05"}], ids=str)
def test_no_other_split_has_a_smaller_worst_error(session: sf.Session, price: Any) -> None:
    planned = session.plan(ALL, sizes=SIZES, **price)
    reached = worst(planned, SIZES)
    # errors are whole numbers of rows: 5 or 6 of 100
    assert max(reached) < 1.2 * min(reached)
    for weights in ({}, {"old": 2}, {"old": 4, "mean": 2}, {"count": 3, "sum": 3}):
        other = session.plan(ALL, weights=weights, **price)
        assert max(reached) <= max(worst(other, SIZES))


def test_a_split_by_errors_that_ignores_the_sizes_is_noticed(session: sf.Session) -> None:
    """The mutant equals absolute errors: it takes all groups to have 100 rows."""
    wrong = session.plan(ALL, sizes=dict.fromkeys(ALL, 100), epsilon=1)
    right = session.plan(ALL, sizes=SIZES, epsilon=1)
    assert max(worst(wrong, SIZES)) > 1.1 * max(worst(right, SIZES))


def test_relative_errors_follow_from_the_noise(session: sf.Session) -> None:
    """The discrete Laplace of scale 1/epsilon: P(|noise| > 29) < 5% <= P(|noise| > 28)."""
    sizes = {"old": 300}
    planned = session.plan({"old": OLD}, sizes=sizes, epsilon="0.1")
    assert relative_error(planned["old"].preview, 300) == Fraction(30, 300)


def test_the_whole_cost_is_spent_and_the_plan_is_the_same_again(session: sf.Session) -> None:
    first = session.plan(ALL, sizes=SIZES, epsilon=1)
    second = session.plan(ALL, sizes=SIZES, epsilon=1)
    assert [line.price for line in first.lines] == [line.price for line in second.lines]
    assert first.cost.epsilon is not None
    assert Fraction(999, 1000) < Fraction(first.cost.epsilon, 10**12) <= 1


@pytest.mark.parametrize(
    "given",
    [
        {"sizes": {"count": 5}, "epsilon": 1},
        {"sizes": {**SIZES, "other": 5}, "epsilon": 1},
        {"sizes": {**SIZES, "old": 0}, "epsilon": 1},
        {"sizes": {**SIZES, "old": 2.5}, "epsilon": 1},
        {"sizes": SIZES, "weights": {"old": 2}, "epsilon": 1},
        {"sizes": SIZES, "error": 5, "max_epsilon": 1},
        {"sizes": [5], "epsilon": 1},
    ],
)
def test_sizes_that_cannot_be_are_refused(session: sf.Session, given: Any) -> None:
    with pytest.raises(WrongUse):
        session.plan(ALL, **given)
    assert session.budget.spent == "0"


@pytest.mark.parametrize("price", [{"epsilon": 10**6}, {"epsilon": "0.1"}])
def test_questions_without_an_error_share_equally(session: sf.Session, price: Any) -> None:
    # a group so large, or a cost so high, that every error is 0
    sizes = {"a": 10**40, "b": 10**40}
    statements = dict.fromkeys(sizes, "SELECT COUNT(*) AS n FROM people")
    statements["b"] += " WHERE age > 30"
    plan = session.plan(statements, sizes=sizes, **price)
    assert plan["a"].price == plan["b"].price
