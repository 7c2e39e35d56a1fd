# SPDX-License-Identifier: Apache-2.0
"""What was asked before is found by its text, and only where planning would find the same."""

import datetime
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.query import known as room
from sfumato.query import session as asking_room
from sfumato.query.known import Known, name_of
from sfumato.query.outer import Outer
from sfumato.query.price import price
from sfumato.query.release import Asker
from sfumato.query.session import Session
from sfumato.query.statements import Statements
from tests.contracts.people import asker, dataset, session

COUNT = "SELECT COUNT(*) AS n FROM people"
OLD = "SELECT COUNT(*) AS n FROM people WHERE hours > $1"
BUDGET = sf.Budget(10, "1e-6")


def who(analyst: str = "ann") -> Asker:
    return asker(dataset(), BUDGET, analyst)


def named(
    sql: object = COUNT, parameters: object = None, analyst: str = "ann", **asked: object
) -> object:
    return name_of(sql, parameters, price(**(asked or {"epsilon": 1})), who(analyst))


OTHERS = [
    lambda: named("SELECT COUNT(*) AS n FROM people "),
    lambda: named(epsilon=2),
    lambda: named(rho=1),
    lambda: named(epsilon=1, delta="1e-7"),
    lambda: named(analyst="bob"),
    lambda: named(parameters=[1]),
]


@pytest.mark.parametrize("place", range(len(OTHERS)))
def test_whatever_an_answer_depends_on_is_in_the_name(place: int) -> None:
    assert OTHERS[place]() not in (named(), None)
    assert named() == named(epsilon="1.0")


def test_the_day_and_the_purpose_are_in_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    today = named()

    class Tomorrow:
        UTC, date = datetime.UTC, datetime.date

        class datetime:  # noqa: N801
            @staticmethod
            def now(tz: datetime.tzinfo) -> datetime.datetime:
                return datetime.datetime.now(tz) + datetime.timedelta(days=1)

    monkeypatch.setattr(room, "datetime", Tomorrow)
    assert named() not in (today, None)
    other = replace(who(), purpose="research")
    assert name_of(COUNT, None, price(epsilon=1), other) not in (named(), None)


@pytest.mark.parametrize(
    "values",
    [
        [1],
        [1.0],
        ["1"],
        [True],
        [Decimal(1)],
        [Decimal("1.0")],
        [datetime.date(2020, 1, 1)],
        {"a": 1},
        {"b": 1},
        [1, 1],
    ],
    ids=repr,
)
def test_parameters_are_the_same_only_by_kind_and_value(values: object) -> None:
    others = [
        [1],
        [1.0],
        ["1"],
        [True],
        [Decimal(1)],
        [Decimal("1.0")],
        [datetime.date(2020, 1, 1)],
        {"a": 1},
        {"b": 1},
    ]
    same = [
        each for each in [*others, [1, 1]] if named(parameters=each) == named(parameters=values)
    ]
    assert [repr(each) for each in same] == [repr(values)]


class Odd(int):
    """A number that may be anything."""


@pytest.mark.parametrize(
    "values",
    [[Odd(1)], 3, [[1]], {1.5: 1}, [datetime.datetime(2020, 1, 1)]],  # noqa: DTZ001
    ids=repr,
)
def test_what_may_be_anything_is_planned(values: object) -> None:
    assert named(parameters=values) is None


def test_a_wanted_error_and_a_tree_are_planned() -> None:
    assert named(error=10, max_epsilon=1) is None
    assert named(sql=object()) is None


def test_nothing_is_kept_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_REMEMBERED", 2)
    known, question = Known(), object.__new__(room.Asked)
    for each in range(5):
        known.keep(each, question)
        assert len(known._requests) <= 2
    known.keep(None, question)
    assert known.find(None) is None


def planned_for(asking: Session, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is planned from now on."""
    seen: list[object] = []
    honest = asking_room.Resolver

    def noted(sql: object, *rest: object) -> object:
        seen.append(sql)
        return honest(sql, *rest)

    monkeypatch.setattr(asking_room, "Resolver", noted)
    return seen


QUESTIONS = [
    (COUNT, None),
    (OLD, [3]),
    (OLD, [4]),
    ("SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)", None),
    ("SELECT sex, AVG(age) AS m FROM people GROUP BY sex", None),
    ("SELECT COUNT(*) AS n FROM people WHERE born < CURRENT_DATE", None),
]


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_what_is_remembered_is_what_planning_would_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    sql, values = QUESTIONS[place]
    with session(tmp_path) as asking:
        for other, given in QUESTIONS:
            asking.query(other, parameters=given, epsilon=1)
        name = name_of(sql, values, price(epsilon=1), asking._asker)
        found = asking._known.find(name)
        asking._known._requests.clear()
        answer = asking.query(sql, parameters=values, epsilon=1)
        spent, seen = asking.budget.spent, planned_for(asking, monkeypatch)
        again = asking.query(sql, parameters=values, epsilon=1)
        assert (again.bytes, again.recalled, seen) == (answer.bytes, True, [])
        assert asking.budget.spent == spent
        assert asking._known.find(name) == found


def test_a_memory_that_forgets_the_analyst_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_room, "name_of", lambda sql, *rest: sql)
    with session(tmp_path, analyst="ann") as asking:
        first = asking.query(COUNT, epsilon=1)
        assert asking.asking_as("bob").query(COUNT, epsilon=1).bytes == first.bytes


def test_another_analyst_pays_for_the_same_text(tmp_path: Path) -> None:
    with session(tmp_path, analyst="ann", budget=(3, 0)) as asking:
        first = asking.query(COUNT, epsilon=1)
        assert asking.asking_as("bob").query(COUNT, epsilon=1).bytes != first.bytes
        assert asking.budget.spent == "2"


def test_what_was_refused_is_planned_again(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1, 0)) as asking:
        for _ in range(2):
            with pytest.raises(sf.SfumatoError):
                asking.query(COUNT, epsilon=2)
        assert asking._known._requests == {}


def test_a_key_is_bound_by_a_remembered_question_too(tmp_path: Path) -> None:
    with session(tmp_path) as asking:
        first = asking.query(COUNT, epsilon=1)
        assert asking.query(COUNT, epsilon=1, key="k").bytes == first.bytes
        with pytest.raises(sf.SfumatoError, match="belongs to another request"):
            asking.query(OLD, parameters=[30], epsilon=1, key="k")


SHARES = "SELECT n * 1.0 / SUM(n) OVER () AS share FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t"


def test_sql_over_private_answers_is_planned_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session(tmp_path) as opened:
        first = opened.query(SHARES, epsilon=1)
        again = opened.query(SHARES, epsilon=2)
        planned: list[object] = []
        monkeypatch.setattr(
            Session, "_outer", lambda self, question, *rest: planned.append(question)
        )
        inner: list[object] = []
        monkeypatch.setattr(Statements, "answer_all", lambda *rest: inner.append(rest))
        assert opened.query(SHARES, epsilon=1).bytes == first.bytes
        assert opened.query(SHARES, epsilon=2).bytes == again.bytes != first.bytes
        assert not inner
        assert not planned and opened.budget.spent == "3"
        # another price is planned
        with pytest.raises(AttributeError):
            opened.query(SHARES, epsilon=3)
        assert len(planned) == 1


def test_callers_do_not_share_what_they_resolve() -> None:
    known, opened = Known(), named(SHARES)
    outer = Outer("", (), (), (), (), (), "", None, price(epsilon=1), "")
    assert known.outer(opened) is None
    known.keep_outer(opened, outer)
    assert known.outer(opened) == outer and known.outer(opened) is not outer
    known.keep_outer(None, outer)
    assert known.outer(None) is None
