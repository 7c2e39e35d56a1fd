# SPDX-License-Identifier: Apache-2.0
"""Data that once made a question fail, or that was read as something else."""

import decimal
import logging
from contextlib import closing
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.inspect_columns import read_through
from sfumato.errors import EngineFailed, InvalidSource

EPSILON = 1000


def ask(tmp_path, table, sql, **declared):
    with sf.connect(
        {"t": sf.Table(table, **declared)},
        dataset="d",
        budget=sf.Budget(10**6),
        ledger=tmp_path / "l.db",
    ) as session:
        return session.query(sql, epsilon=EPSILON).rows[0][0]


@pytest.mark.parametrize(
    ("width", "value"),
    [((38, 37), "9.7"), ((38, 38), "0.6"), ((38, 20), "999999999999999999.7")],
)
@pytest.mark.parametrize("declared", ["text", "number", "unit"])
def test_a_decimal_at_the_edge_of_its_width_is_read(tmp_path, width, value, declared):
    table = pa.table({"x": pa.array([decimal.Decimal(value)], pa.decimal128(*width))})
    options = {
        "text": {"columns": {"x": sf.Text()}},
        "number": {"columns": {"x": sf.Real(0, 10, missing="N")}},
        "unit": {"columns": {"x": sf.Text()}, "unit": sf.Unit("x", max_rows=1)},
    }[declared]
    assert ask(tmp_path, table, "SELECT COUNT(x) FROM t", **options) == 1


@pytest.mark.parametrize("resolution", ["s", "ms"])
def test_a_timestamp_beyond_every_calendar_is_read(tmp_path, resolution):
    table = pa.table({"x": pa.array([2**62], pa.timestamp(resolution))})
    assert ask(tmp_path, table, "SELECT COUNT(*) FROM t", columns={"x": sf.Text()}) == 1


@pytest.mark.parametrize(
    "kind", [sf.Real(0, 10), sf.Text(), sf.Date("2000-01-01", "2001-01-01"), sf.Category("a")]
)
def test_a_column_of_nothing_but_null_is_no_error(tmp_path, kind):
    table = pa.table({"x": pa.nulls(3)})
    assert ask(tmp_path, table, "SELECT COUNT(x) FROM t", columns={"x": kind}) == 0


def test_a_damaged_text_is_shown_to_the_owner_by_check(tmp_path):
    raw = pa.array([b"a", b"\xff\xfe"])
    broken = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    pq.write_table(pa.table({"y": broken}), tmp_path / "x.parquet")
    tables = {"t": sf.Table(tmp_path / "x.parquet", columns={"y": sf.Text()})}
    engine = DuckDB(tables)
    with pytest.raises(InvalidSource, match="cannot be read to its end"):
        read_through(engine, tables)
    engine.close()


@pytest.mark.parametrize(
    "lines",
    [
        'a,n\ny,5\n"x,5\n' + "y,5\n" * 50,
        "a,n\ny,5\nx\ry,5\n",
        "a,n\ny,5\ny\n",
        "a,n\ny,5\ny,5,6\n",
        "a,n\ny,5\r\nz,6\n",
        'a,n\ny,5\nz,"6',
        "a,n\ny,5\n" + "z" * 3_000_000 + ",1\n",
    ],
    ids=["open quote", "bare cr", "short", "long", "two line ends", "cut", "endless"],
)
def test_a_csv_in_which_one_line_could_change_another_is_refused(tmp_path, lines, caplog):
    path = tmp_path / "x.csv"
    path.write_bytes(lines.encode())
    with (
        caplog.at_level(logging.ERROR, "sfumato.owner"),
        pytest.raises(InvalidSource, match="not well-formed") as caught,
    ):
        DuckDB({"t": sf.Table(path, columns={"a": sf.Text()})})
    assert "zzz" not in caplog.text
    assert caught.value.__context__ is None
    assert "x.csv is not well-formed" in caplog.text


def test_a_path_is_no_pattern(tmp_path):
    (tmp_path / "p1.csv").write_text("a\n1\n")
    (tmp_path / "p[1].csv").write_text("a\n1\n")
    with pytest.raises(InvalidSource, match="pattern"):
        DuckDB({"t": sf.Table(tmp_path / "p[1].csv")})


def test_a_folder_name_does_not_overwrite_a_column(tmp_path):
    folder = tmp_path / "x=7"
    folder.mkdir()
    pq.write_table(pa.table({"x": [1, 1, 1]}), folder / "f.parquet")
    assert (
        ask(
            tmp_path, folder / "f.parquet", "SELECT SUM(x) FROM t", columns={"x": sf.Integer(0, 10)}
        )
        == 3
    )


def test_an_engine_failure_holds_nothing_of_its_cause(tmp_path):
    table = sf.Table(pa.table({"x": [1]}), columns={"x": sf.Integer(0, 10)})
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db"
    ) as session:
        session._engine.close()
        with pytest.raises(EngineFailed) as caught:
            session.query("SELECT SUM(x) FROM t", epsilon=1)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_the_statement_of_a_preview_does_not_know_how_the_data_is_stored(tmp_path):
    shown = set()
    for place, values in enumerate(([1, 2, 1], [1.0, 2.0, None], ["1", "2", "1"])):
        table = sf.Table(pa.table({"x": values}), columns={"x": sf.Category(1, 2)})
        with sf.connect(
            {"t": table}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / f"{place}.db"
        ) as session:
            shown.add(
                session.preview("SELECT x, COUNT(*) FROM t GROUP BY x", epsilon="0.1").statement
            )
    assert len(shown) == 1


def test_another_working_folder_does_not_lose_the_data(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("a\n1\n")
    monkeypatch.chdir(tmp_path)
    table = sf.Table("x.csv", columns={"a": sf.Integer(0, 9)})
    with sf.connect({"t": table}, dataset="d", budget=sf.Budget(1), ledger="l.db") as session:
        monkeypatch.chdir("/")
        assert len(session.query("SELECT COUNT(*) FROM t", epsilon="0.5").rows) == 1


def test_a_frame_that_arrow_cannot_read_leaves_no_value_in_the_error():
    mixed = pd.DataFrame({"x": [1, "a private text"]})
    with pytest.raises(InvalidSource) as caught:
        DuckDB({"t": sf.Table(mixed, columns={"x": sf.Integer(0, 9)})})
    assert "private" not in str(caught.value)
    assert caught.value.__context__ is None


# --- two columns of one name: DuckDB renames the second, and a declaration would mean either ------


def twice(names: list[str]) -> pa.Table:
    return pa.table([pa.array([place]) for place in range(len(names))], names=names)


def sources(folder: Path, names: list[str]) -> dict[str, object]:
    """The same columns in every form that can hold them."""
    table = twice(names)
    (folder / "files").mkdir()
    for place in (folder / "one.parquet", folder / "files" / "one.parquet"):
        pq.write_table(table, place)
    (folder / "one.csv").write_text(
        f"{','.join(names)}\n{','.join('1' * len(names))}\n", encoding="utf-8"
    )
    frame = pd.DataFrame([range(len(names))], columns=names)
    forms = {
        "arrow": table,
        "parquet": folder / "one.parquet",
        "folder": folder / "files",
        "csv": folder / "one.csv",
    }
    return {**forms, "reader": table.to_reader(), "pandas": frame}


@pytest.mark.parametrize(
    ("names", "named"), [(["a", "a"], "'a'"), (["b", "a", "B"], "'B'"), (["a", "a_1", "A"], "'A'")]
)
def test_a_column_that_is_there_twice_is_named_to_the_owner_alone(tmp_path, names, named, caplog):
    for form, source in sources(tmp_path, names).items():
        with pytest.raises(InvalidSource, match="has one name twice"):
            DuckDB({"t": sf.Table(source, columns={"a": sf.Integer(0, 9)})})
        assert form
    assert f"both called {named}" in caplog.text


def test_a_polars_frame_with_names_that_differ_in_their_case_is_refused():
    with pytest.raises(InvalidSource, match="has one name twice"):
        DuckDB({"t": sf.Table(pl.DataFrame({"a": [1], "A": [2]}), columns={"a": sf.Integer(0, 9)})})


def test_names_inside_a_column_are_not_those_of_columns(tmp_path):
    nested = pa.table({"s": [{"a": 1, "b": {"a": 2}}], "l": [[{"a": 3}]], "a": [4]})
    pq.write_table(nested, tmp_path / "nested.parquet")
    for source in (nested, tmp_path / "nested.parquet"):
        with closing(DuckDB({"t": sf.Table(source, columns={"a": sf.Integer(0, 9)})})):
            pass
    twice_after = pa.table([nested["s"], nested["a"], nested["a"]], names=["s", "a", "a"])
    pq.write_table(twice_after, tmp_path / "after.parquet")
    with pytest.raises(InvalidSource, match="has one name twice"):
        DuckDB({"t": sf.Table(tmp_path / "after.parquet", columns={"a": sf.Integer(0, 9)})})


@pytest.mark.parametrize(("separator", "shown"), [(";", "';'"), ("\t", r"'\\t'"), ("|", r"'\|'")])
@pytest.mark.parametrize("value", ["1", "1,5"])
def test_another_separator_than_the_comma_is_named(tmp_path, separator, shown, value):
    path = tmp_path / "data.csv"
    path.write_text(f"a{separator}b\n{value}{separator}2\n", encoding="utf-8")
    with pytest.raises(sf.SfumatoError, match=f"separated by {shown}: declare delimiter={shown}"):
        DuckDB({"t": sf.Table(path, columns={"a": sf.Integer(0, 9)})})
    declared = sf.Table(path, columns={"a": sf.Integer(0, 9)}, delimiter=separator)
    with closing(DuckDB({"t": declared})):
        pass
