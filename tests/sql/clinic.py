# SPDX-License-Identifier: Apache-2.0
"""Patients in several tables, a public list of drugs, and what DuckDB says of them.

Limits are so wide that nothing is cut: then the integers of a plan are those of plain SQL.
"""

from collections.abc import Mapping
from fractions import Fraction

import duckdb

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountDistinct, CountRows, CountUnits, CountValues, Mean, Sum
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Estimate, Key
from sfumato.plan.statistic import Statistic
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.sql import Question

WIDE = {"max_rows": 50, "max_groups": 50, "max_rows_total": 50}
DATASET = Dataset(
    "clinic",
    {
        "patients": sf.Table(
            "patients.csv",
            unit=sf.Unit("patient_id", max_rows=1, max_groups=1),
            columns={
                "sex": sf.Category("F", "M"),
                "age": sf.Integer(0, 100),
                "joined": sf.Date("2024-01-01", "2024-12-31"),
            },
        ),
        "visits": sf.Table(
            "visits.csv",
            unit=sf.Unit("patient_id", **WIDE),
            columns={
                "visit_id": sf.Text(),
                "ward": sf.Category("eye", "ear", "heart"),
                "cost": sf.Real(0, 100, step="0.5"),
                "day": sf.Date("2024-01-01", "2024-12-31"),
                "urgent": sf.Boolean(),
            },
        ),
        "prescriptions": sf.Table(
            "prescriptions.csv",
            unit=sf.Unit("visit_id", via="visits.patient_id", **WIDE),
            columns={"drug": sf.Text(), "dose": sf.Integer(0, 20)},
        ),
        "drugs": sf.Table(
            "drugs.csv",
            public=True,
            columns={
                "drug": sf.Text(),
                "kind": sf.Category("pain", "heart"),
                "price": sf.Integer(0, 9),
            },
        ),
        "beds": sf.Table(
            "beds.csv", columns={"ward": sf.Category("eye", "ear", "heart"), "used": sf.Boolean()}
        ),
    },
)
TABLES: Mapping[str, list[dict[str, object]]] = {
    "patients": [
        {"patient_id": who, "sex": sex, "age": age, "joined": joined}
        for who, sex, age, joined in [
            ("p1", "F", 30, "2024-01-05"), ("p2", "M", 61, "2024-02-01"), ("p3", "F", 64, "2024-02-03"),
            ("p4", "M", None, "2024-05-09"), ("p5", None, 70, None), ("p6", "F", 69, "2024-12-31"),
        ]
    ],
    "visits": [
        {"visit_id": visit, "patient_id": who, "ward": ward, "cost": cost, "day": day, "urgent": urgent}
        for visit, who, ward, cost, day, urgent in [
            ("v1", "p1", "eye", 10.0, "2024-01-05", True), ("v2", "p1", "ear", 20.5, "2024-03-05", False),
            ("v3", "p1", "eye", None, "2024-03-06", None), ("v4", "p2", "heart", 99.5, "2024-02-01", True),
            ("v5", "p3", "heart", 50.0, "2024-02-29", True), ("v6", "p3", "heart", 50.0, "2024-04-01", False),
            ("v7", "p3", None, 3.5, "2024-04-02", False), ("v8", "p6", "ear", 0.0, "2024-12-31", None),
            ("v9", "p9", "ear", 7.0, "2024-07-01", True),
        ]
    ],
    "prescriptions": [
        {"visit_id": visit, "drug": drug, "dose": dose}
        for visit, drug, dose in [
            ("v1", "aspirin", 2), ("v1", "ramipril", 5), ("v2", "aspirin", 1), ("v4", "ramipril", 10), ("v5", "statin", None),
            ("v8", None, 3), ("v6", "aspirin", 4),
        ]
    ],
    "drugs": [
        {"drug": "aspirin", "kind": "pain", "price": 1}, {"drug": "ramipril", "kind": "heart", "price": 5},
        {"drug": "morphine", "kind": "pain", "price": 9},
    ],
    "beds": [{"ward": "eye", "used": True}, {"ward": "eye", "used": False}, {"ward": "ear", "used": None}],
}  # fmt: skip
_TYPES = {
    "age": "INTEGER",
    "joined": "DATE",
    "cost": "DOUBLE",
    "day": "DATE",
    "urgent": "BOOLEAN",
    "dose": "INTEGER",
}
_TYPES |= {"used": "BOOLEAN", "price": "INTEGER"}


def plain():
    """The tables in DuckDB."""
    connection = duckdb.connect()
    for name, rows in TABLES.items():
        columns = ", ".join(f"{column} {_TYPES.get(column, 'VARCHAR')}" for column in rows[0])
        connection.execute(f"CREATE TABLE {name} ({columns})")
        marks = ", ".join("?" for _ in rows[0])
        connection.executemany(
            f"INSERT INTO {name} VALUES ({marks})", [list(row.values()) for row in rows]
        )
    return connection


def answered(question: Question, dataset: Dataset = DATASET):
    """The rows of the answer without noise: from the integers of the reference engine."""
    plan = compile_plan(question.raw, dataset, Norm.L1)
    parts = Reference(TABLES).run(plan, "key")
    groups = {group for part in parts for group in part} or {()}
    keys = question.raw.keys
    for group in groups:
        integers = [part.get(group) for part in parts]

        def lookup(leaf, group=group, integers=integers):
            if isinstance(leaf, Key):
                return group[leaf.index]
            assert isinstance(leaf, Estimate)
            return number(
                plan.parts[leaf.index].aggregate,
                leaf.statistic,
                integers[leaf.index],
                plan.refinement,
            )

        yield tuple(
            keys[item.expression.index].value.type.decode(group[item.expression.index])
            if isinstance(item.expression, Key) and isinstance(group[item.expression.index], int)
            else evaluate(item.expression, lookup)
            for item in question.output.items
        )


def number(aggregate, statistic, integers, refinement):
    """What released integers say, without noise."""
    exact = [Fraction(each, refinement) for each in integers or (0, 0, 0)]
    if isinstance(aggregate, CountRows | CountUnits | CountValues | CountDistinct):
        return exact[0]
    step, low = aggregate.value.step, aggregate.value.type.lower_code * aggregate.value.step
    if isinstance(aggregate, Sum):
        return exact[0] * step if integers else None
    assert isinstance(aggregate, Mean)
    width = aggregate.value.type.upper_code - aggregate.value.type.lower_code
    count = (exact[0] + exact[1]) / width
    if statistic is Statistic.COUNT:
        return count
    total = exact[0] * step + count * low
    return total if statistic is Statistic.SUM else (total / count if count else None)
