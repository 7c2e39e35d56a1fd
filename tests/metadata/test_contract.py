# SPDX-License-Identifier: Apache-2.0
"""The contract holds what must not change, and nothing that may."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ContractMismatch
from sfumato.metadata import Contract, Dataset, Integer, Table, contract
from sfumato.privacy import Budget, ReplaceOne, Unit
from sfumato.privacy.unit import AUTO

PEOPLE = Table("people.csv", unit=Unit("person_id", max_rows=1))
BASE = Contract.of(
    Dataset("acs", {"people": PEOPLE, "visits": Table("visits.csv")}), Budget(3, "1e-6")
)
OTHERS = {
    "dataset": Contract.of(
        Dataset("acs2", {"people": PEOPLE, "visits": Table("visits.csv")}), Budget(3, "1e-6")
    ),
    "relation": Contract.of(
        Dataset("acs", {"people": PEOPLE, "visits": Table("visits.csv")}, ReplaceOne),
        Budget(3, "1e-6"),
    ),
    "units": Contract.of(
        Dataset(
            "acs",
            {"people": Table("people.csv", unit=Unit("household")), "visits": Table("visits.csv")},
        ),
        Budget(3, "1e-6"),
    ),
    "epsilon": Contract.of(
        Dataset("acs", {"people": PEOPLE, "visits": Table("visits.csv")}), Budget(4, "1e-6")
    ),
    "delta": Contract.of(
        Dataset("acs", {"people": PEOPLE, "visits": Table("visits.csv")}), Budget(3, "1e-5")
    ),
}


def stored(one: Contract) -> dict:
    """The contract as a ledger gives it back."""
    return json.loads(json.dumps(one.to_json()))


def is_refused(mine: Contract, theirs: Contract) -> bool:
    """Whether a ledger of one contract refuses another."""
    try:
        mine.require_same(stored(theirs))
    except ContractMismatch:
        return True
    return False


def test_the_contract_says_the_unit_of_each_table():
    assert stored(BASE) == {
        "dataset": "acs",
        "relation": "add-remove",
        "units": {"people": "person_id", "visits": "(row)"},
        "epsilon": "3",
        "delta": "1/1000000",
    }


@pytest.mark.parametrize("part", OTHERS)
def test_another_contract_is_refused(part):
    with pytest.raises(ContractMismatch, match=f"{part}: now ") as caught:
        OTHERS[part].require_same(stored(BASE))
    assert "not a fresh start" in caught.value.remedy
    assert is_refused(BASE, OTHERS[part])


def test_another_set_of_tables_is_another_contract():
    alone = Contract.of(Dataset("acs", {"people": PEOPLE}), Budget(3, "1e-6"))
    assert is_refused(alone, BASE) and is_refused(BASE, alone)


def test_the_refusal_notices_a_comparison_that_leaves_out_units(monkeypatch):
    real = contract.Contract.to_json
    monkeypatch.setattr(
        Contract, "to_json", lambda one: {k: v for k, v in real(one).items() if k != "units"}
    )
    assert not is_refused(OTHERS["units"], BASE)


def test_the_same_contract_is_the_same_however_it_is_written():
    same = Dataset("acs", {"visits": Table("visits.csv"), "people": PEOPLE}, version="2")
    Contract.of(same, Budget("3.0", 1e-6)).require_same(stored(BASE))


def test_another_path_bound_or_column_is_no_other_contract():
    people = Table(
        "elsewhere.parquet",
        unit=Unit("person_id", max_rows=9),
        columns={"age": Integer(0, 9)},
        size=5,
    )
    moved = Dataset("acs", {"people": people, "visits": Table("visits.csv")})
    Contract.of(moved, Budget(3, "1e-6")).require_same(stored(BASE))


def of(**tables: Table) -> Contract:
    """The contract of some tables."""
    return Contract.of(Dataset("hospital", tables), Budget(1))


def test_the_contract_says_the_way_to_each_unit():
    hospital = of(
        patients=Table("p.parquet", unit=Unit("id", name="patient")),
        visits=Table("v.parquet", unit=Unit("patient_id", 9, via="patients.id", key="id")),
        days=Table("d.parquet", unit=Unit(["patient_id", "day"])),
        drugs=Table("g.parquet", public=True),
        wards=Table("w.parquet"),
    )
    assert stored(hospital)["units"] == {
        "patients": '("id" as "patient")',
        "visits": '("patient_id" via "patients.id" by "id")',
        "days": '("patient_id", "day")',
        "drugs": "(public)",
        "wards": "(row)",
    }


WAYS = {
    "the row": Table("v.parquet"),
    "public": Table("v.parquet", public=True),
    "the visit": Table("v.parquet", unit=Unit("visit_id")),
    "the visit, named as the patient": Table("v.parquet", unit=Unit("visit_id", name="id")),
    "the visit and the day": Table("v.parquet", unit=Unit(["visit_id", "day"])),
    "a column of that name": Table("v.parquet", unit=Unit("visit_id, day")),
    "the patient": Table("v.parquet", unit=Unit("visit_id", via="patients.id")),
    "the patient, by another key": Table(
        "v.parquet", unit=Unit("visit_id", via="patients.id", key="id")
    ),
    "a column named as no unit": Table("v.parquet", unit=Unit("(row)")),
    "a column named as public": Table("v.parquet", unit=Unit("(public)")),
}


@pytest.mark.parametrize("mine", WAYS)
@pytest.mark.parametrize("theirs", WAYS)
def test_each_way_to_a_unit_is_another_contract(mine, theirs):
    patients = Table("p.parquet", unit=Unit("id"))
    refused = is_refused(
        of(patients=patients, visits=WAYS[mine]), of(patients=patients, visits=WAYS[theirs])
    )
    assert refused == (mine != theirs)


def test_bounds_given_left_out_or_learnt_are_the_same_contract():
    for unit in (Unit("id"), Unit("id", 3, 4, 5), Unit("id", AUTO, AUTO, AUTO)):
        of(visits=Table("v.parquet", unit=unit)).require_same(
            stored(of(visits=Table("v.parquet", unit=Unit("id"))))
        )


@given(st.sampled_from(sorted(stored(BASE))))
@settings(deadline=None)
def test_a_stored_contract_with_a_part_missing_is_refused(part):
    damaged = stored(BASE)
    del damaged[part]
    with pytest.raises(ContractMismatch, match=part):
        BASE.require_same(damaged)


def test_no_limit_is_part_of_what_an_answer_depends_on() -> None:
    about = BASE.about_data()
    assert {OTHERS[name].about_data() == about for name in ("epsilon", "delta")} == {True}
    assert {OTHERS[name].about_data() == about for name in ("dataset", "relation", "units")} == {
        False
    }
    assert about | {"epsilon": "3", "delta": "1/1000000"} == BASE.to_json()


READINGS = ({}, {"encoding": "gbk"}, {"decimal": ","}, {"decimal": ",", "thousands": "."})


def read_as(**reading: str) -> Contract:
    """The contract of a CSV file that is read in some way."""
    return of(visits=Table("visits.csv", **reading), drugs=Table("drugs.csv", public=True))


def test_another_reading_of_texts_is_another_answer() -> None:
    abouts = [read_as(**reading).about_data() for reading in READINGS]
    assert all(abouts.count(about) == 1 for about in abouts)
    assert abouts[1]["reading"] == {"visits": {"encoding": "gbk"}}


def test_an_answer_that_forgets_the_reading_is_noticed(monkeypatch) -> None:
    monkeypatch.setattr(Contract, "about_data", Contract._about)
    assert read_as(**READINGS[1]).about_data() == read_as().about_data()


def test_a_reading_may_be_corrected_and_what_is_stored_does_not_change() -> None:
    for reading in READINGS:
        assert stored(read_as(**reading)) == stored(read_as())
        read_as(**reading).require_same(stored(read_as()))
    # to the byte what was stored before readings could be declared
    assert "reading" not in BASE.about_data()
