# SPDX-License-Identifier: Apache-2.0
"""What once broke between a question and the engine."""

from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.errors import EngineFailed, InvalidSource, Refused, SfumatoError, SqlSyntaxError
from sfumato.metadata.dataset import Dataset
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Compare, Comparison, Constant
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.sql import understand

COLS = {"region": sf.Category("a", "b"), "age": sf.Integer(0, 99)}
DATA = Dataset(
    "d",
    {"events": sf.Table("x.csv", unit=sf.Unit("user_id", max_rows=3, max_groups=2), columns=COLS)},
)


def run(source, kind, text, unit=None):
    data = Dataset("d", {"t": sf.Table(source, unit=unit, columns={"x": kind})})
    plan = compile_plan(understand(text, data).raw, data, Norm.L1)
    return DuckDB(data.tables).run(plan, "key"), plan


def test_tables_whose_names_differ_in_case_are_not_mixed_up():
    tables = {"A": sf.Table({"x": [1] * 5}), "a": sf.Table({"x": [1] * 7})}
    try:
        data = Dataset("d", tables)
        engine = DuckDB(tables)
    except SfumatoError:
        return
    plan = compile_plan(understand("SELECT COUNT(*) FROM A", data).raw, data, Norm.L1)
    assert engine.run(plan, "k") == ({(): (5,)},)


@pytest.mark.parametrize(
    "kind", [sf.Category("1"), sf.Boolean(), sf.Text(), sf.Integer(0, 1, missing="N")]
)
def test_a_narrow_decimal_does_not_fail(kind):
    cells = pa.table({"x": pa.array([Decimal("0." + "9" * 38)], pa.decimal128(38, 38))})
    run(cells, kind, "SELECT COUNT(x) FROM t WHERE x IS NOT NULL")


def test_an_early_timestamp_does_not_fail():
    cells = pa.table({"x": pa.array([-(2**63) + 2], pa.int64()).cast(pa.timestamp("us"))})
    run(cells, sf.Text(), "SELECT COUNT(*) FROM t WHERE x = 'a'")


@pytest.mark.parametrize("kind", [sf.Category("a"), sf.Text(missing="N"), sf.Integer(0, 1)])
def test_a_uuid_does_not_fail(tmp_path, kind):
    path = tmp_path / "u.parquet"
    duckdb.connect().execute(f"COPY (SELECT uuid() AS x) TO '{path}'")
    try:
        run(path, kind, "SELECT COUNT(*), COUNT(x) FROM t WHERE x IS NOT NULL")
    except EngineFailed:
        raise
    except SfumatoError:
        pass


def test_one_row_does_not_decide_which_others_are_missing(tmp_path):
    # DuckDB took LIKE of a text that could be missing for a test of whether the file has one
    counts = []
    for other in ("NULL", "'c'"):
        path = tmp_path / f"{len(counts)}.parquet"
        duckdb.connect().execute(
            f"COPY (SELECT unnest(['N', 'N', 'Na', {other}]) AS x) TO '{path}'"
        )
        counts.append(
            run(path, sf.Text(missing="N"), "SELECT COUNT(*) FROM t WHERE x LIKE 'N%'")[0]
        )
    assert counts == [({(): (1,)},)] * 2


@pytest.mark.parametrize("name", ["g[1].csv", "g*.csv"])
def test_a_path_with_glob_characters_is_that_file(tmp_path, name):
    (tmp_path / "g1.csv").write_text("x\n1\n")
    (tmp_path / name).write_text("x\n1\n1\n")
    try:
        found = run(tmp_path / name, sf.Integer(0, 9), "SELECT COUNT(*) FROM t")[0]
    except InvalidSource:
        return
    assert found == ({(): (2,)},)


@pytest.mark.parametrize(
    ("value", "kind"),
    [("\x0b5", sf.Integer(0, 9)), ("0000-01-01", sf.Date("2000-01-01", "2001-01-01"))],
)
def test_both_engines_read_a_text_alike(value, kind):
    cells = pa.table({"x": [value]})
    found, plan = run(cells, kind, "SELECT COUNT(x) FROM t")
    assert found == Reference({"t": cells.to_pylist()}).run(plan, "key")


def test_both_engines_print_a_decimal_alike():
    cells = pa.table({"x": pa.array([Decimal("0.0000001")], pa.decimal128(10, 7))})
    found, plan = run(cells, sf.Category("0.0000001"), "SELECT COUNT(x) FROM t")
    assert found == Reference({"t": cells.to_pylist()}).run(plan, "key")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM events GROUP BY TRUE",
        "SELECT COUNT(*) FROM events ORDER BY TRUE",
        "SELECT COUNT(*) " + "+ COUNT(*)" * 3000 + " FROM events",
        "SELECT COUNT(*) FROM events HAVING COUNT(*) > 'a'",
        "SELECT region, COUNT(*) FROM events GROUP BY region HAVING (region) < 'a'",
        "SELECT region AS s, COUNT(*) FROM events GROUP BY region HAVING s < 'a'",
        "SELECT COUNT(*) FROM events HAVING COUNT(*) BETWEEN 'a' AND 'b'",
        "SELECT COUNT(DISTINCT foo.user_id) FROM events",
        "SELECT foo.region, COUNT(*) FROM events GROUP BY region",
        "SELECT SUM(age) FROM events AS e(age)",
    ],
)
def test_a_statement_is_refused_before_it_costs(text):
    with pytest.raises(Refused):
        understand(text, DATA)


@pytest.mark.parametrize("test", ["r = 'a'"])
def test_a_key_in_brackets_or_by_alias_is_the_key(test):
    one = understand(
        f"SELECT region AS r, COUNT(*) FROM events GROUP BY region HAVING {test}", DATA
    )
    other = understand(
        "SELECT region AS r, COUNT(*) FROM events GROUP BY region HAVING region = 'a'", DATA
    )
    assert one.output == other.output


def test_names_of_columns_differ():
    output = understand(
        "SELECT COUNT(*) AS a, COUNT(*) AS a, COUNT(*) AS a_2 FROM events", DATA
    ).output
    assert len({item.name for item in output.items}) == 3


def test_an_open_quote_shows_its_line():
    with pytest.raises(SqlSyntaxError) as refusal:
        understand("SELECT COUNT(*)\nFROM events\nWHERE region = 'abc", DATA)
    assert refusal.value.line == 3


def test_an_alias_in_group_by_ignores_case_as_everywhere():
    assert understand("SELECT region AS r, COUNT(*) FROM events GROUP BY R", DATA).raw.keys


def test_evaluation_of_two_kinds_is_total():
    evaluate(Compare(Comparison.LT, Constant(1), Constant("a")), lambda leaf: None)


@pytest.mark.parametrize(
    "bounds", [("0", "1e399", None), ("0", "1e-395", "1e-400"), (1.5, 2.5, 1), (-0.5, 0.5, 1)]
)
def test_a_real_that_no_engine_can_hold_is_refused_when_declared(bounds):
    low, high, step = bounds
    try:
        kind = sf.Real(low, high, step=step)
    except SfumatoError:
        return
    found, plan = run({"x": [1.0]}, kind, "SELECT SUM(x), AVG(x) FROM t")
    assert found == Reference({"t": [{"x": 1.0}]}).run(plan, "key")
