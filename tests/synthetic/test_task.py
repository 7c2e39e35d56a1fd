# SPDX-License-Identifier: Apache-2.0
"""The task of a fit: its cost, its form, and what is forfeited."""

import json
from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.errors import EngineFailed, WrongUse
from sfumato.query.allowance import allowance
from sfumato.synthetic import select
from sfumato.synthetic.fit import _fit_task
from sfumato.synthetic.fitting import Fitting
from sfumato.synthetic.task import FitTask, Released
from tests.synthetic.towns import session

COST = allowance(rho="0.5")


def task(opened, **other):
    return _fit_task(opened.dataset, "people", COST, **other)


def test_fits_that_differ_in_anything_have_different_forms(tmp_path):
    with session(tmp_path) as opened:
        one = task(opened)
        others = [
            task(opened, options=sf.synthetic.Options(columns=["age", "job"])),
            task(opened, options=sf.synthetic.Options(bins={"pay": 10})),
            task(opened, options=sf.synthetic.Options(rounds=2)),
            task(opened, options=sf.synthetic.Options(check=0)),
            task(opened, workload={"age": 3}),
            task(opened, constraints=[sf.synthetic.require("age > 0")]),
            _fit_task(opened.dataset, "people", allowance(rho="0.6")),
        ]
        forms = {each.form for each in (one, *others)}
        assert len(forms) == 8 and one.form == task(opened).form


def test_the_charge_is_the_whole_event(tmp_path):
    with session(tmp_path) as opened:
        planned = task(opened)
        assert 0.4999 < float(opened.price(planned).rho) <= 0.5
        stored = opened.ask(planned)
        released = Released.of(planned, stored.body)
        counted = [len(counts) for counts in released.base.singles]
        # the bins of pay are found by the charge
        assert counted[:3] == list(planned.schema.cells)[:3] and counted[3] < 65
        assert len(released.pairs) <= planned.schedule.rounds
        assert len(released.checks) == planned.schedule.checks == 6
        assert len(stored.body) <= planned.size


class Twice(FitTask):
    """Measures the single columns a second time."""

    def run(self, curator):
        super().run(curator)
        return super().run(curator)


class OneMore(FitTask):
    """Goes on for one round more than it reserved."""

    def run(self, curator):
        more = replace(self.schedule, rounds=self.schedule.rounds + 1)
        return replace(self, schedule=more).run(curator)


@pytest.mark.parametrize("mutant", [Twice, OneMore])
def test_a_fit_that_measures_more_than_it_reserved_is_forfeited(tmp_path, mutant):
    with session(tmp_path) as opened:
        one = task(opened)
        wrong = mutant(one.schema, one.schedule, one.asked, one.rules, one.weights)
        with pytest.raises(EngineFailed):
            opened.ask(wrong)


def test_weights_by_candidate_in_place_of_the_heaviest_are_forfeited(tmp_path, monkeypatch):
    """The mutant claims the distance of the candidates that are left, not that of the workload."""
    honest = select.Discrepancies.distance

    def narrower(self, norm):
        found = honest(self, norm)
        return replace(found, value=found.value / self.heaviest)

    with session(tmp_path) as opened:
        one = task(opened, workload={"age": 9})
        monkeypatch.setattr(select.Discrepancies, "distance", narrower)
        with pytest.raises(EngineFailed):
            opened.ask(one)


def test_the_steps_depend_on_released_numbers_alone(tmp_path, monkeypatch):
    """Everything between the calls of the curator sees a ``Base`` of noisy counts, and no data."""
    seen = []
    honest = Fitting.begin.__func__

    def watched(cls, base, *rest):
        seen.append(base)
        return honest(cls, base, *rest)

    monkeypatch.setattr(Fitting, "begin", classmethod(watched))
    with session(tmp_path) as opened:
        one = task(opened)
        released = Released.of(one, opened.ask(one).body)
        (base,) = seen
        pairs = zip(base.singles, released.base.singles, strict=True)
        assert all((noisy == stored).all() for noisy, stored in pairs)


def test_other_declarations_and_versions_are_refused(tmp_path):
    with session(tmp_path) as opened:
        one = task(opened)
        stored = opened.ask(one)
    (tmp_path / "other").mkdir()
    narrower = {"age": sf.Integer(0, 50)}
    with session(tmp_path / "other", columns=narrower) as other, pytest.raises(WrongUse):
        one.ready(other.dataset)
    line, _, rest = stored.body.partition(b"\n")
    older = json.dumps({**json.loads(line), "format": 0}).encode() + b"\n" + rest
    with pytest.raises(WrongUse, match="format 0"):
        Released.of(one, older)


@pytest.mark.long
def test_long_constraints_are_within_the_size_of_the_answer(tmp_path):
    with session(tmp_path) as opened:
        long = sf.synthetic.require(f"age > 0 OR job = '{'x' * 9000}'")
        short = task(opened, constraints=[sf.synthetic.require("age > 0")])
        assert task(opened, constraints=[long] * 200).size > short.size + 200 * 9000
