# SPDX-License-Identifier: Apache-2.0
"""What comes first: sub-queries and learnt limits are rehearsed for free, then charged."""

import datetime
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidNumber, MissingDeclaration, Refused, WrongUse
from sfumato.query.choose import plan_for_price
from sfumato.query.price import price
from sfumato.query.subqueries import Rehearsal, Resolver, Step, previewed, stand_in
from sfumato.sql.lower import understand
from tests.contracts.people import EXACTLY, dataset, session

ABOVE = "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)"
DATASET = dataset()


def rehearsed(sql: str) -> tuple[Step, Rehearsal]:
    """A question with stand-ins."""
    rehearsal = Rehearsal(lambda step: plan_for_price(step.question, step.dataset, step.price))
    whole = price(epsilon=1, delta="1e-7") if "job" in sql else price(epsilon=1)
    return Resolver(sql, None, whole, DATASET).resolve(rehearsal), rehearsal


def test_the_price_is_shared_among_a_question_and_its_sub_queries() -> None:
    step, first = rehearsed(ABOVE.replace("age > (", "age > (SELECT AVG(hours) FROM people) + ("))
    third = Fraction(333333333333, 10**12)
    assert step.price.epsilon == third
    assert [inner.price.epsilon for inner, _ in first.plans] == [third] * 2


def test_a_question_with_two_sub_queries_spends_at_most_what_is_stated(tmp_path: Path) -> None:
    sql = ABOVE.replace("age > (", "age > (SELECT AVG(hours) FROM people) + (")
    with session(tmp_path) as opened:
        opened.query(sql, epsilon="0.1")
        # 0.100000000002 if each third were rounded up
        assert opened.budget.spent == "0.099999999999"
    least = tmp_path / "least"
    least.mkdir()
    with session(least) as opened:
        with pytest.raises(InvalidNumber, match="shared among the parts"):
            opened.query(sql, epsilon="1e-12")
        assert opened.budget.spent == "0"


def test_a_delta_goes_to_the_question_that_spends_it() -> None:
    step, first = rehearsed(f"{ABOVE} GROUP BY job")
    assert step.price.delta == Fraction(1, 10**7)
    assert [inner.price.delta for inner, _ in first.plans] == [None]


def test_a_stand_in_is_of_the_kind_of_the_answer() -> None:
    assert stand_in(understand("SELECT AVG(age) FROM people", DATASET)) == 1
    assert stand_in(understand("SELECT MAX(born) FROM people", DATASET)) == datetime.date(
        1960, 1, 1
    )
    rehearsed("SELECT COUNT(*) FROM people WHERE born > (SELECT MEDIAN(born) FROM people)")


def test_the_inner_answer_is_used_as_if_it_were_typed(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        answer = opened.query(ABOVE, epsilon=2 * EXACTLY)
        # the mean age is 29.5
        assert answer.rows == [[20]]
        (note,) = answer.notes
        assert note.startswith("SELECT AVG(age) FROM people = 29.5 was answered first (charge ")
        assert opened.budget.spent == str(2 * EXACTLY)
        assert opened.query(ABOVE, epsilon=2 * EXACTLY).bytes == answer.bytes
        assert opened.budget.spent == str(2 * EXACTLY)
        # the inner one alone is stored
        assert opened.query("SELECT AVG(age) FROM people", epsilon=EXACTLY).charge_id[:12] in note


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        (f"{ABOVE} GROUP BY job", {"epsilon": 1}),
        (f"{ABOVE} GROUP BY nothing", {"epsilon": 1}),
        (f"{ABOVE} AND job > 3", {"epsilon": 1}),
        (ABOVE, {"epsilon": 1, "delta": "1e-7"}),
        (ABOVE, {"error": 5, "max_epsilon": 1}),
        (ABOVE, {"epsilon": 3}),
        (ABOVE, {"rho": 1}),
    ],
)
def test_what_will_be_refused_is_refused_before_anything_is_charged(
    tmp_path: Path, sql: str, asked: dict[str, object]
) -> None:
    with session(tmp_path, budget=(2, 0)) as opened:
        with pytest.raises((Refused, WrongUse)):
            opened.query(sql, **asked)
        assert opened.budget.spent == "0"


def test_a_budget_for_the_first_part_alone_pays_for_nothing(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1, 0)) as opened:
        with pytest.raises(BudgetExceeded, match=r"costs epsilon 1\.2"):
            opened.query(ABOVE, epsilon="1.2")
        assert opened.budget.spent == "0"
        # what is stored already is not paid again
        opened.query("SELECT AVG(age) FROM people", epsilon="0.5")
        opened.query(ABOVE, epsilon=1)
        assert opened.budget.spent == "1"


def test_a_sub_query_that_stands_twice_is_paid_and_told_once(tmp_path: Path) -> None:
    twice = f"{ABOVE} AND hours > (SELECT AVG(age) FROM people) - 40"
    with session(tmp_path, budget=("0.7", 0)) as opened:
        # a third each: of 0.9 the two that there are cost 0.6
        answer = opened.query(twice, epsilon="0.9")
        assert opened.budget.spent == "0.6"
        assert len([note for note in answer.notes if "was answered first" in note]) == 1
        assert answer.cost.epsilon == "0.3"


def test_a_number_that_turns_out_too_large_is_refused_and_stays_paid(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        with pytest.raises(Refused, match="62 bits"):
            opened.query(
                "SELECT SUM(age + (SELECT SUM(age) * 1e18 FROM people)) AS s FROM people",
                epsilon=2 * EXACTLY,
            )
        assert opened.budget.spent == str(EXACTLY)


def test_a_preview_says_that_the_number_is_not_known(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        preview = opened.preview(ABOVE, epsilon=1)
        assert preview.planned.notes == (
            "The answer of a sub-query is not known yet: taken as 1 here; its cost is shared.",
        )
        assert preview.cost.epsilon == "0.5"
        assert opened.budget.spent == "0"


def test_a_limit_to_be_learnt_has_no_preview() -> None:
    declared = dataset(unit=sf.Unit("person", max_rows=sf.AUTO))
    question = Resolver("SELECT COUNT(*) FROM people", None, price(epsilon=1), declared)
    with pytest.raises(MissingDeclaration, match=r"sf\.AUTO"):
        question.resolve(previewed)


def test_a_question_whose_sub_queries_are_paid_is_resolved_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = []
    honest = Resolver.resolve

    def noted(question: Resolver, *rest: object, **more: object) -> Step:
        passes.append(rest)
        return honest(question, *rest, **more)

    monkeypatch.setattr(Resolver, "resolve", noted)
    with session(tmp_path) as opened:
        opened.query("SELECT COUNT(*) AS n FROM people", epsilon=1)
        assert len(passes) == 1
        opened.query("SELECT AVG(age) FROM people", epsilon=1)
        passes.clear()
        answer = opened.query(ABOVE, epsilon=2)
        assert len(passes) == 1
        assert "was answered first" in answer.notes[0]
