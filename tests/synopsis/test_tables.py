# SPDX-License-Identifier: Apache-2.0
"""A synopsis of several columns as its user sees it: planned for free, charged once."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import synopsis
from sfumato.errors import MissingDeclaration, UnknownName, UnsupportedSql, WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.query.session import Session
from sfumato.synopsis import cell_query, grid_task
from sfumato.synopsis.solution import Solution
from sfumato.synopsis.tables import Tables

RANDOM = np.random.default_rng(11)
FRAME = pd.DataFrame(
    {
        "age": RANDOM.integers(0, 32, 5000),
        "sex": RANDOM.choice(["F", "M", None], 5000, p=[0.5, 0.4, 0.1]),
        "born": pd.to_datetime("2020-01-01") + pd.to_timedelta(RANDOM.integers(0, 7, 5000), "D"),
        "smokes": RANDOM.choice([True, False], 5000),
        "name": "x",
    }
)
FRAME["born"] = FRAME["born"].dt.date
COLUMNS = {
    "age": sf.Integer(0, 31),
    "sex": sf.Category("F", "M"),
    "born": sf.Date("2020-01-01", "2020-01-07"),
    "smokes": sf.Boolean(),
    "name": sf.Text(),
}
WANTED = (
    synopsis.ranges("age") * synopsis.cells("sex")
    + synopsis.marginals(["sex", "born", "smokes"], up_to=2)
)  # fmt: skip
NEARLY_NONE = {"epsilon": 90_000}


def opened(folder: Path, **options: object) -> Session:
    return sf.connect(
        {"people": sf.Table(pa.Table.from_pandas(FRAME), columns=COLUMNS)},
        dataset="d", budget=sf.Budget(10**6, "1e-6"), ledger=folder / "l.db", **options,
    )  # fmt: skip


def measured(session: Session, **how: object) -> Tables:
    return synopsis.measure(session, "people", WANTED, **how)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("TRUE", FRAME.age >= 0),
        ("age BETWEEN 10 AND 19 AND sex = 'F'", FRAME.age.between(10, 19) & (FRAME.sex == "F")),
        ("age < 7", FRAME.age < 7),
        ("age IN (3, 5) AND sex = 'M'", FRAME.age.isin([3, 5]) & (FRAME.sex == "M")),
        ("sex IS NULL", FRAME.sex.isna()),
        ("NOT sex = 'F'", FRAME.sex == "M"),
        ("age > 40", FRAME.age > 40),
        (
            "smokes AND born < DATE '2020-01-03'",
            FRAME.smokes & (FRAME.born.map(lambda d: d.day) < 3),
        ),
        ("(age < 2 OR age > 29) AND age <> 30 AND 7 > 3", FRAME.age.isin([0, 1, 31])),
    ],
)
@pytest.mark.parametrize("strategy", [None, "marginals"])
def test_with_hardly_any_noise_it_answers_what_the_table_says(
    tmp_path_factory, where, rows, strategy
):
    found = _once(tmp_path_factory, strategy)
    assert found.answer(where).value == pytest.approx(rows.sum(), abs=0.5)


_KEPT: dict[str | None, Tables] = {}


def _once(factory: pytest.TempPathFactory, strategy: str | None) -> Tables:
    if strategy not in _KEPT:
        with opened(factory.mktemp("tables")) as session:
            _KEPT[strategy] = measured(session, strategy=strategy, **NEARLY_NONE)
    return _KEPT[strategy]


def test_groups_are_those_of_sql(tmp_path_factory):
    found = _once(tmp_path_factory, None)
    table = found.query("SELECT sex, COUNT(*) AS n FROM people WHERE age >= 16 GROUP BY sex")
    assert table.column_names == ["sex", "n", "n_error", "n_low", "n_high"]
    expected = FRAME[FRAME.age >= 16].groupby("sex").size()
    assert table["sex"].to_pylist() == ["F", "M"]
    assert table["n"].to_pylist() == pytest.approx(expected.tolist(), abs=0.5)
    both = found.query("SELECT smokes, born, COUNT(*) AS n FROM people GROUP BY smokes, born")
    counted = FRAME.groupby(["smokes", "born"]).size()
    for row in both.to_pylist():
        assert row["n"] == pytest.approx(counted[row["smokes"], row["born"]], abs=0.5)
    alone = found.query("SELECT COUNT(*) AS n FROM people")
    assert alone["n"].to_pylist() == pytest.approx([5000], abs=0.5)


def test_sums_are_those_of_sql(tmp_path_factory):
    sql = "SELECT sex, SUM(age) AS years, COUNT(age) AS n FROM people WHERE age > 9 GROUP BY sex"
    found = _once(tmp_path_factory, None).query(sql)
    assert found.column_names[:2] == ["sex", "years"]
    assert found.column_names[5] == "n"
    expected = FRAME[FRAME.age > 9].groupby("sex").age
    assert found["years"].to_pylist() == pytest.approx(expected.sum().tolist(), abs=9)
    assert found["n"].to_pylist() == pytest.approx(expected.size().tolist(), abs=0.5)


def test_keys_may_be_computed_from_a_column(tmp_path_factory):
    key = "CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END"
    sql = f"SELECT {key} AS stage, COUNT(*) AS n FROM people GROUP BY {key}"
    found = _once(tmp_path_factory, None).query(sql).to_pylist()
    counted = {row["stage"]: row["n"] for row in found}
    assert counted["minor"] == pytest.approx((FRAME.age < 18).sum(), abs=0.5)
    assert counted["adult"] == pytest.approx((FRAME.age >= 18).sum(), abs=0.5)


def test_a_workload_of_statements_is_measured_and_answered(tmp_path):
    """The plan's error is that of its answers: two statements, of three groups and one."""
    sqls = [
        "SELECT smokes, COUNT(*) AS n FROM people WHERE age >= 16 GROUP BY smokes",
        "SELECT SUM(age) AS n FROM people WHERE sex IS NULL",
    ]
    wanted = synopsis.queries(sqls)
    with opened(tmp_path) as session:
        planned = synopsis.plan(session.dataset, "people", wanted, rho="0.05")
        found = synopsis.measure(session, "people", wanted, rho="0.05")
    squares = []
    for sql in sqls:
        errors = found.query(sql)["n_error"].to_pylist()
        squares.append(sum(error**2 for error in errors) / len(errors))
    # an upper bound where the blocks do not fill the cells: 33 ages in blocks of powers
    assert math.sqrt(sum(squares) / 2) == pytest.approx(
        planned.error(planned.candidates[0]), rel=0.05
    )


def test_many_answers_are_as_each(tmp_path_factory):
    found = _once(tmp_path_factory, None)
    tests = ["age < 7", "sex = 'F'", "age < 7 AND sex = 'F'"]
    assert found.answers(tests, "0.9") == [found.answer(test, "0.9") for test in tests]


@pytest.mark.parametrize("cost", [{"epsilon": "0.5"}, {"rho": "0.05"}])
def test_intervals_hold(tmp_path, cost):
    """At a confidence of 1 - 1e-12, of three queries in five releases none misses."""
    tests = {
        "age BETWEEN 4 AND 9 AND sex = 'M'": FRAME.age.between(4, 9) & (FRAME.sex == "M"),
        "born = DATE '2020-01-02' AND smokes": FRAME.smokes
        & (FRAME.born.map(lambda day: day.day) == 2),
        "sex = 'F'": FRAME.sex == "F",
    }
    for release in range(5):
        folder = tmp_path / str(release)
        folder.mkdir()
        with opened(folder) as session:
            found = measured(session, **cost)
        for where, rows in tests.items():
            said = found.answer(where, confidence="0.999999999999")
            assert said.low <= rows.sum() <= said.high


@pytest.mark.parametrize("cost", [{"epsilon": "0.5"}, {"rho": "0.05"}])
def test_errors_are_as_stated(cost):
    """400 draws of the noise of all layers, read as three queries of an empty table.

    The mean of 400 squared standardised errors is 1 with a standard deviation of at most
    sqrt(5 / 400) = 0.112 (the fourth moment of Laplace noise is 6): six of them are 0.67, and an
    error of the stated variance by a factor of 2 is sure to be noticed.
    """
    empty = sf.Table(pa.Table.from_pandas(FRAME[:0]), columns=COLUMNS)
    planned = synopsis.plan(Dataset("d", {"people": empty}), "people", WANTED, **cost)
    task, grid = planned.task, planned.task.layout.grid
    known = grid.information(task.precisions)
    young, female = np.zeros(33), np.zeros(3)
    young[4:10] = female[0] = 1.0
    squares = {"both": 0.0, "young": 0.0, "female": 0.0}
    queries = {"both": {0: young, 1: female}, "young": {0: young}, "female": {1: female}}
    for _ in range(400):
        noisy = []
        for mechanism, cells in zip(task.mechanisms, task.cells, strict=True):
            noisy.append(mechanism.noise.sample(cells))
        scores = grid.scores(noisy, task.precisions)
        for name, query in queries.items():
            ((value, variance),) = Solution(grid, known, scores).estimates([query])
            squares[name] += value**2 / variance / 400
    assert all(0.33 < square < 1.67 for square in squares.values()), squares


def test_the_plan_is_free_and_states_the_error_of_its_answers(tmp_path):
    with opened(tmp_path) as session:
        wanted = synopsis.cells("sex", "smokes") + synopsis.cells("sex")
        planned = synopsis.plan(session.dataset, "people", wanted, rho="0.05")
        assert "nothing was charged" in repr(planned)
        found = synopsis.measure(session, "people", wanted, rho="0.05")
    cell = found.answer("sex = 'F' AND smokes").standard_error
    sex = found.answer("sex = 'F'").standard_error
    # all cells of a table are alike
    mean = math.sqrt((cell**2 + sex**2) / 2)
    assert planned.error(planned.candidates[0]) == pytest.approx(mean, rel=1e-3)


def test_units_with_several_rows_and_replaced_units_are_measured_too(tmp_path):
    table = sf.Table(
        pa.table({"who": ["a", "a", "b"], "v": [1, 2, 2], "s": ["F", "M", "M"]}),
        unit=sf.Unit("who", max_rows_total=2),
        columns={"v": sf.Integer(0, 3), "s": sf.Category("F", "M")},
    )
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(10**6), ledger=tmp_path / "l.db",
        relation=sf.ReplaceOne,
    ) as session:  # fmt: skip
        found = synopsis.measure(session, "t", synopsis.cells("v", "s"), **NEARLY_NONE)
    assert found.answer("v = 2 AND s = 'M'").value == pytest.approx(2, abs=0.1)
    assert found.answer().value == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("age = 3 AND born = DATE '2020-01-02'", "No layer of this synopsis has age, born"),
        ("age = 3 OR sex = 'F'", "one column each"),
        ("name = 'x'", "age, sex, born, smokes"),
        ("age > (SELECT COUNT(*) FROM people)", "sub-quer"),
    ],
)
def test_what_the_layers_do_not_tell_is_refused_by_name(tmp_path_factory, where, said):
    with pytest.raises((UnsupportedSql, UnknownName), match=said):
        _once(tmp_path_factory, None).answer(where)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(age) FROM people",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING COUNT(*) > 3",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n LIMIT 1",
        "SELECT sex, born, COUNT(*) FROM people GROUP BY ROLLUP (sex, born)",
        "SELECT name, COUNT(*) FROM people GROUP BY name",
        "SELECT COUNT(*) * 2 AS twice FROM people",
    ],
)
def test_other_statements_are_refused(tmp_path_factory, sql):
    with pytest.raises((UnsupportedSql, UnknownName)):
        _once(tmp_path_factory, None).query(sql)


def test_wrong_workloads_are_refused(tmp_path):
    with opened(tmp_path) as session:
        for wanted, error in [
            (synopsis.cells("sex", "name"), MissingDeclaration),
            (synopsis.cells("sex", "nobody"), UnknownName),
            ("age", WrongUse),
        ]:
            with pytest.raises(error):
                synopsis.plan(session.dataset, "people", wanted, rho=1)
        with pytest.raises(WrongUse, match="marginals"):
            measured(session, rho=1, strategy="best")


def test_a_workload_that_tells_no_column_apart_is_refused(tmp_path):
    with opened(tmp_path) as session:
        for wanted in (synopsis.Wanted(()), synopsis.queries(["SELECT COUNT(*) FROM people"])):
            with pytest.raises(WrongUse, match="no column apart"):
                synopsis.plan(session.dataset, "people", wanted, rho=1)


def test_a_strategy_that_is_too_large_names_one_that_is_not(monkeypatch):
    data = Dataset("d", {"people": sf.Table("p.csv", columns=COLUMNS)})
    planned = synopsis.plan(data, "people", WANTED, rho=1)
    largest = max(planned.candidates, key=lambda each: len(each.grid.layers))
    monkeypatch.setattr(grid_task, "MAX_LAYERS", len(largest.grid.layers) - 1)
    with pytest.raises(WrongUse, match="is the best of those that are small enough"):
        planned.of(largest)


def test_columns_of_one_name_and_tests_that_are_no_list_are_refused(tmp_path_factory):
    found = _once(tmp_path_factory, None)
    with pytest.raises(WrongUse, match="'n_error'"):
        found.query("SELECT COUNT(*) AS n, COUNT(age) AS n_error FROM people")
    with pytest.raises(WrongUse, match="'n_low'"):
        found.query("SELECT COUNT(*) AS n, sex AS n_low FROM people GROUP BY sex")
    with pytest.raises(WrongUse, match="list"):
        found.answers("age < 7")
    with pytest.raises(WrongUse, match="confidence"):
        found.plan.error(over="0.5")


def test_more_groups_than_allowed_are_refused(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(cell_query, "MAX_GROUPS", 13)
    with pytest.raises(WrongUse, match="14 groups"):
        _once(tmp_path_factory, None).query(
            "SELECT smokes, born, COUNT(*) FROM people GROUP BY smokes, born"
        )
