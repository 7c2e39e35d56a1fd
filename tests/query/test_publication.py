# SPDX-License-Identifier: Apache-2.0
"""Publications: what is shared is paid once, nothing costs more than planned, runs are resumed."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import (
    BudgetExceeded,
    MissingDeclaration,
    UnknownName,
    UnsupportedSql,
    WrongUse,
)
from sfumato.query import publication as module
from sfumato.query.publication import Publication

COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
MEAN = "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex"
JOBS = "SELECT job, COUNT(*) AS n FROM people GROUP BY job"
NESTED = "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)"
SETS = "SELECT sex, old, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex, old)"
ALL = {
    "count": COUNT,
    "mean": MEAN,
    "jobs": JOBS,
    "nested": NESTED,
    "sets": SETS,
    "sum": "SELECT SUM(age) AS s, VARIANCE(age) AS v FROM people",
    "median": "SELECT sex, MEDIAN(age) AS m, COUNT(*) AS n FROM people GROUP BY sex",
}
UNIT = Fraction(1, 10**12)


def people() -> sf.Table:
    count = 2000
    rows = pa.table(
        {
            "age": [place % 100 for place in range(count)],
            "sex": ["FM"[place % 2] for place in range(count)],
            "old": [place % 3 == 0 for place in range(count)],
            "job": [f"job {place % 5}" for place in range(count)],
        }
    )
    columns = {
        "age": sf.Integer(0, 99),
        "sex": sf.Category("F", "M"),
        "old": sf.Boolean(),
        "job": sf.Text(),
    }
    return sf.Table(rows, columns=columns)


def opened(folder: Path, budget: sf.Budget) -> sf.Session:
    return sf.connect({"people": people()}, dataset="d", budget=budget, ledger=folder / "l.db")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[sf.Session]:
    with opened(tmp_path, sf.Budget(100, "1e-5")) as found:
        yield found


def paid(session: sf.Session, price: dict[str, Any]) -> Fraction:
    """What was spent, in the measure of a price."""
    spent = session.budget.to_json()["spent"]
    assert isinstance(spent, dict)
    return Fraction(str(spent["epsilon" if "epsilon" in price else "rho"]))


@pytest.mark.parametrize(
    "price",
    [
        {"epsilon": 1, "delta": "1e-6"},
        {"epsilon": "0.7", "delta": "1e-6", "weights": {"mean": 3, "sets": "0.1"}},
        {"rho": "0.01", "delta": "1e-6"},
    ],
    ids=str,
)
def test_questions_of_a_publication_cost_at_most_its_price_together(
    session: sf.Session, price: dict[str, Any]
) -> None:
    whole = Fraction(str(price.get("epsilon", price.get("rho"))))
    planned = session.plan(ALL, **price)
    answers = planned.run()
    assert list(answers) == list(ALL)
    cost = planned.cost.epsilon if "epsilon" in price else planned.cost.rho
    assert cost is not None
    # all but the rounding of prices and charges is spent, and no more than was planned
    assert (1 - Fraction(1, 1000)) * whole < cost * UNIT <= whole
    assert paid(session, price) <= cost * UNIT
    assert Fraction(planned.cost.delta, 10**24) <= Fraction(1, 10**6)
    assert session.verify().problems == ()


def test_what_two_questions_ask_for_is_paid_once(session: sf.Session) -> None:
    planned = session.plan({"count": COUNT, "mean": MEAN}, epsilon=1)
    # half of the mean's price is for the count, so 2/3 + 1/3: each would have had 1/2 alone
    assert [line.price.epsilon for line in planned.lines] == pytest.approx([2 / 3, 2 / 3])
    assert planned["mean"].shared == ("COUNT(*)",) and planned["count"].shared == ()
    answers = planned.run()
    assert answers["mean"]["n"] == answers["count"]["n"]
    assert paid(session, {"epsilon": 1}) == planned.cost.epsilon * UNIT


def test_a_plan_that_counts_what_is_shared_twice_is_noticed(
    session: sf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant that takes every part as released before plans less than is paid."""
    monkeypatch.setattr(module, "_reusable_parts", lambda drafted, released: [0])
    planned = session.plan([COUNT, MEAN], epsilon=1)
    planned.run()
    assert planned.cost.epsilon is not None
    assert paid(session, {"epsilon": 1}) > planned.cost.epsilon * UNIT


def test_the_same_plan_again_is_free_whatever_is_stored(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"epsilon": 1, "delta": "1e-6"}
    with opened(tmp_path, sf.Budget(10, "1e-5")) as session:
        first = session.plan(ALL, **asked)
        # the process dies after some questions
        said: list[str] = []
        with pytest.raises(KeyboardInterrupt):
            first.run(lambda name, done, count: said.append(name) or _stop(done))
        assert said == list(first.turns[:3])
    with opened(tmp_path, sf.Budget(10, "1e-5")) as session:
        second = session.plan(ALL, **asked)
        assert [line.price for line in second.lines] == [line.price for line in first.lines]
        assert second.left == len(ALL) - 3 and second.turns == first.turns
        answers = second.run()
        spent = paid(session, asked)
        third = session.plan(ALL, **asked)
        assert third.left == 0 and "answered already" in repr(third)
        again = third.run()
        assert {name: answer.form for name, answer in again.items()} == {
            name: answer.form for name, answer in answers.items()
        }
        assert paid(session, asked) == spent <= 1


def _stop(done: int) -> None:
    if done == 3:
        raise KeyboardInterrupt


def test_a_publication_that_took_the_whole_budget_can_be_run_again(tmp_path: Path) -> None:
    with opened(tmp_path, sf.Budget(1)) as session:
        planned = session.plan({"count": COUNT, "nested": NESTED}, epsilon=1)
        first = planned.run()
        assert session.budget.left == 0
        again = planned.run()
        assert [one.form for one in again.values()] == [one.form for one in first.values()]


def test_an_error_is_wanted_of_each_question(session: sf.Session) -> None:
    planned = session.plan([COUNT, "SELECT COUNT(*) AS n FROM people"], error=20, max_epsilon=1)
    for answer in planned.run().values():
        assert all(line["n"]["high"] - line["n"]["low"] <= 40 for line in answer.error())
    relative = session.plan({"n": COUNT}, error=sf.OnAverage("5%"), max_epsilon=1)
    assert relative["n"].asked == {"error": sf.OnAverage("5%"), "max_epsilon": 1}


def test_what_the_account_cannot_pay_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    with opened(tmp_path, sf.Budget(1)) as session:
        planned = session.plan([COUNT, JOBS.replace("job", "old")], epsilon=2)
        with pytest.raises(BudgetExceeded, match="The publication costs epsilon 2"):
            planned.run()
        assert session.budget.spent == "0"


@pytest.mark.parametrize(
    ("questions", "price", "error"),
    [
        ({}, {"epsilon": 1}, WrongUse),
        ([], {"epsilon": 1}, WrongUse),
        (COUNT, {"epsilon": 1}, WrongUse),
        ({1: COUNT}, {"epsilon": 1}, WrongUse),
        ([COUNT], {}, WrongUse),
        ([COUNT], {"epsilon": 1, "delta": "1e-6"}, WrongUse),
        ([COUNT], {"epsilon": 1, "weights": {"2": 1}}, UnknownName),
        ([COUNT], {"error": 5, "max_epsilon": 1, "weights": {"1": 1}}, WrongUse),
        ([COUNT, "SELECT age FROM people"], {"epsilon": 1}, UnsupportedSql),
        ([COUNT, JOBS], {"epsilon": 1}, MissingDeclaration),
    ],
)
def test_what_cannot_be_planned_is_refused(
    session: sf.Session, questions: Any, price: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        session.plan(questions, **price)
    assert session.budget.spent == "0"


@given(
    names=st.lists(
        st.sampled_from([name for name in ALL if name != "jobs"]), min_size=1, max_size=5
    ),
    epsilon=st.fractions(Fraction(1, 100), 3),
    weight=st.fractions(Fraction(1, 9), 9),
)
def test_plans_of_any_questions_spend_their_price(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], epsilon: Fraction, weight: Fraction
) -> None:
    """With repeats: a question that is asked twice is paid once."""
    questions = {str(place): ALL[name] for place, name in enumerate(names)}
    with opened(tmp_path_factory.mktemp("d"), sf.Budget(100)) as session:
        planned: Publication = session.plan(questions, epsilon=epsilon, weights={"0": weight})
        assert planned.cost.epsilon is not None
        assert epsilon * (1 - Fraction(1, 1000)) < planned.cost.epsilon * UNIT <= epsilon
        planned.run()
        assert paid(session, {"epsilon": 1}) <= planned.cost.epsilon * UNIT


def test_a_refusal_names_its_question(session: sf.Session) -> None:
    for bad, price in (
        ("SELECT shoe FROM people", {"epsilon": 1}),
        ("SELECT AVG(age) AS a FROM people WHERE job = 'x'", {"error": 20, "max_epsilon": 1}),
        (COUNT, {"epsilon": 1, "weights": {"bad": "1e-30"}}),
    ):
        with pytest.raises(sf.SfumatoError, match="Question 'bad': "):
            session.plan({"good": COUNT, "bad": bad}, **price)
