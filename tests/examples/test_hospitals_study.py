# SPDX-License-Identifier: Apache-2.0
"""The declarations of the hospitals, and the questions asked of them."""

from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.engines.duckdb import DuckDB
from sfumato.engines.inspect_columns import read_through
from sfumato.errors import UnsupportedSql
from sfumato.examples.hospitals_data import write_hospitals
from sfumato.examples.hospitals_study import (
    OFFICE,
    PATIENT,
    REFUSED,
    STUDY,
    UNITS,
    VISIT,
    hospitals,
    visits,
)
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.budget import Budget
from sfumato.query.choose import plan_for_price
from sfumato.query.price import price
from sfumato.sql.lower import understand

PATHS = {name: Path(f"{name}.parquet") for name in ("patients", "visits", "prescriptions", "drugs")}
DATASET = Dataset("hospitals", hospitals(PATHS))


def test_three_tables_are_about_patients_and_one_about_nobody() -> None:
    assert {name: DATASET.unit_name(name) for name in DATASET.tables} == {
        "patients": "patient_id", "visits": "patient_id", "prescriptions": "patient_id", "drugs": None,
    }  # fmt: skip
    assert (
        Contract.of(DATASET, Budget(1))
        .units["prescriptions"]
        .startswith('("visit_id" via "visits.patient_id"')
    )


def test_the_declared_columns_are_those_of_the_files(tmp_path: Path) -> None:
    declared = hospitals(write_hospitals(tmp_path, patients=200))
    engine = DuckDB(declared)
    read_through(engine, declared)
    engine.close()


@pytest.mark.parametrize("asked", [*STUDY, *OFFICE], ids=lambda asked: asked.title)
def test_each_question_is_understood_and_has_a_plan(asked) -> None:
    plan_for_price(understand(asked.sql, DATASET), DATASET, price(**dict(asked.price)))


def test_all_that_the_issue_names_is_asked() -> None:
    text = " ".join(asked.sql for asked in (*STUDY, *OFFICE))
    for piece in (
        "BETWEEN 60 AND 69",
        "q.hospital",
        "JOIN drugs",
        "HAVING COUNT(*) >= 3",
        "MEDIAN(",
        "LEFT JOIN (SELECT",
        "ROLLUP",
    ):
        assert piece in text
    assert "indication" in text and DATASET.tables["prescriptions"].column("indication") is not None


def test_they_fit_the_budget_of_the_demo() -> None:
    assert sum(Fraction(dict(asked.price)["epsilon"]) for asked in (*STUDY, *OFFICE)) <= 3


def test_the_refused_one_is_refused_with_a_remedy() -> None:
    with pytest.raises(UnsupportedSql) as refused:
        understand(REFUSED.sql, DATASET)
    assert refused.value.remedy


@pytest.mark.parametrize("unit", [VISIT, PATIENT])
def test_the_question_about_both_units_has_a_plan_under_each(unit) -> None:
    dataset = Dataset("visits", {"visits": visits(PATHS, unit)})
    plan_for_price(understand(UNITS.sql, dataset), dataset, price(**dict(UNITS.price)))
