# SPDX-License-Identifier: Apache-2.0
"""A value of any type of Spark has the code of the reference, and no value can make a reading
fail.
"""

import datetime
import json
import math
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import spark_source
from sfumato.engines.reference import Reference
from sfumato.engines.spark import SparkEngine
from sfumato.engines.spark_source import declared, read
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountRows, CountUnits, CountValues, Sum
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Filter, Scan
from sfumato.plan.scalar import Compare, Comparison, Constant, Field, IsNull
from sfumato.plan.value import GroupKey, Value
from tests.contracts.spark import interpreted
from tests.contracts.world import plan
from tests.engines.conftest import flat

EDGES = json.loads((Path(__file__).parent / "corpus" / "texts.json").read_text(encoding="utf-8"))
KINDS = (
    sf.Integer(-3, 9),
    sf.Integer(0, 2, missing=("-1", "0.5", "")),
    sf.Integer(-(2**52), 2**52),
    sf.Real(-1, 2, step="0.25"),
    sf.Real(-8, 8, step=2),
    sf.Real("-0.1", 7, missing=("nan", "7", "inf")),
    sf.Real(0, 10**15, step="0.25"),
    sf.Date("1969-12-30", "1970-01-02", missing="1970-01-01"),
    sf.Date("0001-01-01", "9999-12-31"),
    sf.Date("0001-01-01", "9999-12-31", format="%d/%m/%Y"),
    sf.Date("1900-01-01", "2100-12-31", format="%m.%d.%Y", missing="1.2.2024"),
    sf.Date("1900-01-01", "2100-12-31", format="%Y%m%d"),
    sf.Category("0", "-1", "1.5", "true", "空", "1970-01-01", "nan", "inf", missing="2"),
    sf.Boolean(missing="x"),
    sf.Text(missing=("0", "nan")),
)
DAYS = [2932896, -719162, -141427, -2, -1, 0, 1, None]
CELLS = {
    "text": pa.array([*EDGES, "1970-01-01", "true", None]),
    "double": pa.array(
        [
            math.nan,
            math.inf,
            -math.inf,
            5e-324,
            1.8e308,
            -0.0,
            0.1,
            0.5,
            1.5,
            2.0,
            0.125,
            2.0**63,
            2.0**52 + 0.5,
            -1e-5,
            None,
        ]
    ),
    "float": pa.array(
        [math.nan, math.inf, -math.inf, 1e-45, 3.4e38, -0.0, 0.1, 1.5, 2.0, 7.0, None], pa.float32()
    ),
    "bigint": pa.array([2**63 - 1, -(2**63), 2**53 + 1, -1, 0, 1, 2, 9, None]),
    "tinyint": pa.array([127, -128, -1, 0, 2, None], pa.int8()),
    "huge decimal": pa.array(
        [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0), Decimal(2), None],
        pa.decimal128(38, 0),
    ),
    "decimal": pa.array(
        [Decimal("99.99999999"), Decimal("-0.00000001"), Decimal("1.5"), Decimal(2), None],
        pa.decimal128(10, 8),
    ),
    "fraction": pa.array(
        [Decimal("0." + "9" * 38), Decimal("0." + "0" * 37 + "1"), Decimal(0), None],
        pa.decimal128(38, 38),
    ),
    "nothing": pa.array([None, None], pa.null()),
    "boolean": pa.array([True, False, None]),
    "date": pa.array(DAYS, pa.int32()).cast(pa.date32()),
    "timestamp": pa.array(
        [
            *(None if each is None else each * 86_400_000_000 + 1_500_000 for each in DAYS),
            0,
            -1,
            86_400_000_000 - 1,
        ]
    ).cast(pa.timestamp("us")),
}


PLACE = sf.Integer(0, len(EDGES) + 9)


def held(spark, source):
    """The declarations that a type of Spark can be held under."""
    found = []
    for kind in KINDS:
        tables = {"t": sf.Table(source, columns={"x": kind})}
        with suppress(InvalidDeclaration):
            SparkEngine(tables, spark).close()
            found.append(kind)
    return found


def odd(spark, physical):
    """The declarations under which a row has another code than the reference's, or which fail."""
    cells = CELLS[physical]
    kinds = held(spark, pa.table({"x": cells}))
    assert len(kinds) >= 3
    source = pa.table(
        {"place": range(len(cells)), **{f"x{index}": cells for index in range(len(kinds))}}
    )
    columns = (
        Column("place", PLACE),
        *(Column(f"x{index}", kind) for index, kind in enumerate(kinds)),
    )
    scan, oracle = Scan("t", "", columns), Reference({"t": source.to_pylist()})
    keys = (GroupKey(Value.of(columns[0]), None),)
    texts = [each for each in columns if isinstance(each.type, sf.Text)]
    codes = [
        Value(each.name, numbers(each.type), Field(each))
        for each in columns[1:]
        if each not in texts
    ]
    shown = [
        (each.name, aggregate) for each in codes for aggregate in (Sum(each), CountValues(each))
    ]
    found = []
    with closing(
        interpreted(
            SparkEngine({"t": sf.Table(source, columns={c.name: c.type for c in columns})}, spark)
        )
    ) as engine:
        try:
            for each in texts:
                bounded = plan(
                    scan, CountRows(), keys=(*keys, GroupKey(Value.of(each), None, True))
                )
                found += (
                    [] if engine.run(bounded, "key") == oracle.run(bounded, "key") else [each.name]
                )
            bounded = plan(scan, *(aggregate for _, aggregate in shown), keys=keys)
            parts = zip(shown, engine.run(bounded, "key"), oracle.run(bounded, "key"), strict=True)
            return found + [name for (name, _), one, other in parts if one != other]
        except EngineFailed:
            return ["a row makes it fail"]


def numbers(kind):
    """The codes of a type, as numbers to be added up."""
    return sf.Integer(kind.lower_code, max(kind.upper_code, kind.lower_code + 1))


QUICK = {"text", "double", "decimal"}


@pytest.mark.parametrize(
    "physical",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in CELLS],
)
def test_the_engine_gives_the_codes_of_the_reference(spark, physical):
    assert odd(spark, physical) == []


def test_no_value_can_make_a_reading_fail(spark):
    cells = CELLS["text"]
    source = pa.table({"place": range(len(cells)), "x": cells, "who": cells})
    value = Value.of(Column("x", sf.Text()))
    for unit in (sf.Unit("who"), sf.Unit(["who", "x"])):
        tables = {"t": sf.Table(source, unit=unit, columns={"x": sf.Text()})}
        scan = Scan("t", "", (Column("x", sf.Text()),), owner_of(Dataset("d", tables), "t"))
        bounded = plan(
            scan,
            CountUnits(),
            CountRows(),
            keys=(GroupKey(value, None, True),),
            limits=(2, 2, None),
            fine=2**20,
        )
        with closing(interpreted(SparkEngine(tables, spark))) as engine:
            assert engine.run(bounded, "key") == Reference({"t": source.to_pylist()}).run(
                bounded, "key"
            )


def test_a_double_that_is_read_as_java_writes_it_is_noticed(spark, monkeypatch):
    monkeypatch.setattr(
        spark_source, "_double", lambda raw, kind: ("VARCHAR", f"CAST({raw} AS STRING)")
    )
    assert odd(spark, "double")


# --- what files say of their numbers -----------------------------------------------------------

AMONG = (math.nan, 0.375, -1.0, 2.0, 7.5, math.inf, -math.inf)
MEANT = (
    sf.Real(-1, 2, step="0.25"),
    sf.Integer(-3, 3),
    sf.Real(0, 8, missing="7.5"),
    sf.Category("2", "inf", "nan"),
)


def files(folder, width):
    """Parquet files of a number, or of NaN and a number, whole or in pieces, as the tables of one
    dataset.
    """
    tables, rows = {}, {}
    for count, cells in enumerate(
        [*((each,) for each in AMONG), *((math.nan, each) for each in AMONG[1:])]
    ):
        path, name = folder / f"{count}.parquet", f"t{count}"
        source = pa.table({"x": pa.array(cells, width)})
        pq.write_table(source, path, row_group_size=1 + count % 3)
        tables[name] = sf.Table(path, columns={"x": MEANT[count % len(MEANT)]})
        rows[name] = source.to_pylist()
    return tables, rows


@pytest.mark.long
@pytest.mark.parametrize("width", [pa.float64(), pa.float32()], ids=str)
def test_nan_is_missing_whatever_a_file_says_of_its_numbers(spark, tmp_path, width):
    tables, rows = files(tmp_path, width)
    oracle, wrong = Reference(rows), []
    with closing(interpreted(SparkEngine(tables, spark))) as engine:
        for name, table in tables.items():
            column = Column("x", table.columns["x"])
            scan, field = Scan(name, "", (column,)), Field(column)
            above = Filter(
                scan, Compare(Comparison.GE, field, Constant(column.type.lower_code + 1))
            )
            nothing = Filter(scan, IsNull(field))
            key = GroupKey(Value.of(column), None, True)
            for bounded in (plan(above, CountRows(), keys=(key,)), plan(nothing, CountRows())):
                if engine.run(bounded, "key") != oracle.run(bounded, "key"):
                    wrong.append((name, bounded))
    assert not wrong


def above_one(spark, folder):
    """How many of NaN and 0.375 Spark takes for more than 1, out of a file that says at most
    0.375.
    """
    path = folder / "two.parquet"
    pq.write_table(pa.table({"x": [math.nan, 0.375]}), path)
    tables = {"t": sf.Table(path, columns={"x": sf.Real(0, 1)})}
    with closing(SparkEngine(tables, spark)) as engine:
        return engine._session.sql(
            f"SELECT x FROM {engine._reads['t'].rows.sql} WHERE x > 1D"
        ).count()


def test_a_file_is_not_asked_for_a_number(spark, tmp_path):
    assert above_one(spark, tmp_path) == 1


def test_a_double_that_the_file_is_asked_for_is_noticed(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_source, "_opaque", lambda raw: raw)
    assert above_one(spark, tmp_path) == 0


# --- texts that are none -----------------------------------------------------------------------


def texts(spark):
    """How often each text stands in a column with bytes that are none, and in one that ignores
    case.
    """
    frame = spark.sql(
        "SELECT CAST(unhex(b) AS STRING) AS x, CAST(CAST(unhex(b) AS STRING) AS STRING COLLATE UTF8_LCASE) AS y "
        "FROM VALUES ('61'), ('41'), ('FF'), ('FE'), ('C3A9') AS t(b)"
    )
    frame.write.mode("overwrite").saveAsTable("odd_texts")
    tables = {"t": sf.Table(spark.table("odd_texts"), columns={"x": sf.Text(), "y": sf.Text()})}
    columns = tuple(Column(name, sf.Text()) for name in "xy")
    with closing(interpreted(SparkEngine(tables, spark))) as engine:
        scan = Scan("t", "", columns)
        keys = [GroupKey(Value.of(each), None, True) for each in columns]
        found = [
            flat(bounded, engine.run(bounded, "key"))
            for bounded in (plan(scan, CountRows(), keys=(key,)) for key in keys)
        ]
    spark.sql("DROP TABLE odd_texts")
    return found


def test_bytes_that_are_no_text_are_missing_and_case_is_told_apart(spark):
    assert texts(spark) == [{(None,): (2,), ("A",): (1,), ("a",): (1,), ("é",): (1,)}] * 2


def test_bytes_that_are_taken_for_text_are_noticed(spark, monkeypatch):
    plain = spark_source._readable

    def believing(*arguments):
        kind, sql = plain(*arguments)
        return kind, sql.removeprefix("try_validate_utf8")

    monkeypatch.setattr(spark_source, "_readable", believing)
    with pytest.raises(UnicodeDecodeError):
        texts(spark)


# --- declarations ------------------------------------------------------------------------------

DAY = sf.Date("2000-01-01", "2001-01-01")
UNHELD = [
    (DAY, pa.int64()),
    (DAY, pa.float64()),
    (DAY, pa.bool_()),
    (sf.Integer(0, 1), pa.date32()),
    (sf.Real(0, 1), pa.timestamp("us")),
    (sf.Text(), pa.binary()),
    (sf.Text(), pa.float64()),
    (sf.Text(), pa.list_(pa.int64())),
    (sf.Category("a"), pa.timestamp("us", "UTC")),
    (sf.Category("no", "yes"), pa.bool_()),
    (sf.Category("no", "yes"), pa.int32()),
    (sf.Text(), pa.struct([("x", pa.int64())])),
]


@pytest.mark.parametrize(("kind", "physical"), UNHELD, ids=repr)
def test_a_declaration_that_the_data_cannot_hold_is_refused(spark, kind, physical):
    tables = {"t": sf.Table(pa.table({"x": pa.array([None], physical)}), columns={"x": kind})}
    with pytest.raises(InvalidDeclaration, match="is declared as") as refusal:
        SparkEngine(tables, spark)
    assert refusal.value.remedy


class Kept:
    """A field of a schema."""

    def __init__(self, name, kind):
        self.name, self.dataType, self.kind = name, self, kind

    def simpleString(self):
        return self.kind


def test_a_unit_that_is_a_fraction_is_refused():
    tables = {"t": sf.Table("t.parquet", unit=sf.Unit("who"), columns={"x": sf.Text()})}
    with pytest.raises(InvalidDeclaration, match="names units") as refusal:
        read(tables, "t", "v", [Kept("who", "double"), Kept("x", "string")])
    assert "cast the column" in refusal.value.remedy


def test_the_columns_that_are_there_are_told_to_the_owner_alone(caplog):
    tables = {"t": sf.Table("t.parquet", columns={"x": sf.Text()})}
    with pytest.raises(InvalidDeclaration, match="has no column 'x'") as refusal:
        read(tables, "t", "v", [Kept("X", "string"), Kept("b", "int")])
    assert "differs in the case" in str(refusal.value) and "'X'" not in str(refusal.value)
    assert "has the columns: 'X', 'b'" in caplog.text


def test_two_columns_of_one_name_are_refused():
    tables = {"t": sf.Table("t.parquet", columns={"x": sf.Text()})}
    with pytest.raises(InvalidSource, match="two columns of one name"):
        read(tables, "t", "v", [Kept("x", "string"), Kept("x", "int")])


def test_what_is_shown_follows_from_the_declarations_alone():
    tables = {
        "people": sf.Table(
            "p.parquet",
            unit=sf.Unit("who"),
            columns={"n": sf.Integer(0, 9), "d": DAY, "t": sf.Text()},
        ),
        "stays": sf.Table(
            "s.parquet", unit=sf.Unit("patient", via="people.who", key="id"), columns={}
        ),
    }
    found = declared(tables, "people")
    assert found.source.types == {
        "n": "DOUBLE",
        "d": "DATE",
        "t": "VARCHAR",
        "who": "VARCHAR",
        "id": "VARCHAR",
    }
    assert found.rows.sql == "`people`"
    assert declared(tables, "stays").rows.columns == {"patient": spark_source.Kind.VARCHAR}


def test_a_moment_with_a_time_zone_says_what_to_do(spark):
    moment = pa.table({"x": pa.array([datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)])})
    with pytest.raises(InvalidDeclaration, match="timestamp") as refusal:
        SparkEngine({"t": sf.Table(moment, columns={"x": DAY})}, spark)
    assert "timestamp_ntz" in refusal.value.remedy


def test_no_question_reads_an_array_so_spark_does_not(spark):
    tables = {"t": sf.Table(None, columns={"a": sf.Integer(0, 9), "p": sf.Array(2, 0, 9)})}
    frame = spark.createDataFrame([(1, [1, 2]), (2, None)], "a INT, p ARRAY<INT>")
    assert set(read(tables, "t", "v", frame.schema).source.types) == {"a"}
    assert set(declared(tables, "t").source.types) == {"a"}
