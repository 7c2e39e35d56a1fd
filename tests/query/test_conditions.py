# SPDX-License-Identifier: Apache-2.0
"""Conditions of the private data are never an error and never show: same shape, cost, words (RULES
24).
"""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.query.answer import Answer
from tests.contracts.people import EXACTLY, FRAME, session

NAN, INF, N = float("nan"), float("inf"), 12


def changed(**columns: object) -> pa.Table:
    """Twelve rows of the frame with some columns replaced."""
    names = FRAME.column_names
    return pa.table({name: columns.get(name, FRAME[name].slice(0, N)) for name in names})


CONDITIONS = {
    "empty": FRAME.slice(0, 0),
    "all NULL": pa.table(
        {name: pa.nulls(N, FRAME.schema.field(name).type) for name in FRAME.column_names}
    ),
    "NaN and infinities": changed(age=[NAN, INF, -INF] * 4, hours=[INF, -INF, NAN] * 4),
    "far outside": changed(age=[-(10**15), 10**15, 1000] * 4, hours=[1e308, -1e308, 1e-320] * 4),
    "values not declared": changed(
        sex=["X", "", "f"] * 4, born=["0001-01-01", "9999-12-31", "no date"] * 4
    ),
    "NULL unit": changed(person=pa.nulls(N, pa.string())),
    "one unit": changed(person=["p"] * N),
    "texts like SQL": changed(job=["'; DROP TABLE people; --", "\x00", "\U0001f600" * 99] * 4),
    "numbers as text": changed(age=["30", "nan", " 1e999 "] * 4, hours=["inf", "-1", "0x10"] * 4),
    "decimals": changed(age=pa.array([30, None, 99] * 4, pa.decimal128(38, 10))),
}
QUESTIONS = (
    "SELECT COUNT(*) AS n, COUNT(age) AS c, SUM(age) AS s, AVG(hours) AS m FROM people",
    "SELECT sex, smoker, COUNT(*) AS n, AVG(age) AS m FROM people GROUP BY sex, smoker",
    "SELECT SUM(hours) AS h, AVG(smoker) AS p FROM people WHERE age > 30 AND born < DATE '1970-01-01' AND job <> 'job 1'",
    "SELECT sex, SUM(age) / COUNT(*) AS r FROM people WHERE smoker IS NOT NULL OR hours IN (1, 2.5) GROUP BY sex",
)
UNITS = (None, sf.Unit("person", max_rows=2, max_groups=2, max_rows_total=3))


def shape(answer: Answer) -> str:
    """All of an answer but its numbers, its charge and what is said of its numbers."""
    form = json.loads(answer.bytes)
    names = [
        [
            cell
            for cell, column in zip(row, answer.columns, strict=True)
            if column["name"] in ("sex", "smoker")
        ]
        for row in answer.rows
    ]
    of_numbers = ("in 1 row it cannot be told", "it cannot be told")
    said = [line for line in answer.notes if not any(each in line for each in of_numbers)]
    kept = {
        name: form[name]
        for name in ("columns", "cost", "protected", "bounded", "bias", "statement", "dataset")
    }
    return json.dumps([kept, names, said], sort_keys=True)


def shapes(folder: Path, frame: pa.Table, unit: sf.Unit | None) -> list[str]:
    """The shapes of all answers over a frame."""
    folder.mkdir()
    with session(folder, frame, unit=unit) as opened:
        return [shape(opened.query(sql, epsilon=1)) for sql in QUESTIONS]


@pytest.mark.parametrize("unit", UNITS, ids=["rows", "units"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_no_condition_of_the_data_changes_more_than_the_numbers(
    tmp_path: Path, condition: str, unit: sf.Unit | None
) -> None:
    ordinary = shapes(tmp_path / "ordinary", FRAME, unit)
    assert shapes(tmp_path / "other", CONDITIONS[condition], unit) == ordinary


def exact(tmp_path: Path, frame: pa.Table, sql: str, **options: object) -> list[object]:
    """The first row of an answer whose noise is almost surely zero."""
    with session(tmp_path, frame, **options) as opened:
        return list(opened.query(sql, epsilon=EXACTLY).rows[0])


def test_an_infinite_value_is_the_bound_and_nan_is_missing(tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) AS n, COUNT(age) AS c, SUM(age) AS s FROM people"
    assert exact(tmp_path, CONDITIONS["NaN and infinities"], sql) == [12, 8, 4 * 99]


def test_a_value_beyond_a_bound_is_the_bound(tmp_path: Path) -> None:
    sql = "SELECT COUNT(age) AS c, SUM(age) AS s, SUM(hours) AS h FROM people"
    assert exact(tmp_path, CONDITIONS["far outside"], sql) == [12, 8 * 99, 4 * 10]


def test_a_value_that_is_not_declared_is_missing(tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) AS n, COUNT(sex) AS c, COUNT(born) AS b FROM people"
    assert exact(tmp_path, CONDITIONS["values not declared"], sql) == [12, 0, 8]


def test_a_row_without_a_unit_is_not_used(tmp_path: Path) -> None:
    unit = sf.Unit("person", max_rows=1)
    assert exact(
        tmp_path, CONDITIONS["NULL unit"], "SELECT COUNT(*) AS n FROM people", unit=unit
    ) == [0]
    (tmp_path / "one").mkdir()
    sql = "SELECT COUNT(*) AS n, COUNT(DISTINCT person) AS u FROM people"
    assert exact(tmp_path / "one", CONDITIONS["one unit"], sql, unit=unit) == [1, 1]


def test_an_empty_table_counts_nothing(tmp_path: Path) -> None:
    assert exact(
        tmp_path, CONDITIONS["empty"], "SELECT COUNT(*) AS n, SUM(age) AS s FROM people"
    ) == [0, 0]


def test_a_mean_without_support_is_the_middle_and_says_so(tmp_path: Path) -> None:
    with session(tmp_path, CONDITIONS["empty"]) as opened:
        answer = opened.query("SELECT AVG(age) AS m FROM people", epsilon=900_000)
    assert answer.rows == [[49.5]]
    assert any("in 1 row it cannot be told" in note for note in answer.notes)
    assert answer.error()[0]["m"] == {"low": 0, "high": 99, "half_width": 49.5, "untold": True}
