# SPDX-License-Identifier: Apache-2.0
"""Rows of several tables: their keys, numbers, columns, answers, copies and reports."""

import duckdb
import numpy as np
import pytest

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.errors import UnknownName, WrongUse
from sfumato.testing import Replay
from tests.synthetic.clinics import clinic, session

THREE = ["patients", "visits", "drugs"]
OPTIONS = sy.Options(
    bins={
        "patients.age": [10, 18, 30, 40, 50, 60, 70, 80, 90],
        "visits.day": 12,
        "visits.cost": 10,
    },
    order={"visits": "day"},
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with session(tmp_path_factory.mktemp("clinic"), budget=sf.Budget(10_000, "1e-5")) as found:
        yield found


@pytest.fixture(scope="module")
def model(opened):
    """A model with little noise."""
    constraints = [sy.implies("age < 18", "sex = 'F'")]
    return sy.fit(opened, THREE, rho=50, constraints=constraints, options=OPTIONS)


def facts(tables, sql):
    with duckdb.connect() as public:
        for name, table in tables.items():
            public.register(name, table)
        return public.execute(sql).fetchall()


@pytest.mark.parametrize("seed", range(3))
def test_keys_fit_and_limits_hold_in_every_row(model, seed):
    rows = model.sample(500, entropy=Replay(seed))
    assert rows["patients"].num_rows == 500
    assert rows["visits"].column_names == ["vid", "pid", "day", "ward", "cost"]
    assert rows["drugs"].column_names == ["vid", "pid", "drug", "works"]
    assert facts(rows, "SELECT count(*) FROM visits ANTI JOIN patients USING (pid)") == [(0,)]
    # a prescription is one of a visit of the same patient
    assert facts(rows, "SELECT count(*) FROM drugs ANTI JOIN visits USING (vid, pid)") == [(0,)]
    for table, most in (("visits", 5), ("drugs", 4)):
        sql = f"SELECT max(n) FROM (SELECT count(*) AS n FROM {table} GROUP BY pid)"
        assert facts(rows, sql)[0][0] <= most
    for table, key in (("patients", "pid"), ("visits", "vid")):
        assert len(set(rows[table][key].to_pylist())) == rows[table].num_rows
    # nobody younger than 18 is anything else, in the data or not
    assert facts(rows, "SELECT DISTINCT sex FROM patients WHERE age < 18") == [("F",)]


def test_columns_of_children_go_with_the_parent(model):
    """Of the old more come, and to the heart ward; the bounds are far from what independence
    gives.
    """
    rows, real = model.sample(), clinic()
    sql = """SELECT age >= 60 AS old, count(*) / (SELECT count(*) FROM patients) AS visits,
    avg((ward = 'heart')::INT) AS heart, avg(cost) AS cost
    FROM visits JOIN patients USING (pid) GROUP BY old ORDER BY old"""
    for found, true in zip(facts(rows, sql), facts(real, sql), strict=True):
        assert found[1:] == pytest.approx(true[1:], rel=0.12)
    numbers = "SELECT count(*) FROM (SELECT pid FROM visits GROUP BY pid HAVING count(*) >= 2)"
    assert facts(rows, numbers)[0][0] == pytest.approx(facts(real, numbers)[0][0], rel=0.1)


def test_rows_of_replayed_entropy_are_bit_identical(opened, model):
    again = sy.load(opened, model.charge_id)
    one, same, other = (
        each.sample(300, entropy=Replay(seed))
        for each, seed in ((model, 1), (again, 1), (model, 2))
    )
    for name in THREE:
        assert one[name].equals(same[name]) and not one[name].equals(other[name])


def test_the_same_fit_is_recalled_and_few_rows_are_no_rows(opened, model):
    before = repr(opened.budget)
    constraints = [sy.implies("age < 18", "sex = 'F'")]
    again = sy.fit(opened, THREE, rho=50, constraints=constraints, options=OPTIONS)
    assert again.charge_id == model.charge_id and repr(opened.budget) == before
    assert [table.num_rows for table in model.sample(0).values()] == [0, 0, 0]
    assert "'drugs'" in repr(model)


def test_answers_have_intervals_that_hold(model):
    sql = """SELECT v.ward, COUNT(*) AS n FROM visits v JOIN patients p ON v.pid = p.pid
    WHERE p.age >= 50 GROUP BY v.ward ORDER BY v.ward"""
    found = model.query(sql, copies=4)
    assert found.column_names == ["ward", "n", "n_low", "n_high"]
    true = dict(facts(clinic(), sql))
    for row in found.to_pylist():
        assert row["n_low"] <= row["n"] <= row["n_high"]
        assert row["n"] == pytest.approx(true[row["ward"]], rel=0.2)
    copies = model.samples(2)
    assert not copies[0]["visits"].equals(copies[1]["visits"])


def test_a_report_tells_of_every_table_and_what_the_limit_drops(model, tmp_path):
    report = model.report()
    page = report.html
    for words in (
        "Synthetic patients, visits, drugs",
        "At most 5 rows of a unit are kept",
        "To which of its visits a row belongs",
        "only the one before it (by day)",
    ):
        assert words in page
    assert len(report.others) == 2 and page.count("<!doctype") == 1
    # little noise: no cell of an honest check of a child is off by a fiftieth of all units
    for each in report.others:
        assert all(fit.off < 0.02 for fit in each.quality.checks)
    written = model.save(tmp_path / "out", rows=20)
    assert [path.name for path in written[::3]] == [f"{name}.parquet" for name in THREE]


def test_units_with_many_rows_lose_some_and_the_numbers_say_so(tmp_path):
    rows = clinic(400)
    pid = np.repeat(np.arange(400), 9)
    rows["visits"] = rows["visits"].take(np.zeros(3600, np.int64))
    rows["visits"] = rows["visits"].set_column(0, "pid", [pid])
    with session(tmp_path, rows=rows, most=2) as opened:
        options = sy.Options(columns=["patients.sex", "visits.ward"], check=0)
        model = sy.fit(opened, ["patients", "visits"], rho=100, options=options)
        sampled = model.sample()
        assert sampled["visits"].num_rows == pytest.approx(800, rel=0.05)
        assert sampled["visits"].column_names == ["pid", "ward"]


def test_what_several_tables_cannot_be_fitted_with_is_refused(opened):
    plan = sy.preview(opened, THREE, rho=1, options=OPTIONS)
    assert [each.task.schema.table for each in (plan, *plan.others)] == THREE
    assert "table visits" in repr(plan) and "rows of a unit beyond 5 are dropped" in repr(plan)
    for given, error in (
        ({"constraints": [sy.require("cost > 3")]}, UnknownName),
        ({"constraints": ["age > 3"]}, WrongUse),
        ({"workload": {"age": 2}}, UnknownName),
        ({"options": sy.Options(columns=["patients.age"])}, WrongUse),
    ):
        with pytest.raises(error):
            sy.preview(opened, THREE, rho=1, **given)
