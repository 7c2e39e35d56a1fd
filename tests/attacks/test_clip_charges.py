# SPDX-License-Identifier: Apache-2.0
"""Attacks on the price of clips: learning them, together with all else that is learnt, never costs
more than was asked; not when two ask at once, and not when the first try dies in the middle.
"""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import EngineFailed
from sfumato.query import subqueries
from tests.attacks import rich

AUTO_LIMITS = sf.Unit("person", max_rows=sf.AUTO, max_groups=sf.AUTO)
MEAN = "SELECT AVG(wealth) AS m FROM people"
TOTAL = 10**6
UNIT = Fraction(1, 10**12)
# What is learnt or answered first: clips of one column and of two, of two tables, limits, a
# sub-query with limits of its own, groups that are not public.
ASKED: Mapping[str, dict[str, object]] = {
    MEAN: {},
    "SELECT SUM(wealth + income) AS s, VARIANCE(debt) AS v FROM people": {},
    "SELECT sex, area, AVG(wealth) AS m FROM people GROUP BY ROLLUP(sex, area)": {},
    "SELECT AVG(p.wealth) AS m, SUM(h.rent) AS r FROM people p JOIN homes h ON p.person = h.person": {},
    "SELECT AVG(wealth) AS m FROM people WHERE income > (SELECT AVG(income) FROM people)": {},
    "SELECT job, AVG(wealth) AS m FROM people GROUP BY job": {"delta": "1e-9"},
    "SELECT AVG(n) AS m FROM (SELECT person, MAX(wealth) AS n FROM people GROUP BY person) AS t": {},
    "SELECT SUM(wealth) AS s FROM flat": {},
}  # fmt: skip


def learning_tables(unit: sf.Unit) -> dict[str, sf.Table]:
    """The tables with every clip to be learnt, and a column of texts."""
    tables = rich.tables(rich.data())
    found = {}
    for name, table in tables.items():
        columns: dict[str, object] = {}
        for label, kind in table.columns.items():
            columns[label] = kind
            if isinstance(kind, sf.Integer):
                columns[label] = sf.Integer(0, kind.upper_code, clip=sf.AUTO)
        source = table.source
        if name == "people":
            columns["job"] = sf.Text()
            source = source.append_column("job", source["area"])
        owner = unit if name == "people" else table.unit
        found[name] = sf.Table(source, owner, columns, public=table.public)
    return found


def opened(folder: Path, unit: sf.Unit = rich.TWICE) -> sf.Session:
    """A session over them."""
    budget = sf.Budget(TOTAL, "1e-3")
    tables = learning_tables(unit)
    return sf.connect(tables, dataset="rich", budget=budget, ledger=folder / "l.db")


def spent(session: sf.Session, price: Mapping[str, object]) -> Fraction:
    """What is spent, in the measure of the price."""
    measure = "epsilon" if "epsilon" in price else "rho"
    form = session.budget.to_json()["spent"]
    assert isinstance(form, dict)
    return Fraction(str(form[measure]))


PRICES = [{"epsilon": "0.7"}, {"epsilon": "0.123456789012"}, {"rho": "0.03"}]
# of three prices, two units and two kinds of values: each two of them together, once at least
IN_PAIRS = {0, 3, 5, 6, 8, 11}
UNITS = {"declared": rich.TWICE, "learnt": AUTO_LIMITS}


def cases():
    """Every price with every unit and every kind of values; the longer run has all three crossed."""
    for row, (price, unit, values) in enumerate(product(PRICES, UNITS, type(sf.Clipped))):
        marks = [] if row in IN_PAIRS else [pytest.mark.long]
        yield pytest.param(
            price, UNITS[unit], values, marks=marks, id=f"{price}-{unit}-{values.name}"
        )


@pytest.mark.parametrize(("price", "unit", "values"), [*cases()])
def test_no_question_is_charged_more_than_was_asked(tmp_path, price, unit, values):
    (asked,) = map(Fraction, price.values())
    with opened(tmp_path, unit) as session:
        for text, more in ASKED.items():
            before = spent(session, price)
            session.query(text, **price, **more, values=values)
            first = spent(session, price)
            # sub-queries and limits are charges of their own, each rounded up
            above = 0 if unit is rich.TWICE and "(SELECT AVG" not in text else 3 * UNIT
            assert 0 < first - before <= asked + above, text
            session.query(text, **price, **more, values=values)
            assert spent(session, price) == first, text
        assert session.verify().problems == ()


def test_shares_that_are_not_taken_off_are_noticed(tmp_path, monkeypatch):
    """The sum of the parts shows a question that keeps its whole price for itself."""
    honest = subqueries.Clips.learn

    def learn(clips: subqueries.Clips, *asked: object) -> object:
        found = honest(clips, *asked)
        clips.learnt = 0
        return found

    monkeypatch.setattr(subqueries.Clips, "learn", learn)
    with opened(tmp_path) as session:
        session.query(MEAN, epsilon=1)
        assert TOTAL - session.budget.left > 1


@pytest.mark.parametrize("epsilons", [("1", "1"), ("1", "2")], ids=str)
def test_two_who_learn_one_clip_at_once_pay_for_it_at_most_once_each(tmp_path, epsilons):
    """Two sessions over one ledger; whoever is second uses what the first has learnt."""
    barrier = threading.Barrier(2)

    def ask(epsilon: str) -> list[str]:
        with opened(tmp_path) as session:
            barrier.wait()
            answer = session.query(MEAN, epsilon=epsilon)
        return [note for note in answer.notes if "was learnt privately" in note]

    opened(tmp_path).close()
    with ThreadPoolExecutor(2) as pool:
        notes = list(pool.map(ask, epsilons))
    assert all(len(each) == 1 for each in notes)
    most = sum(map(Fraction, set(epsilons)), Fraction(0))
    # the dearer question may end first, and the other then reads its answer at no cost
    least = Fraction(max(epsilons)) * 9 / 10
    with opened(tmp_path) as session:
        assert least <= TOTAL - session.budget.left <= most
        assert session.verify().problems == ()
        # everybody who asks from now on has the same clip
        again = [session.query(MEAN, epsilon=epsilon) for epsilon in epsilons]
    assert all(answer.recalled for answer in again)


class Died(BaseException):
    """The process is gone: nothing is given back."""


@pytest.mark.parametrize("failure", [EngineFailed, Died])
def test_after_a_failure_between_clip_and_question_only_the_rest_is_paid_again(
    tmp_path, failure, monkeypatch
):
    honest = DuckDB._run
    asked = []

    def run(engine: DuckDB, *given: object, **more: object) -> object:
        asked.append(engine)
        if len(asked) == 2:
            raise failure
        return honest(engine, *given, **more)

    with opened(tmp_path) as session:
        with monkeypatch.context() as patch:
            patch.setattr(DuckDB, "_run", run)
            with pytest.raises(failure):
                session.query(MEAN, epsilon=1)
        assert len(asked) == 2
        # the clip was answered and the question was begun
        assert TOTAL - session.budget.left == 1
    with opened(tmp_path) as session:
        answer = session.query(MEAN, epsilon=1)
        assert any("was learnt privately" in note for note in answer.notes)
        assert TOTAL - session.budget.left == Fraction("1.9")
        assert session.verify().problems == ()


def test_a_failure_while_the_clip_is_learnt_gives_the_question_back(tmp_path, monkeypatch):
    def run(*given: object, **more: object) -> object:
        raise EngineFailed

    with opened(tmp_path) as session:
        with monkeypatch.context() as patch:
            patch.setattr(DuckDB, "_run", run)
            with pytest.raises(EngineFailed):
                session.query(MEAN, epsilon=1)
        assert TOTAL - session.budget.left == Fraction(1, 10)
        assert session.verify().problems == ()


def test_a_budget_that_pays_for_the_clip_alone_is_refused_whole(tmp_path):
    """What is learnt and what is asked are taken together, or nothing is."""
    tables = learning_tables(rich.TWICE)
    with sf.connect(
        tables, dataset="rich", budget=sf.Budget("0.5"), ledger=tmp_path / "l.db"
    ) as session:
        with pytest.raises(sf.SfumatoError):
            session.query(MEAN, epsilon="0.6")
        assert session.budget.spent == "0"
        session.query(MEAN, epsilon="0.5")
        assert session.budget.left == 0


def test_a_price_whose_tenth_is_below_the_unit_of_the_ledger_is_refused_before(tmp_path):
    with opened(tmp_path) as session:
        for price in ({"epsilon": "1e-12"}, {"rho": "1e-12"}):
            with pytest.raises(sf.SfumatoError):
                session.query(MEAN, **price)
        assert session.budget.spent == "0"


def test_a_wanted_error_with_a_clip_that_is_learnt_is_refused_before(tmp_path):
    with opened(tmp_path) as session:
        with pytest.raises(sf.SfumatoError, match=r"clip that is sf\.AUTO"):
            session.query("SELECT SUM(wealth) AS s FROM people", error=10**6, max_epsilon=1)
        assert session.budget.spent == "0"
