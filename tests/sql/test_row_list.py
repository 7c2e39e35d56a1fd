# SPDX-License-Identifier: Apache-2.0
"""A SELECT of rows: its values, its rows against the reference engine, and what it refuses."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import UnknownName, UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.query.pipeline import compile_rows
from sfumato.sql.row_list import place_of, row_list

ROWS = [
    {"who": "a", "x": 3, "c": "p"},
    {"who": "a", "x": 8, "c": "q"},
    {"who": "b", "x": 5, "c": "q"},
]
TABLE = sf.Table(
    pa.Table.from_pylist(ROWS),
    unit=sf.Unit("who", max_rows_total=5),
    columns={"x": sf.Integer(0, 9), "c": sf.Category("p", "q"), "t": sf.Text()},
)
DATA = Dataset("tiny", {"t": TABLE})
PICTURES = {"x": sf.Integer(0, 9), "pixels": sf.Array((2, 3), 0, 255)}


def read(statement: str) -> list[list[int]]:
    plan = compile_rows(row_list(statement, DATA), DATA)
    with Reference({"t": ROWS}).rows(plan, "key") as rows:
        return sorted(rows.codes.tolist())


def test_rows_are_those_of_the_statement() -> None:
    assert read("SELECT x, c FROM t") == [[3, 0], [5, 1], [8, 1]]
    assert read("SELECT x > 4 AS big FROM t WHERE c = 'q'") == [[1], [1]]
    assert read("SELECT y FROM (SELECT x * 2 AS y, c FROM t) WHERE c = 'p'") == [[3]]
    assert read("SELECT COUNT(*) AS n, MAX(x) AS m FROM t GROUP BY who") == [[1, 5], [2, 8]]


def test_an_array_is_read_beside_others_and_in_order() -> None:
    data = Dataset("d", {"t": sf.Table("t.parquet", columns=PICTURES)})
    rows = row_list("SELECT q.pixels, x FROM t AS q WHERE x > 4", data)
    assert [value.name for value in rows.values] == ["pixels", "x"]
    assert (rows.widths, rows.starts) == ((6, 1), (0, 6))
    with pytest.raises(UnsupportedSql, match=r"pixels is an sf\.Array"):
        row_list("SELECT x FROM t WHERE pixels > 4", data)


def test_columns_have_their_names_and_no_persons() -> None:
    rows = row_list("SELECT who, x AS size, c FROM t", DATA)
    assert [value.name for value in rows.values] == ["size", "c"]
    assert place_of(rows, "SIZE") == 0
    with pytest.raises(UnknownName, match="size, c"):
        place_of(rows, "x")
    assert len(row_list("SELECT * FROM t WHERE x > 2", Dataset("d", {"t": sf.Table(
        pa.Table.from_pylist(ROWS), columns={"x": sf.Integer(0, 9)})})).values) == 1  # fmt: skip


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT COUNT(*) FROM t",
        "SELECT x FROM t LIMIT 2",
        "SELECT x FROM t ORDER BY x",
        "SELECT DISTINCT x FROM t",
        "SELECT who FROM t",
        "SELECT x FROM t HAVING x > 1",
    ],
)
def test_what_is_no_list_of_rows_is_refused(statement: str) -> None:
    with pytest.raises(UnsupportedSql):
        row_list(statement, DATA)


def test_a_text_is_listed_with_its_rule_and_has_no_codes() -> None:
    rows = row_list("SELECT t FROM t", DATA)
    assert rows.values[0].type == DATA.tables["t"].columns["t"]
    with pytest.raises(sf.SfumatoError, match="text"):
        rows.require_codes()
