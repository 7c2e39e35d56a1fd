# SPDX-License-Identifier: Apache-2.0
"""The task of a census: what it costs, what it stores, and the mutants that are stopped."""

from dataclasses import replace
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import EngineFailed, WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.query.curator import Curator
from sfumato.synopsis.geography.plan import census_plan
from sfumato.synopsis.geography.task import CensusTask
from tests.synopsis.geography.surveys import ASKED, COLUMNS, DATA, SPINE, opened


def task(**cost: object) -> CensusTask:
    return census_plan(DATA, "people", SPINE, **ASKED, **cost).task


@pytest.mark.parametrize("cost", [{"epsilon": 3}, {"rho": "0.5"}])
def test_the_whole_cost_is_charged_once(tmp_path, cost):
    planned = task(**cost)
    with opened(tmp_path) as session:
        price = session.price(planned)
        if "rho" in cost:
            assert price.rho == "0.5"
        else:
            assert price.epsilon == "3"
        stored = session.ask(planned)
        assert len(stored.body) == planned.size
        assert session.ask(task(**cost)).recalled


def test_with_hardly_any_noise_it_stores_the_tables(tmp_path):
    planned = task(rho=10**5)
    with opened(tmp_path) as session:
        noisy = planned.noisy(session.ask(planned).body)
    by_county = noisy[-1]
    assert by_county is not None and by_county.shape == (6, 2)
    assert by_county.sum() == noisy[1].sum() == 3000


def test_tables_without_a_share_are_not_measured(tmp_path):
    planned = replace(
        task(rho=1), shares=(Fraction(1, 4), Fraction(0), Fraction(1, 2), Fraction(1, 4))
    )
    assert len(planned.event.events) == 3
    with opened(tmp_path) as session:
        assert session.price(planned).rho == "1"
        noisy = planned.noisy(session.ask(planned).body)
    assert noisy[1] is None
    assert planned.precisions[1] == 0


def test_other_tables_shares_and_spines_are_other_questions():
    first = task(rho=1)
    assert first.form == task(rho=1).form
    others = [
        census_plan(DATA, "people", SPINE, tables={"state": ["sex"]}, rho=1).task,
        census_plan(DATA, "people", SPINE, tables={"county": ["sex"]}, rho=1).task,
        replace(first, shares=tuple(reversed(first.shares))),
    ]
    assert len({first.form, *(each.form for each in others)}) == 4
    assert "people down nation > state > county" in first.line


def test_shares_that_are_more_or_less_than_the_cost_are_refused():
    whole = task(rho=1)
    for shares in (
        tuple(share * 2 for share in whole.shares),
        (Fraction(0),) * len(whole.shares),
        (Fraction(2), Fraction(-1), *[Fraction(0)] * (len(whole.shares) - 2)),
    ):
        with pytest.raises(WrongUse, match="add up to 1"):
            replace(whole, shares=shares)


def test_a_split_above_the_cost_is_charged_for_what_it_is(tmp_path, monkeypatch):
    """The mutant does not check its shares; the ledger charges what is measured, not what is said."""
    monkeypatch.setattr(CensusTask, "__post_init__", lambda self: None)
    whole = task(rho=1)
    doubled = replace(whole, shares=tuple(share * 2 for share in whole.shares))
    with opened(tmp_path) as session:
        assert session.price(doubled).rho == "2"


class Unpaid(CensusTask):
    """The mutant measures the level of the nation once more, and does not charge it."""

    def run(self, curator: Curator) -> bytes:
        body = super().run(curator)
        curator.measure(self.statistics[0], self.mechanisms[0])
        return body


class Sharper(CensusTask):
    """The mutant measures with the noise of twice the cost."""

    def run(self, curator: Curator) -> bytes:
        dearer = replace(self.allowance, amount=2 * self.allowance.amount)
        return replace(self, allowance=dearer).run(curator)


@pytest.mark.parametrize("mutant", [Unpaid, Sharper])
def test_a_level_that_is_measured_and_not_charged_is_stopped(tmp_path, mutant):
    planned = task(rho=1)
    fields = (planned.population, planned.spine, planned.design, planned.shares)
    greedy = mutant(*fields, planned.allowance, planned.recodes)
    with opened(tmp_path) as session, pytest.raises(EngineFailed):
        session.ask(greedy)


def test_a_plan_of_other_declarations_and_noise_beyond_words_are_refused():
    other = {**COLUMNS, "sex": sf.Category("F", "M", "X")}
    data = Dataset("survey", {"people": sf.Table("p.csv", columns=other)})
    with pytest.raises(WrongUse, match="other declarations"):
        task(rho=1).ready(data)
    unit = sf.Unit("who", max_rows_total=2**20)
    wide = sf.Table("p.csv", unit=unit, columns={**COLUMNS, "who": sf.Text()})
    data = Dataset("survey", {"people": wide})
    planned = census_plan(data, "people", SPINE, tables={"county": ["sex"]}, epsilon="1e-12")
    with pytest.raises(WrongUse, match="2\\^56"):
        planned.of(planned.splits[0])
