# SPDX-License-Identifier: Apache-2.0
"""Plans of fits of several tables: shares of the cost, rounds, rules, and how they are made again."""

import json
from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.errors import UnknownName, WrongUse
from sfumato.privacy.event import Thresholded
from sfumato.query.allowance import allowance
from sfumato.synthetic import require
from sfumato.synthetic.relational import family_of
from sfumato.synthetic.relational_plan import planned, remade
from tests.attacks.canaries import CANARY
from tests.synthetic.clinics import COLUMNS, clinic, session

THREE = ["patients", "visits", "drugs"]


def plan(opened, rho="0.5", constraints=(), workload=None, **other):
    family = family_of(opened.dataset, THREE, order={"visits": "day"})
    cost = allowance(rho=rho)
    return planned(opened.dataset, family, cost, constraints, workload or {}, **other)


def test_each_table_has_a_share_in_proportion_to_its_columns(tmp_path):
    with session(tmp_path) as opened:
        task = plan(opened)
        amounts = [part.schedule.allowance.amount for part in task.parts]
        # 4% each for the bins of visits.day and visits.cost; two and two numbers, three, two columns
        left = Fraction("0.5") * Fraction(92, 100)
        assert amounts == [left * 4 / 9, left * 3 / 9, left * 2 / 9]
        assert [part.schedule.rounds for part in task.parts] == [6, 9, 6]
        few = plan(opened, rho="0.00001")
        assert [part.schedule.rounds for part in few.children] == [6, 4]
        # where little is spent, neighbours are counted together
        assert [part.schedule.neighbours for part in (*task.parts, *few.parts)] == [False] * 3 + [
            True
        ] * 3
        assert [part.schedule.rounds for part in plan(opened, rounds=2).parts] == [2, 2, 2]


def test_texts_quantiles_and_public_marginals_of_several_tables(tmp_path, monkeypatch):
    """A ward of one visit stays hidden; the limit of five visits is that of the threshold."""
    rows = clinic()
    wards = pa.array([f"{CANARY} 1", *rows["visits"]["ward"].to_pylist()[1:]])
    visits = rows["visits"].set_column(3, "ward", wards)
    monkeypatch.setitem(COLUMNS["visits"], "ward", sf.Text())
    options = sy.Options(
        texts={"visits.ward": "(else)"},
        bins={"visits.day": sy.Quantiles(8), "patients.age": sy.Quantiles(4)},
        order={"visits": "day"},
        triples=True,
    )
    asked = {"rho": 4, "delta": "1e-9", "options": options}
    asked["constraints"] = [sy.public("sex", {"F": 3, "M": 1})]
    with session(tmp_path, rows={**rows, "visits": visits}) as opened:
        seen = sy.preview(opened, THREE, **asked)
        assert any("ward: its values are released" in each for each in seen.others[0].notes)
        model = sy.fit(opened, THREE, **asked)
        again = sy.load(opened, model.charge_id)
        assert again.task.form == model.task.form and again.rows == model.rows
        assert sy.fit(opened, THREE, **asked).charge_id == model.charge_id
        assert len(model.stored.body) <= model.task.size
        assert repr(model.report()) and model.copied().rows
    steps = [step for opened in model.task.event.events[:2] for step in opened.events]
    (first,) = [step for step in steps if isinstance(step, Thresholded)]
    assert first.additive.distance.value == 1
    assert model.task.openings[1].questions[0].parts[0].groups == 5
    assert CANARY not in f"{model.stored.body}{model!r}{model.report()!r}"
    found = model.sample(rows=1000)
    assert found["patients"]["sex"].to_pylist().count("F") == 750
    assert set(found["visits"]["ward"].to_pylist()) <= {"eye", "heart", "skin", "(else)"}
    listed = found["visits"]["ward"].to_pylist()
    # 61%, 20% and nobody, with noise of some tenths of a percent
    assert listed.count("heart") > 500 > listed.count("eye") > 150 > listed.count("(else)")


def test_a_text_of_several_tables_needs_a_delta_and_a_column(tmp_path):
    with session(tmp_path) as opened:
        for texts in ({"ward": "(else)"}, {"visits.word": "(else)"}):
            with pytest.raises(UnknownName):
                sy.fit(opened, THREE, rho=1, options=sy.Options(texts=texts))
        with pytest.raises(WrongUse, match="ward"):
            sy.fit(opened, THREE, rho=1, options=sy.Options(texts={"visits.ward": "x"}))


def test_a_stored_plan_is_made_again(tmp_path):
    with session(tmp_path) as opened:
        given = {"workload": {"visits.ward": 5}, "constraints": [require("age > 0")]}
        one = plan(opened, **given)
        again = remade(opened.dataset, json.loads(one.asked))
        assert (again.form, again.event) == (one.form, one.event)
        forms = {
            one.form,
            plan(opened).form,
            plan(opened, check=0).form,
            plan(opened, rounds=2).form,
        }
        assert len(forms) == 4


def test_who_never_came_got_nothing(tmp_path):
    with session(tmp_path) as opened:
        (rule,) = plan(opened).parent.rules
        names = plan(opened).parent.schema.names
        assert [names[column] for column in rule.columns] == ["number of visits", "number of drugs"]
        assert rule.allowed[0, :-1].tolist() == [True, *[False] * 4]
        assert rule.allowed[1:-1, :-1].all() and not rule.allowed[-1].any()


def test_what_a_workload_names_must_be_a_column(tmp_path):
    with session(tmp_path) as opened:
        task = plan(opened, workload={"patients.age": 7})
        assert [part.heaviest for part in task.parts] == [7, 7, 7]
        with pytest.raises(UnknownName):
            plan(opened, workload={"age": 7})
        with pytest.raises(WrongUse):
            plan(opened, constraints=[require("age > 200")])
