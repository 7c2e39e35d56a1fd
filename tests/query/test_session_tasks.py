# SPDX-License-Identifier: Apache-2.0
"""Tasks asked of a session: stored once, priced free, and told which charge paid."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import (
    BudgetExceeded,
    Cancelled,
    EngineFailed,
    KeyUsed,
    LedgerUnavailable,
    UnknownName,
    WrongUse,
)
from sfumato.privacy.event import Composed, Repeated
from sfumato.query.curator import Curator
from tests.contracts.people import session
from tests.contracts.tasks import Probe, adding, cells, measuring, plan_of


def numbers(curator: Curator) -> bytes:
    return b"%d %d" % curator.measure(cells(plan_of()), adding(plan_of()))


def test_a_task_is_stored_once_and_read_again_for_free(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        first, again = opened.ask(measuring(numbers)), opened.ask(measuring(numbers))
        assert again == replace(first, recalled=True)
        assert opened.budget.spent == "1"
        assert opened.verify().charges == 1
    with session(tmp_path) as later:
        assert later.ask(measuring(numbers)).body == first.body


def test_a_task_and_a_question_in_sql_share_one_account(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        opened.ask(measuring(numbers))
        answer = opened.query("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=2)
        assert opened.budget.spent == "3"
        assert answer.charge_id != opened.ask(measuring(numbers)).charge


def test_another_analyst_pays_for_the_same_task(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        first = opened.ask(measuring(numbers))
        other = opened.asking_as("ann").ask(measuring(numbers))
        assert other.charge != first.charge
        # the same analyst for another purpose is given the bytes, and that purpose pays
        shared = opened.asking_as("ann", "research").ask(measuring(numbers))
        assert (shared.body, shared.recalled) == (other.body, True)
        assert shared.charge not in (first.charge, other.charge)
        assert opened.budget.spent == "2"


def test_a_stored_answer_is_found_by_its_charge(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        first = opened.ask(measuring(numbers))
        assert opened.stored(first.charge) == replace(first, recalled=True)
        assert opened.budget.spent == "1"
        for charge in ("", "another", 3):
            with pytest.raises(UnknownName):
                opened.stored(charge)  # type: ignore[arg-type]
        with pytest.raises(UnknownName):
            opened.asking_as("ann").stored(first.charge)


def test_a_key_belongs_to_one_task(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        first = opened.ask(measuring(numbers), key="mine")
        assert opened.ask(measuring(numbers), key="mine").charge == first.charge
        with pytest.raises(KeyUsed):
            opened.ask(measuring(numbers, form="another"), key="mine")


def test_the_price_of_a_task_is_what_it_is_charged(tmp_path: Path) -> None:
    plan = plan_of()
    one = adding(plan, Fraction(1, 3)).event(plan.parts[0].distance)
    task = Probe(plan, Composed((one, Repeated(one, 2))), numbers)
    with session(tmp_path) as opened:
        cost = opened.price(task)
        assert (cost.epsilon, cost.delta, opened.budget.spent) == ("1", "0", "0")
        (item,) = cost.items
        assert (item["release"], item["mechanism"]) == ("probe, 3 times", "discrete Laplace")
        with pytest.raises(EngineFailed):
            opened.ask(task)  # its steps are of a third each
        assert opened.budget.spent == "1"


def test_a_task_beyond_the_budget_is_refused_free(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1,)) as opened:
        with pytest.raises(BudgetExceeded, match="epsilon=1"):
            opened.ask(measuring(numbers, times=2))
        assert opened.budget.spent == "0"


def test_a_stopped_task_costs_nothing_and_a_closed_session_answers_none(tmp_path: Path) -> None:
    stop = sf.Stop()
    stop.stop()
    with session(tmp_path) as opened:
        with pytest.raises(Cancelled):
            opened.ask(measuring(numbers), stop=stop)
        assert opened.budget.spent == "0"
    for call in (opened.ask, opened.price):
        with pytest.raises(LedgerUnavailable):
            call(measuring(numbers))


@pytest.mark.parametrize(
    "task",
    [None, "SELECT COUNT(*) FROM people", measuring, object()],
    ids=lambda each: type(each).__name__,
)
def test_what_is_no_task_is_refused_free(tmp_path: Path, task: object) -> None:
    with session(tmp_path) as opened:
        for call in (opened.ask, opened.price):
            with pytest.raises(WrongUse, match="no task"):
                call(task)
        assert opened.budget.spent == "0"
