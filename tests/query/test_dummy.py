# SPDX-License-Identifier: Apache-2.0
"""Made-up rows: every declared value, nothing of the data."""

import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import UnknownName, WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.query.dummy import dummy_rows

COLUMNS = {
    "age": sf.Integer(17, 19),
    "pay": sf.Real(0, 1, step="0.5"),
    "sex": sf.Category({"1": "Male", "2": "Female"}),
    "smoker": sf.Boolean(),
    "insured": sf.Boolean(true="Y", false="N"),
    "note": sf.Text(),
    "born": sf.Date("2000-01-01", "2000-01-02"),
    "left": sf.Date("2000-01-01", "2000-01-02", format="%d/%m/%Y"),
    "at": sf.Timestamp("2020-01-01", "2020-01-01", zone="Europe/London"),
    "picture": sf.Array(2, 0, 3),
    "marked": sf.Integer(1, 2, missing="N"),
}
DATASET = Dataset(
    "d",
    {
        "people": sf.Table("p.csv", unit=sf.Unit("person", max_rows=1), columns=COLUMNS),
        "visits": sf.Table(
            "v.csv",
            unit=sf.Unit("of", via="people.person", key="number", max_rows=2),
            columns={"cost": sf.Integer(0, 9)},
        ),
    },
)


def test_every_declared_value_is_made_up_and_no_other() -> None:
    rows = dummy_rows(DATASET, "people", 400, 1).to_pydict()
    expected = {
        "age": {17, 18, 19},
        "pay": {0.0, 0.5, 1.0},
        # as the data has them, not as answers show them
        "sex": {"1", "2"},
        "smoker": {True, False},
        "insured": {"Y", "N"},
        "born": {datetime.date(2000, 1, 1), datetime.date(2000, 1, 2)},
        "left": {"01/01/2000", "02/01/2000"},
        "marked": {1, 2, None},
    }
    assert {name: set(rows[name]) for name in expected} == expected
    assert {number for picture in rows["picture"] for number in picture} == {0, 1, 2, 3}
    assert {len(picture) for picture in rows["picture"]} == {2}
    assert {moment.date() for moment in rows["at"]} == {datetime.date(2020, 1, 1)}
    assert all(type(text) is str for text in rows["note"] + rows["person"])


def test_the_same_seed_makes_the_same_rows() -> None:
    first = dummy_rows(DATASET, "people", 20, 7)
    assert first.equals(dummy_rows(DATASET, "people", 20, 7))
    assert not first.equals(dummy_rows(DATASET, "people", 20, 8))
    assert dummy_rows(DATASET, "people", 0, 7).num_rows == 0


def test_rows_that_others_refer_to_are_there() -> None:
    people = dummy_rows(DATASET, "people", 30, 1).to_pydict()
    visits = dummy_rows(DATASET, "visits", 30, 2).to_pydict()
    assert people["number"] == [str(number) for number in range(1, 31)]
    assert set(visits["of"]) <= set(people["number"])


@pytest.mark.parametrize(
    ("rows", "seed"), [(-1, 0), (True, 0), (1.5, 0), ("9", 0), (1, -1), (10**6, 0), (10**30, 0)]
)
def test_other_numbers_are_refused(rows: int, seed: int) -> None:
    with pytest.raises(WrongUse):
        dummy_rows(DATASET, "people", rows, seed)


@pytest.mark.parametrize("table", ["nobody", "", None, []])
def test_other_tables_are_refused(table: str) -> None:
    with pytest.raises(UnknownName):
        dummy_rows(DATASET, table, 1, 0)


def test_a_session_makes_up_rows_free_and_a_question_runs_on_them(tmp_path: Path) -> None:
    real = pa.table({"age": [18], "sex": ["1"]})
    columns = {name: COLUMNS[name] for name in ("age", "sex")}
    question = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    table = sf.Table(real, columns=columns)
    with sf.connect({"people": table}, dataset="d", budget=sf.Budget(1),
                    ledger=tmp_path / "l.db") as session:  # fmt: skip
        rows = session.dummy("people", rows=500, seed=3)
        assert session.budget.spent == "0"
    made_up = sf.Table(rows, columns=columns)
    with sf.connect({"people": made_up}, dataset="tried", budget=sf.Budget(10**5),
                    ledger=tmp_path / "m.db") as tried:  # fmt: skip
        counts = [row[1] for row in tried.query(question, epsilon=10**4).rows]
    assert sum(counts) == 500 and min(counts) > 150
