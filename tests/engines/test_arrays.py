# SPDX-License-Identifier: Apache-2.0
"""Lists of numbers: DuckDB reads what the reference reads, of every physical type; nothing but rows
reads them.
"""

import math
from contextlib import closing
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import rows as rows_module
from sfumato.engines import value_sql
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.engines.sql_tree import SqlType, TryCast, call
from sfumato.engines.value_codes import code_of
from sfumato.errors import InvalidDeclaration, MissingDeclaration, UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import MISSING
from sfumato.query.pipeline import compile_rows
from sfumato.sql.row_list import row_list

WHOLE = sf.Array(2, -3, 300)
HALVES = sf.Array(2, -3, 300, step="0.5")
THIRDS = sf.Array(2, -1, 1, step="1/3")
UGLY = [
    [1.0, 2.0],
    [0.25, 0.75],
    [2.5, 3.5],
    [-math.inf, math.inf],
    [1e300, -0.0],
    [math.nan, 1.0],
    [None, 1.0],
    [1.0],
    [1.0, 2.0, 3.0],
    [1.0, 2.0, None],
    [],
    None,
]
# what a mutant writes in place of a missing number, and of a missing list
ZERO = {"a0": MISSING, "a1": "[0, 0]"}
NUMBERS = st.one_of(st.none(), st.floats(), st.floats(-4, 301), st.integers(-4, 301).map(float))


def tables(values, kind, source=None):
    """A table of a list and a number, two rows a unit."""
    data = {"who": [str(place // 2) for place in range(len(values))], "p": values}
    data["n"] = [place % 3 if place % 5 else None for place in range(len(values))]
    frame = pa.table(data)
    unit = sf.Unit("who", max_rows_total=2)
    columns = {"p": kind, "n": sf.Integer(0, 2)}
    rows = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
    rows = [row | {"p": row["p"].as_py()} for row in rows]
    return {"t": sf.Table(source or frame, unit=unit, columns=columns)}, {"t": rows}, frame


def both(values, kind, source=None, select="SELECT n, p FROM t"):
    """The rows of DuckDB and of the reference."""
    declared, rows, _ = tables(values, kind, source)
    data = Dataset("d", declared)
    plan = compile_rows(row_list(select, data), data)
    with closing(DuckDB(declared)) as engine, engine.rows(plan, "key") as found:
        ours = np.array(found.codes)
    with Reference(rows).rows(plan, "key") as expected:
        return ours, expected.codes


@pytest.mark.parametrize("kind", [WHOLE, HALVES, THIRDS, sf.Array((2, 1), 0, 1)], ids=repr)
@pytest.mark.parametrize("physical", [pa.float64(), pa.float32()], ids=str)
def test_duckdb_reads_lists_like_the_reference(kind, physical, tmp_path):
    values = pa.array(UGLY, pa.list_(physical))
    ours, expected = both(values, kind)
    assert ours.tolist() == expected.tolist()
    # a Parquet file has statistics, which leave NaN out
    path = tmp_path / "t.parquet"
    pq.write_table(tables(values, kind)[2], path)
    assert both(values, kind, path)[0].tolist() == expected.tolist()


@pytest.mark.parametrize(
    "physical",
    [
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        pa.list_(pa.uint8(), 2),
        pa.large_list(pa.int32()),
        pa.decimal128(38, 10),
        pa.null(),
    ],
    ids=str,
)
def test_every_type_of_number_is_read(physical):
    if isinstance(physical, str):
        physical = getattr(pa, physical)()
    kind = physical if pa.types.is_nested(physical) else pa.list_(physical)
    listed = [[3, 0], [1, None], None, [120, 7]]
    if pa.types.is_null(physical):
        listed = [[None, None], None, []]
    if pa.types.is_decimal(physical):
        listed = [[Decimal("2.5"), Decimal("-9e20")], [Decimal("0.4999999999"), None], None]
    ours, expected = both(pa.array(listed, kind), WHOLE)
    assert ours.tolist() == expected.tolist()


@given(st.lists(st.one_of(st.none(), st.lists(NUMBERS, max_size=3)), min_size=1, max_size=8))
@settings(max_examples=20)
def test_any_lists_are_read_like_the_reference(listed):
    ours, expected = both(pa.array(listed, pa.list_(pa.float64())), HALVES)
    assert ours.tolist() == expected.tolist()


def test_codes_are_those_of_single_columns():
    """Each number has the code that a column of its own would have."""
    listed = [[1.0, 2.5], [-math.inf, 3.49], [77.77, 1e9]]
    ours, _ = both(pa.array(listed, pa.list_(pa.float64())), HALVES, select="SELECT p FROM t")
    alone = sf.Real(-3, 300, step="0.5")
    codes = {tuple(code_of(Column("x", alone), number) for number in row) for row in listed}
    assert set(map(tuple, ours.tolist())) == codes


def test_a_missing_list_is_missing_in_each_place():
    ours, _ = both(pa.array([[1.0], None], pa.list_(pa.float64())), WHOLE)
    assert ours[:, 1:].tolist() == [[MISSING, MISSING]] * 2


@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    [
        (value_sql, "_half_even", lambda y, kind: TryCast(call("floor", y), SqlType.BIGINT)),
        (rows_module, "_present", lambda name, value: f"coalesce({name}, {ZERO[name]}) AS {name}"),
    ],
    ids=["rounded down", "missing is zero"],
)
def test_a_wrong_reading_is_noticed(module, name, wrong, monkeypatch):
    monkeypatch.setattr(module, name, wrong)
    ours, expected = both(pa.array(UGLY, pa.list_(pa.float64())), WHOLE)
    assert ours.tolist() != expected.tolist()


@pytest.mark.parametrize(
    "stored",
    [pa.array(["[1, 2]"]), pa.array([[[1.0], [2.0]]]), pa.array([["1", "2"]]), pa.array([1.0])],
    ids=lambda stored: str(stored.type),
)
def test_what_is_no_flat_list_of_numbers_is_refused_when_it_is_opened(stored):
    declared, _, _ = tables(stored, WHOLE)
    with pytest.raises(InvalidDeclaration, match=r"Array\(2, -3, 300\)"):
        DuckDB(declared)


QUESTIONS = [
    "SELECT COUNT(p) AS n FROM t",
    "SELECT COUNT(DISTINCT p) AS n FROM t",
    "SELECT SUM(p) AS n FROM t",
    "SELECT MAX(p) AS n FROM t",
    "SELECT p, COUNT(*) AS n FROM t GROUP BY p",
    "SELECT COUNT(*) AS n FROM t WHERE p IS NULL",
    "SELECT COUNT(*) AS n FROM t WHERE p = 3",
    "SELECT COUNT(*) AS n FROM t WHERE p IN (3)",
    "SELECT COUNT(*) AS n FROM t WHERE p LIKE 'a%'",
    "SELECT COUNT(*) AS n FROM t WHERE p = n",
    "SELECT COUNT(*) AS n FROM t WHERE p + 1 > 2",
    "SELECT COUNT(*) AS n FROM t WHERE COALESCE(p, 0) > 2",
    "SELECT AVG(CASE WHEN n = 1 THEN p END) AS a FROM t",
    "SELECT COUNT(*) AS n FROM (SELECT p FROM t UNION ALL SELECT p FROM t) AS q",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_sql_refuses_an_array_by_its_name(question, tmp_path):
    declared, _, _ = tables(pa.array(UGLY, pa.list_(pa.float64())), WHOLE)
    budget = sf.Budget(1)
    with sf.connect(declared, dataset="d", budget=budget, ledger=tmp_path / "l.db") as session:
        with pytest.raises(UnsupportedSql, match=r"p is an sf\.Array"):
            session.query(question, epsilon=1)
        assert session.budget.left == 1


def test_an_array_in_a_sub_query_of_a_person_is_refused(tmp_path):
    declared, _, _ = tables(pa.array(UGLY, pa.list_(pa.float64())), WHOLE)
    inner = "SELECT who, MAX(p) AS m FROM t GROUP BY who"
    with sf.connect(
        declared, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db"
    ) as session:
        with pytest.raises(UnsupportedSql):
            session.query(f"SELECT COUNT(*) AS n FROM ({inner}) AS q WHERE m > 1", epsilon=1)
        assert session.budget.left == 1


def test_other_columns_are_asked_beside_an_array(tmp_path):
    declared, _, _ = tables(pa.array(UGLY, pa.list_(pa.float64())), WHOLE)
    budget = sf.Budget(10)
    with sf.connect(declared, dataset="d", budget=budget, ledger=tmp_path / "l.db") as session:
        assert len(session.query("SELECT n, COUNT(*) AS c FROM t GROUP BY n", epsilon=9)) == 3
        with pytest.raises(MissingDeclaration, match=r"'p' is an sf\.Array"):
            session.marginals("t", [("n", "p")], epsilon=1)


def test_no_prepared_layout_has_an_array(tmp_path):
    values = pa.array(UGLY, pa.list_(pa.float64()))
    path = tmp_path / "t.parquet"
    pq.write_table(tables(values, WHOLE)[2], path)
    declared, _, _ = tables(values, WHOLE, path)
    prepared = sf.prepare(declared, dataset="d", folder=tmp_path / "prepared")
    options = {"dataset": "d", "budget": sf.Budget(10), "ledger": tmp_path / "l.db"}
    with sf.connect(declared, **options, prepared=prepared) as session:
        assert len(session.query("SELECT n, COUNT(*) AS c FROM t GROUP BY n", epsilon=9)) == 3
    (layout,) = prepared.rglob("*.parquet")
    assert sum("n" in name for name in pq.read_schema(layout).names) > 1
    assert not any("p" in name.split() for name in pq.read_schema(layout).names)


def test_the_codes_of_a_column_of_lists_are_written_as_duckdb_prints_them():
    column = Column("p", HALVES)
    assert code_of(column, [1.0, 2.5]) == "[2, 5]"
    assert code_of(column, "[1, 2]") is code_of(column, ["1", 2]) is code_of(column, [1]) is None
