# SPDX-License-Identifier: Apache-2.0
"""Spark reads the moments that ``zoneinfo`` names, and computes their parts like the reference."""

import datetime
from contextlib import closing

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import moment_sql
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.engines.spark import SparkEngine
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Sum
from sfumato.plan.relation import Scan
from sfumato.plan.scalar import Field
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.sql import understand
from tests.contracts.spark import interpreted
from tests.contracts.world import plan
from tests.contracts.zones import NAIVE, around, first_shown, shown
from tests.engines.test_moment_sql import later

SECOND = datetime.timedelta(seconds=1)
ZONES = ("Europe/London", "Australia/Lord_Howe", "Africa/Casablanca")


def cells(zone):
    """Local times around every fifth change of clocks, and the moments themselves."""
    seconds = [second for place, second in enumerate(around(zone)) if place // 12 % 5 == 0]
    clocks = [shown(zone, second) - 3600 * SECOND for second in seconds]
    return seconds, clocks


def table(zone):
    seconds, clocks = cells(zone)
    return pa.table(
        {
            "place": range(len(seconds)),
            "day": pa.array([clock.date() for clock in clocks], pa.date32()),
            "bare": [str(clock.date()) for clock in clocks],
            "bare_written": [f"{clock:%d/%m/%Y}" for clock in clocks],
            "text": [f"{clock}.5" for clock in clocks],
            "local": pa.array(clocks, pa.timestamp("us")),
            "written": [f"{clock:%d/%m/%Y %H:%M:%S}" for clock in clocks],
            "known": [f"{NAIVE + second * SECOND}Z" for second in seconds],
            "moment": pa.array([second * 10**6 for second in seconds], pa.timestamp("us", zone)),
        }
    )


def codes(spark, zone):
    """What Spark reads of each cell, less its lower bound, and how many values there are."""
    source = table(zone)
    kind = sf.Timestamp("1970-01-01", "2037-12-31", zone=zone)
    names = ("text", "local", "written", "known", "moment", "day", "bare", "bare_written")
    place = Column("place", sf.Integer(0, len(source)))
    formed = sf.Timestamp("1970-01-01", "2037-12-31", zone=zone, format="%d/%m/%Y %H:%M:%S")
    columns = [Column(name, formed if "written" in name else kind) for name in names]
    whole = sf.Integer(kind.lower_code, kind.upper_code)
    asked = [Sum(Value(each.name, whole, Field(each))) for each in columns]
    tables = {"t": sf.Table(source, columns={each.name: each.type for each in (place, *columns)})}
    bounded = plan(
        Scan("t", "", (place, *columns)), *asked, keys=(GroupKey(Value.of(place), None),)
    )
    with closing(interpreted(SparkEngine(tables, spark))) as engine:
        found = engine.run(bounded, "key")
    return [[part.get((row,), (0,))[0] for row in range(len(source))] for part in found]


def agree(spark, zone):
    seconds, clocks = cells(zone)
    local = [first_shown(zone, (clock - NAIVE) // SECOND) or 0 for clock in clocks]
    low = sf.Timestamp("1970-01-01", "2037-12-31", zone=zone).lower_code
    local = [second and max(second, low) for second in local]
    known = [max(second, low) for second in seconds]
    midnights = [(clock.replace(hour=0, minute=0, second=0) - NAIVE) // SECOND for clock in clocks]
    days = [first_shown(zone, midnight) or 0 for midnight in midnights]
    days = [second and max(second, low) for second in days]
    assert codes(spark, zone) == [local, local, local, known, known, days, days, days]


@pytest.mark.parametrize(
    "zone", [ZONES[0], *(pytest.param(zone, marks=pytest.mark.long) for zone in ZONES[1:])]
)
def test_spark_reads_the_moments_of_every_change_of_clocks(spark, zone):
    agree(spark, zone)


def test_a_wrong_table_is_noticed_on_spark(spark, monkeypatch):
    monkeypatch.setattr(moment_sql, "local_periods", later)
    with pytest.raises(AssertionError):
        agree(spark, "Europe/London")


QUESTIONS = (
    "SUM(HOUR(moment))",
    "SUM(EXTRACT(MINUTE FROM moment))",
    "SUM(DATE_DIFF('day', DATE '1970-01-01', CAST(moment AS DATE)))",
    "SUM(DATE_DIFF('hour', local, moment))",
    "SUM(moment - TIMESTAMP '2000-01-01 12:00:00')",
    "COUNT_IF(moment + INTERVAL 90 MINUTE < local)",
    "SUM(DAYOFWEEK(moment))",
    "COUNT(DISTINCT DATE_TRUNC('hour', moment))",
    "COUNT(DISTINCT DATE_TRUNC('month', moment))",
)


def test_parts_of_timestamps_are_the_same_on_every_engine(spark):
    zone = "Australia/Lord_Howe"
    source = table(zone)
    kind = sf.Timestamp("1970-01-01", "2037-12-31", zone=zone)
    tables = {
        "t": sf.Table(source, columns={"local": kind, "moment": kind}, size=len(source)),
    }
    dataset = Dataset("d", tables)
    question = understand(f"SELECT {', '.join(QUESTIONS)} FROM t", dataset)
    bounded = compile_plan(question.raw, dataset, Norm.L1)
    expected = Reference({"t": source.to_pylist()}).run(bounded, "key")
    with closing(DuckDB(tables)) as engine:
        assert engine.run(bounded, "key") == expected
    with closing(interpreted(SparkEngine(tables, spark))) as engine:
        assert engine.run(bounded, "key") == expected
