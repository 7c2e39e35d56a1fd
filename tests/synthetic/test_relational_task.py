# SPDX-License-Identifier: Apache-2.0
"""The task of a fit of several tables: one event for all, and what is forfeited."""

import json

import numpy as np
import pytest

from sfumato.errors import EngineFailed, WrongUse
from sfumato.privacy.event import Composed
from sfumato.query.allowance import allowance
from sfumato.synthetic import relational_task
from sfumato.synthetic.fit import Options, _task
from sfumato.synthetic.relational_task import (
    ChildTask,
    Parents,
    RelationalTask,
    opened_task,
    released_of,
)
from sfumato.synthetic.unit_table import FULL
from sfumato.testing.asserts import assert_follows
from tests.synthetic.clinics import clinic, session

THREE = ["patients", "visits", "drugs"]


def task(opened, rho="0.5", **other):
    return _task(opened.dataset, THREE, allowance(rho=rho), **other)


def test_one_charge_pays_for_all_tables(tmp_path):
    with session(tmp_path) as opened:
        planned = task(opened)
        assert 0.4999 < float(opened.price(planned).rho) <= 0.5
        stored = opened.ask(planned)
        assert "rho 0.49" in repr(opened.budget) or "rho 0.5 " in repr(opened.budget)
        released = released_of(planned, stored.body)
        opened_parts = opened_task(planned, stored.body).parts
        for part, found in zip(opened_parts, released, strict=True):
            own = found.base.singles[: len(part.schema.axes)]
            assert [len(counts) for counts in own] == list(part.schema.cells)
            assert len(found.pairs) <= part.schedule.rounds
            assert len(found.checks) == part.schedule.checks
        assert len(stored.body) <= planned.size


class Uncharged(RelationalTask):
    """Reserves the parent alone, and measures the children too."""

    @property
    def event(self):
        return Composed((self.parent.event,))

    @property
    def cells(self):
        return self.parent.schema.cells


class Again(RelationalTask):
    """Measures the first child twice."""

    def run(self, curator):
        twice = (self.children[0], *self.children)
        return RelationalTask(self.parent, twice, self.rows, self.asked).run(curator)


@pytest.mark.parametrize("mutant", [Uncharged, Again])
def test_every_table_is_in_the_event(tmp_path, mutant):
    with session(tmp_path) as opened:
        one = task(opened)
        wrong = mutant(one.parent, one.children, one.rows, one.asked)
        with pytest.raises(EngineFailed):
            opened.ask(wrong)


def test_rounds_without_candidates_are_spent_and_stored_as_none(tmp_path, monkeypatch):
    with session(tmp_path) as opened:
        one = task(opened)
        monkeypatch.setattr(ChildTask, "_candidates", lambda *_: {})
        released = released_of(one, opened.ask(one).body)
        assert [len(each.pairs) for each in released][1:] == [0, 0]
        # a mutant that leaves them out is forfeited: the next table's steps come too early
        monkeypatch.setattr(relational_task, "spend", lambda *_: None)
        with pytest.raises(EngineFailed):
            opened.ask(task(opened, rho="0.4"))


def test_the_steps_depend_on_released_numbers_alone(tmp_path, monkeypatch):
    """Everything between the calls of the curator sees noisy counts and synthetic parents."""
    seen = []
    honest = ChildTask.base

    def watched(self, singles, parent):
        seen.append((singles, parent.singles))
        return honest(self, singles, parent)

    monkeypatch.setattr(ChildTask, "base", watched)
    with session(tmp_path) as opened:
        one = task(opened)
        body = opened.ask(one).body
        run = seen.copy()
        released_of(one, body)
        again = seen[len(run) :]
    for (own, parent), (stored, stored_parent) in zip(run, again, strict=True):
        for noisy, kept in ((own, stored), (parent, stored_parent)):
            assert all((one == two).all() for one, two in zip(noisy, kept, strict=True))


class Unnoised:
    """A curator that also tells the exact numbers of visits."""

    def __init__(self, curator):
        self._curator = curator
        self.charge = curator.charge
        self.select = curator.select

    def measure(self, statistic, mechanism):
        noisy = self._curator.measure(statistic, mechanism)
        if statistic.names == ("number of visits",):
            return statistic.exact(self._curator._opened)
        return noisy


class Exact(RelationalTask):
    """Releases how many patients have no visit, one and so on without noise."""

    def run(self, curator):
        return super().run(Unnoised(curator))


def off(folder, kind, fits=40):
    """What the released numbers of patients by their number of visits are off, in whole patients,
    and the cdf of the noise.
    """
    rows = clinic(200)
    held = np.bincount(rows["visits"]["pid"].to_numpy(), minlength=200).clip(max=5)
    true = np.bincount(held, minlength=7)
    drawn = []
    options = Options(columns=["patients.sex", "visits.ward"], rounds=0, check=0)
    with session(folder, rows=rows) as opened:
        for fit in range(fits):
            cost = allowance(rho=f"0.05{fit:02}")
            planned = _task(opened.dataset, ["patients", "visits"], cost, options=options)
            wrong = kind(planned.parent, planned.children, planned.rows, planned.asked)
            (first, _) = released_of(planned, opened.ask(wrong).body)
            drawn += np.floor(first.base.singles[1] - true).astype(int).tolist()
    noise = planned.parent.schedule.noises(planned.parent.schema.plan).single.noise
    return drawn, noise


def test_how_many_children_parents_have_is_released_with_noise(tmp_path):
    """Notices exact numbers."""
    drawn, noise = off(tmp_path, RelationalTask)

    def cdf(patients):
        return noise.cdf((patients + 1) * FULL - 1).upper

    def exactly(patients):
        return float(patients >= 0)

    assert_follows(drawn, cdf, notices=exactly)
    (tmp_path / "exact").mkdir()
    exact, _ = off(tmp_path / "exact", Exact)
    assert set(exact) == {0}
    with pytest.raises(AssertionError, match="from the stated law"):
        assert_follows(exact, cdf, notices=exactly)


def test_a_stored_fit_of_another_version_is_refused(tmp_path):
    with session(tmp_path) as opened:
        one = task(opened)
        line, _, rest = opened.ask(one).body.partition(b"\n")
        older = json.dumps({**json.loads(line), "format": 0}).encode() + b"\n" + rest
        with pytest.raises(WrongUse, match="format 0"):
            released_of(one, older)
    (tmp_path / "other").mkdir()
    with session(tmp_path / "other", most=4) as other, pytest.raises(WrongUse):
        one.ready(other.dataset)


def test_of_many_rows_a_few_parents_stand_for_all():
    """10,000 parents of 40 rows: a quarter of them, each four times."""
    parents = Parents(np.arange(10_000)[:, None], 2)
    few = parents.fewer(np.full(10_000, 40))
    assert (len(few.cells), few.each) == (2500, 8)
    assert parents.fewer(np.full(10_000, 10)) is parents
    # whatever the limit is, one is left
    assert len(Parents(np.zeros((1, 1), np.int64), 1).fewer(np.array([200_000])).cells) == 1
