# SPDX-License-Identifier: Apache-2.0
"""Keys by their names, and the units that they suggest."""

import pytest

from sfumato.cli.init_keys import Keys, is_key


@pytest.mark.parametrize("name", ["id", "ID", "person_id", "visitId", "member_no", "患者编号"])
def test_names_of_keys(name: str) -> None:
    assert is_key(name)


@pytest.mark.parametrize("name", ["age", "paid", "valid", "zip_code", "icd_code", "ward", "性别"])
def test_names_of_no_keys(name: str) -> None:
    assert not is_key(name)


def test_three_tables_lead_to_one_person() -> None:
    columns = {
        "prescriptions": ["visit_id", "drug"],
        "patients": ["patient_id", "sex"],
        "visits": ["visit_id", "patient_id"],
    }
    keys = Keys.of(columns)
    # each of the two is in two tables: the one that is named after persons is the unit
    assert keys.person == "patient_id"
    assert keys.unit_of("patients") == {"column": "patient_id"}
    assert keys.unit_of("visits") == {"column": "patient_id"}
    assert keys.unit_of("prescriptions") == {"column": "visit_id", "via": "visits.patient_id"}
    assert keys.lines[2:] == [
        "#   patient_id: patients, visits",
        "#   visit_id: prescriptions, visits",
    ]


@pytest.mark.parametrize("person", ["pid", "bid"])
def test_a_visit_is_not_drafted_as_the_person(person: str) -> None:
    columns = {
        "prescriptions": ["visit_id", "drug"],
        "patients": [person, "sex"],
        "visits": ["visit_id", person],
    }
    keys = Keys.of(columns)
    # a name that ends in "id" and is in two tables is a key, whatever comes before
    assert keys.unit_of("visits") == keys.unit_of("patients") == {"column": person}
    assert keys.unit_of("prescriptions") == {"column": "visit_id", "via": f"visits.{person}"}
    alone = Keys.of({"visits": ["visit_id", "ward"]})
    assert (alone.person, alone.unit_of("visits")) == ("", {})
    # two names that may both be persons: neither is drafted
    assert Keys.of({"loans": ["lender_id", "loan_no"]}).unit_of("loans") == {}


def test_a_table_without_keys_suggests_nothing() -> None:
    keys = Keys.of({"people": ["age", "sex"]})
    assert (keys.unit_of("people"), keys.lines, keys.names) == ({}, [], frozenset())
