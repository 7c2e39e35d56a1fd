# SPDX-License-Identifier: Apache-2.0
"""Texts and quantiles under the one charge: what is released, what stays hidden, what is refused."""

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.accounting.account import account
from sfumato.errors import (
    EngineFailed,
    InvalidDeclaration,
    MissingDeclaration,
    UnknownName,
    WrongUse,
)
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.event import Thresholded
from sfumato.query.allowance import allowance, price_of
from sfumato.query.cells import Units
from sfumato.synthetic.fit import _fit_task
from sfumato.synthetic.opening import Opening, _most_frequent_values, quantiles_of
from sfumato.synthetic.schema import schema_of
from sfumato.synthetic.task import FitTask
from tests.attacks.canaries import CANARY
from tests.synthetic.towns import session

# Values that a statement must take as they are.
ODD = ["O'Hara'; DROP TABLE x; --", "new\nline", "\\", "ü😀", "%", '"quoted"', "zz"]
COLUMNS = {"home": sf.Text(missing="?"), "old": sf.Boolean()}
TEXTS = sy.Options(texts={"home": "(else)"})


def homes(rare: int = 200) -> pa.Table:
    """Seven frequent values, many that one person has each, and missing ones."""
    listed = ODD * 500 + [f"{CANARY} {k}" for k in range(rare)] + [""] * 300 + ["?"] * 300
    return pa.table({"home": listed, "old": [k % 3 == 0 for k in range(len(listed))]})


def fitted(folder, options=TEXTS):
    with session(folder, homes(), columns=COLUMNS) as opened:
        return sy.fit(opened, "people", rho=1, delta="1e-9", options=options)


def task_of(opened, rho=9):
    price = price_of(keys=True, epsilon=None, rho=rho, delta="1e-9")
    return _fit_task(opened.dataset, "people", price, options=TEXTS)


def test_frequent_values_are_released_and_all_others_are_the_placeholder(tmp_path):
    model = fitted(tmp_path)
    rows = model.sample()["people"]
    found = rows["home"].to_pylist()
    assert set(found) == {*ODD, "(else)", None}
    # 500 of each, 200 rare and 300 empty ones; noise is 10 at most
    for value, number in [(ODD[0], 500), (ODD[3], 500), ("(else)", 500), (None, 300)]:
        assert abs(found.count(value) - number) < 60
    pages = [model.stored.body, repr(model), repr(model.report()), repr(model.released)]
    assert not any(CANARY in str(page) for page in pages)


def test_texts_are_loaded_and_queried(tmp_path):
    with session(tmp_path, homes(), columns=COLUMNS) as opened:
        model = sy.fit(opened, "people", epsilon=5, delta="1e-9", options=TEXTS)
        again = sy.load(opened, model.charge_id)
        assert again.task.form == model.task.form and again.rows == model.rows
        assert (
            sy.fit(opened, "people", epsilon=5, delta="1e-9", options=TEXTS).charge_id
            == model.charge_id
        )
    known = model.declarations.tables["people"].columns["home"]
    assert set(known.values) == {*ODD, "(else)"}
    thresholds = [item for item in model.cost.items if "threshold" in item["mechanism"]]
    (item,) = thresholds
    assert 0 < Fraction(item["delta"]) <= Fraction(1, 2 * 10**9)
    assert Fraction(model.cost.delta) <= Fraction(1, 10**9)


def test_the_whole_is_one_charge_of_what_was_asked(tmp_path):
    with session(tmp_path, homes(), columns=COLUMNS) as opened:
        task = task_of(opened, "0.5")
        whole = account(task.event)
        assert Fraction("0.49999") < whole.rho <= Fraction("0.5")
        assert 0 < whole.delta <= Fraction(1, 10**9)
        stored = opened.ask(task)
        assert len(stored.body) <= task.size
        assert [type(step) for step in task.event.events[:1]] == [Thresholded]


def test_a_placeholder_that_people_have_is_one_value(tmp_path):
    model = fitted(tmp_path, sy.Options(texts={"home": "zz"}))
    found = set(model.sample()["people"]["home"].to_pylist())
    assert found == {*ODD, None}


def test_units_with_several_rows_count_in_so_many_values(tmp_path):
    """Each of 300 people has two rows in each of two towns; a lone one has 200 rows in his."""
    who = [k // 4 for k in range(1200)] + [999] * 200
    town = ["x", "x", "y", "y"] * 300 + ["mine"] * 200
    rows = pa.table({"who": who, "home": town})
    unit = sf.Unit("who", max_rows_total=4)
    columns = {"home": sf.Text()}
    with session(tmp_path, rows, columns=columns, unit=unit) as opened:
        task = task_of(opened)
        (question,) = task.opening.questions
        assert Units(question, 0).groups == 4
        model = sy.fit(opened, "people", rho=9, delta="1e-9", options=TEXTS)
    assert model.released.base.schema.axes[0].keys == ("x", "y")


class Fewer(Opening):
    """The mutant calibrates to one value a person."""

    def threshold(self, counted):
        return replace(super().threshold(counted), keys=1)


def test_a_threshold_for_fewer_values_than_a_person_has_is_forfeited(tmp_path):
    rows = pa.table({"who": [1, 1, 2, 2], "home": ["a", "b", "a", "b"]})
    unit = sf.Unit("who", max_rows_total=2)
    with session(tmp_path, rows, columns={"home": sf.Text()}, unit=unit) as opened:
        task = task_of(opened)
        one = task.opening
        wrong = Fewer(one.texts, one.questions, one.trees, one.each, one.delta)
        mutant = FitTask(task.schema, task.schedule, task.asked, (), (), wrong)
        with pytest.raises(EngineFailed):
            opened.ask(mutant)


class Unpaid(FitTask):
    """The mutant does not charge for the opening."""

    @property
    def event(self):
        return self.schedule.noises(self.schema.plan).event(self.heaviest)


def test_an_opening_that_was_not_reserved_is_forfeited(tmp_path):
    with session(tmp_path, homes(), columns=COLUMNS) as opened:
        task = task_of(opened)
        mutant = Unpaid(task.schema, task.schedule, task.asked, (), (), task.opening)
        with pytest.raises(EngineFailed):
            opened.ask(mutant)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"rho": 1}, MissingDeclaration),
        ({"epsilon": 1}, MissingDeclaration),
        ({"options": sy.Options(texts={"old": "x"})}, WrongUse),
        ({"options": sy.Options(texts={"home": ""})}, WrongUse),
        ({"options": sy.Options(texts={"home": 3})}, WrongUse),
        ({"options": sy.Options(texts={"home": "?"})}, InvalidDeclaration),
        ({"options": sy.Options(texts={"nobody": "x"})}, UnknownName),
        ({"options": sy.Options(texts={"home": "x"}, columns=["old"])}, UnknownName),
        ({"constraints": [sy.require("home = 'zz'")]}, WrongUse),
    ],
)
def test_what_cannot_be_is_refused_before_the_charge(tmp_path, given, error):
    with session(tmp_path, homes(), columns=COLUMNS) as opened:
        price = {"epsilon": 1, "delta": "1e-9"}
        if "rho" in given or "epsilon" in given:
            price = {}
        before = opened.budget.spent
        with pytest.raises(error):
            sy.fit(opened, "people", **{"options": TEXTS, **price, **given})
        assert opened.budget.spent == before


def test_long_values_and_too_many_are_others():
    shown = {(f"k{place:04}",): place for place in range(1500)}
    shown |= {("x" * 201,): 10**6, ("a\0b",): 10**6, ("",): 10**6}
    kept = _most_frequent_values(shown)
    assert len(kept) == 1000 and kept[0] == "k0500" and kept[-1] == "k1499"


def test_columns_with_many_values_have_quantiles_unless_they_are_tested():
    columns = {"pay": sf.Integer(0, 10**6), "day": sf.Date("2000-01-01", "2009-12-31")}
    schema = schema_of(Dataset("d", {"t": sf.Table("t.csv", columns=columns)}), "t")
    assert quantiles_of(schema, {}, []) == {"pay": 32, "day": 64}
    assert quantiles_of(schema, {"pay": 10}, []) == {"day": 64}
    assert quantiles_of(schema, {"day": sy.Quantiles(4)}, []) == {"pay": 32, "day": 4}
    assert quantiles_of(schema, {}, [sy.require("pay > 0")]) == {"day": 64}
    with pytest.raises(WrongUse, match="constraint on 'pay'"):
        quantiles_of(schema, {"pay": sy.Quantiles(4)}, [sy.require("pay > 0")])


def test_a_pure_epsilon_pays_for_quantiles():
    assert price_of(keys=False, epsilon=1, rho=None, delta=None) == allowance(epsilon=1)


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_several_texts_and_quantiles_of_units_with_several_rows(tmp_path, relation):
    who = [k // 2 for k in range(2000)]
    rows = pa.table(
        {
            "who": who,
            "home": ["Bonn", "Ulm"] * 1000,
            "note": ["same"] * 1900 + [f"{CANARY} {k}" for k in range(100)],
            "pay": [100 + k % 50 for k in range(2000)],
        }
    )
    columns = {"home": sf.Text(), "note": sf.Text(), "pay": sf.Integer(0, 10**9)}
    unit = sf.Unit("who", max_rows_total=2)
    options = sy.Options(texts={"note": "-", "home": "-"}, rounds=1, check=0)
    with session(tmp_path, rows, columns=columns, unit=unit, relation=relation) as opened:
        model = sy.fit(opened, "people", rho=9, delta="1e-9", options=options)
        again = sy.load(opened, model.charge_id)
    drawn = again.sample(rows=400)["people"]
    # whether no text is kept out is noisy
    assert {"Bonn", "Ulm"} <= set(drawn["home"].to_pylist()) <= {"Bonn", "Ulm", "-"}
    assert set(drawn["note"].to_pylist()) == {"same", "-"}
    pays = drawn["pay"].to_numpy()
    # a finest cell has 15,259 codes; a cell far out is kept where its noise is above three
    # deviations, but it holds no tenth of 1,000 people
    assert (pays > 100_000).mean() < 0.1
