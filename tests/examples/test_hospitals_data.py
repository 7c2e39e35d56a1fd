# SPDX-License-Identifier: Apache-2.0
"""The made-up hospitals: whole, the same for everyone, and with something to be found."""

from collections import Counter
from pathlib import Path
from statistics import mean, median
from typing import Any

import pyarrow.parquet
import pytest

from sfumato.examples import hospitals_data
from sfumato.examples.hospitals_data import (
    DRUGS,
    HOSPITALS,
    ILLNESSES,
    OLDEST,
    PATIENTS,
    REGIONS,
    WARDS,
    write_hospitals,
)

Tables = dict[str, list[dict[str, Any]]]


def read(folder: Path, **options: int) -> Tables:
    """The four tables, row by row."""
    return {
        name: pyarrow.parquet.read_table(path).to_pylist()
        for name, path in written(folder, **options).items()
    }


def written(folder: Path, **options: int) -> dict[str, Path]:
    """The files, in a folder of their own."""
    folder.mkdir(exist_ok=True)
    return write_hospitals(folder, **options)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The hospitals of the demo."""
    return read(tmp_path_factory.mktemp("hospitals"))


def test_there_are_five_thousand_patients_in_three_hospitals(tables: Tables) -> None:
    assert len(tables["patients"]) == PATIENTS == 5_000
    sizes = Counter(patient["hospital"] for patient in tables["patients"])
    assert set(sizes) == set(HOSPITALS) and len(HOSPITALS) == 3
    assert min(sizes.values()) > 1_000
    assert {patient["region"] for patient in tables["patients"]} == set(REGIONS)
    assert {visit["ward"] for visit in tables["visits"]} == set(WARDS)


def test_every_key_is_unique_and_leads_to_its_row(tables: Tables) -> None:
    keys = {
        "patients": "patient_id",
        "visits": "visit_id",
        "prescriptions": "prescription_id",
        "drugs": "drug",
    }
    known = {name: [row[key] for row in tables[name]] for name, key in keys.items()}
    assert all(len(set(values)) == len(values) for values in known.values())
    assert {visit["patient_id"] for visit in tables["visits"]} <= set(known["patients"])
    assert {each["visit_id"] for each in tables["prescriptions"]} <= set(known["visits"])
    assert {each["drug"] for each in tables["prescriptions"]} == set(known["drugs"])


def test_the_same_seed_gives_the_same_tables_and_another_one_others(
    tables: Tables, tmp_path: Path
) -> None:
    assert read(tmp_path) == tables
    small = read(tmp_path / "small", patients=50)
    assert len(small["patients"]) == 50
    assert read(tmp_path / "other", patients=50, seed=1) != small


def test_every_drug_and_illness_is_listed_once() -> None:
    names, codes = [drug.name for drug in DRUGS], [illness.code for illness in ILLNESSES]
    assert len(set(names)) == len(names) and len(set(codes)) == len(codes)
    assert {drug for illness in ILLNESSES for drug in illness.drugs} == set(names)
    assert set(hospitals_data._LOG_COST) == set(WARDS) and set(hospitals_data._CARE) == set(
        HOSPITALS
    )


def test_values_are_within_what_is_publicly_known(tables: Tables) -> None:
    assert all(0 <= patient["age"] <= OLDEST for patient in tables["patients"])
    assert all(0 < visit["cost"] <= hospitals_data.DEAREST for visit in tables["visits"])
    assert {visit["day"].year for visit in tables["visits"]} == {hospitals_data.YEAR}
    doses = {each["dose"] for each in tables["prescriptions"]}
    assert max(doses) <= hospitals_data.STRONGEST and all(
        (4 * dose).is_integer() and dose > 0 for dose in doses
    )


def test_older_patients_come_more_often(tables: Tables) -> None:
    visits = Counter(visit["patient_id"] for visit in tables["visits"])
    by_age = {
        decade: mean(
            visits[each["patient_id"]] for each in tables["patients"] if each["age"] // 30 == decade
        )
        for decade in (0, 1, 2)
    }
    assert 1.5 * by_age[0] < by_age[1] and 1.2 * by_age[1] < by_age[2]
    assert max(visits.values()) > 15, "someone beyond any bound that is declared"
    assert len(visits) < PATIENTS, "someone who never came"


def test_the_response_to_metformin_falls_with_age_and_is_not_always_written_down(
    tables: Tables,
) -> None:
    age = {patient["patient_id"]: patient["age"] for patient in tables["patients"]}
    of_visit = {visit["visit_id"]: age[visit["patient_id"]] for visit in tables["visits"]}
    given = [each for each in tables["prescriptions"] if each["drug"] == "metformin"]
    young, old = (
        [
            each["response"]
            for each in given
            if each["response"] is not None and inside(of_visit[each["visit_id"]])
        ]
        for inside in (lambda years: years < 55, lambda years: years >= 75)
    )
    assert min(len(young), len(old)) > 200
    assert mean(young) > mean(old) + 0.1
    missing = mean(each["response"] is None for each in tables["prescriptions"])
    assert 0.1 < missing < 0.15


def test_surgery_costs_the_most_and_costs_have_a_long_tail(tables: Tables) -> None:
    costs = {
        ward: [visit["cost"] for visit in tables["visits"] if visit["ward"] == ward]
        for ward in WARDS
    }
    assert max(costs, key=lambda ward: median(costs[ward])) == "surgery"
    assert all(mean(values) > 1.1 * median(values) for values in costs.values())


def test_some_diagnoses_are_so_rare_that_a_list_of_them_would_tell_of_a_patient(
    tables: Tables,
) -> None:
    patients: dict[str, set[str]] = {}
    for visit in tables["visits"]:
        patients.setdefault(visit["diagnosis"], set()).add(visit["patient_id"])
    sizes = sorted(map(len, patients.values()))
    assert sizes[0] <= 3 and sizes[-1] > 500
    assert sum(size < 10 for size in sizes) >= 4
