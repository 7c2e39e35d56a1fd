# SPDX-License-Identifier: Apache-2.0
"""Fits through a session: charged once, recalled, loaded, refused."""

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.errors import BudgetExceeded, InvalidNumber, UnknownName, WrongUse
from sfumato.synthetic.estimate import Fitted, MaximumEntropy
from tests.synthetic.towns import session, town


def test_a_fit_is_charged_once_and_recalled_free(tmp_path):
    with session(tmp_path) as opened:
        model = sy.fit(opened, ["people"], epsilon=1, delta="1e-9")
        spent = opened.budget.spent
        again = sy.fit(opened, "people", epsilon=1, delta="1e-9")
        assert again.charge_id == model.charge_id and again.stored.recalled
        assert opened.budget.spent == spent


def test_a_model_is_loaded_with_nothing_but_its_charge(tmp_path):
    constraints = [sy.implies("age < 18", "job = 'none'")]
    options = sy.Options(bins={"pay": [10_000, 30_000]}, columns=["age", "job", "pay"], rounds=2)
    with session(tmp_path) as opened:
        model = sy.fit(
            opened, "people", rho=1, constraints=constraints, workload={"pay": 2}, options=options
        )
        spent = opened.budget.spent
        again = sy.load(opened, model.charge_id)
        assert opened.budget.spent == spent
        assert again.task.form == model.task.form and again.cost == model.cost
        for one, other in zip(model.fitted.marginals, again.fitted.marginals, strict=True):
            assert (one == other).all()


def test_another_estimator_reads_the_same_charge(tmp_path):
    used = []

    class Watching:
        def __call__(self, *given, **named) -> Fitted:
            used.append(len(given))
            return MaximumEntropy(5)(*given, **named)

    with session(tmp_path) as opened:
        model = sy.fit(opened, "people", rho=1)
        assert len(sy.load(opened, model.charge_id, estimator=Watching()).sample()["people"])
    assert used


def test_charges_of_others_and_other_kinds_are_refused(tmp_path):
    with session(tmp_path) as opened:
        counted = opened.marginals("people", [("age",)], rho="0.1")
        with pytest.raises(WrongUse):
            sy.load(opened, counted.charge_id)
        model = sy.fit(opened, "people", rho="0.1")
        other = opened.asking_as("somebody")
        for charge in (model.charge_id, "no such charge", 3):
            with pytest.raises(UnknownName):
                sy.load(other, charge)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"tables": []}, WrongUse),
        ({"tables": ["people", "people"]}, WrongUse),
        ({"tables": "nobody"}, UnknownName),
        ({"workload": {"shoe": 1}}, UnknownName),
        ({"workload": {"age": -1}}, WrongUse),
        ({"workload": {"age": 0.5}}, WrongUse),
        ({"workload": ["age"]}, WrongUse),
        ({"constraints": ["age > 5"]}, WrongUse),
        ({"tables": None}, UnknownName),
        ({"constraints": [sy.require("age > 5"), sy.require("age < 5")]}, WrongUse),
        ({"delta": "1e-9"}, InvalidNumber),
        ({"rho": 10**5}, BudgetExceeded),
    ],
)
def test_what_cannot_be_is_refused_before_the_charge(tmp_path, given, error):
    with session(tmp_path) as opened:
        with pytest.raises(error):
            sy.fit(opened, **{"tables": "people", "rho": "0.1", **given})
        assert "0.1" not in str(opened.budget.spent)


@pytest.mark.parametrize("rows", [0, 1])
def test_no_row_and_one_row_are_no_error(tmp_path, rows):
    with session(tmp_path, town(rows)) as opened:
        model = sy.fit(opened, "people", epsilon=1, delta="1e-9")
        assert len(model.sample(rows=10)["people"]) == 10


def test_one_column_and_a_constant_one(tmp_path):
    constant = {"job": sf.Category("none")}
    young = town(1000).select(["job"]).filter(pa.compute.equal(town(1000)["job"], "none"))
    with session(tmp_path, young, columns=constant) as opened:
        model = sy.fit(opened, "people", rho=1)
        assert set(model.sample()["people"]["job"].to_pylist()) == {"none"}
        assert model.task.schedule.rounds == 0


def test_pure_epsilon_buys_laplace_noise(tmp_path):
    with session(tmp_path) as opened:
        model = sy.fit(opened, "people", epsilon=20)
        assert 19.9 < float(model.cost.epsilon) <= 20 and model.cost.delta == "0"


def test_the_heavier_columns_are_measured_first(tmp_path):
    random = np.random.default_rng(1)
    twins = random.integers(0, 10, (2, 4000))
    columns = {name: sf.Integer(0, 9) for name in "abcd"}
    rows = pa.table({"a": twins[0], "b": twins[0], "c": twins[1], "d": twins[1]})
    with session(tmp_path, rows, columns=columns) as opened:
        options = sy.Options(rounds=1)
        model = sy.fit(opened, "people", rho=1, workload={"c": 1000}, options=options)
        assert [each.columns for each in model.released.pairs] == [(2, 3)]


@pytest.mark.parametrize("name", ["bins", "texts", "order"])
def test_options_that_are_no_mapping_are_refused(name):
    with pytest.raises(WrongUse, match=name):
        sy.Options(**{name: 5})
