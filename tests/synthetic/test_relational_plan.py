# SPDX-License-Identifier: Apache-2.0
"""Plans of fits of several tables: shares of the cost, rounds, rules, and how they are made again."""

import json
from fractions import Fraction

import pytest

from sfumato.errors import UnknownName, WrongUse
from sfumato.query.allowance import allowance
from sfumato.synthetic import require
from sfumato.synthetic.relational import family_of
from sfumato.synthetic.relational_plan import planned, remade
from tests.synthetic.clinics import session

THREE = ["patients", "visits", "drugs"]


def plan(opened, rho="0.5", constraints=(), workload=None, **other):
    family = family_of(opened.dataset, THREE, order={"visits": "day"})
    cost = allowance(rho=rho)
    return planned(opened.dataset, family, cost, constraints, workload or {}, **other)


def test_each_table_has_a_share_in_proportion_to_its_columns(tmp_path):
    with session(tmp_path) as opened:
        task = plan(opened)
        amounts = [part.schedule.allowance.amount for part in task.parts]
        # two and two numbers, three, two columns
        assert amounts == [Fraction(4, 18), Fraction(3, 18), Fraction(2, 18)]
        assert [part.schedule.rounds for part in task.parts] == [6, 9, 6]
        few = plan(opened, rho="0.00001")
        assert [part.schedule.rounds for part in few.children] == [3, 2]
        assert [part.schedule.rounds for part in plan(opened, rounds=2).parts] == [2, 2, 2]


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
