# SPDX-License-Identifier: Apache-2.0
"""Whole statements give the integers that DuckDB gives for the same text: joins, keys,
sub-queries.
"""

import datetime
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.sql import join, understand, where
from tests.sql import clinic

ALIKE = [
    " ".join(each.split())
    for each in (Path(__file__).parent / "corpus" / "alike.sql")
    .read_text(encoding="utf-8")
    .split("\n\n")
    if each.strip() and not each.startswith("--")
]
# what the way from a prescription to its patient is in plain SQL
WITH_PATIENT = "(SELECT p.*, v.patient_id FROM prescriptions p JOIN visits v USING (visit_id))"
VIA = [
    "SELECT COUNT(*), COUNT(DISTINCT patient_id) FROM {prescriptions}",
    "SELECT sex, COUNT(*) FROM {prescriptions} AS r JOIN patients AS q ON r.patient_id = q.patient_id GROUP BY sex",
    "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM {prescriptions} GROUP BY patient_id) AS per",
    "SELECT COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM {prescriptions} WHERE drug = 'aspirin')",
    (
        "SELECT COUNT(*) FILTER (WHERE LEFT(drug, 3) = 'asp'), COUNT(*) FILTER (WHERE drug ILIKE 'A%'), "
        "COUNT(*) FILTER (WHERE UPPER(drug) IN ('ASPIRIN', 'Aspirin')), COUNT(DISTINCT LOWER(SUBSTRING(drug, 2, 1))) "
        "FROM {prescriptions} AS r"
    ),
]


@pytest.fixture(scope="module")
def engine():
    """The same tables in DuckDB."""
    return clinic.plain()


def told(engine, text):
    return Counter(tuple(_exact(value) for value in row) for row in engine.execute(text).fetchall())


def meant(text):
    return Counter(
        tuple(_exact(value) for value in row)
        for row in clinic.answered(understand(text, clinic.DATASET))
    )


def _exact(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime.datetime):
        return value.date()
    return (
        Fraction(value).limit_denominator(10**6)
        if isinstance(value, int | float | Fraction)
        else value
    )


def test_the_statements_are_read_whole():
    assert len(ALIKE) >= 57 and all(each.startswith(("SELECT", "WITH")) for each in ALIKE)


@pytest.mark.parametrize("text", ALIKE)
def test_a_statement_gives_what_the_engine_gives(engine, text):
    assert meant(text) == told(engine, text)


@pytest.mark.parametrize("text", VIA)
def test_a_unit_that_is_reached_by_a_key_is_known_by_its_name(engine, text):
    assert meant(text.format(prescriptions="prescriptions")) == told(
        engine, text.format(prescriptions=WITH_PATIENT)
    )


def test_a_test_of_units_that_is_lost_is_noticed(engine, monkeypatch):
    text = "SELECT COUNT(*) FROM visits WHERE patient_id NOT IN (SELECT patient_id FROM patients WHERE age > 60)"
    assert meant(text) == told(engine, text)
    monkeypatch.setattr(where, "Semi", lambda relation, units, negated: relation)
    assert meant(text) != told(engine, text)


def test_a_condition_of_a_join_that_is_lost_is_noticed(engine, monkeypatch):
    text = "SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id AND v.day = p.joined"
    assert meant(text) == told(engine, text)
    monkeypatch.setattr(join, "_tested_after", lambda context, merged, on: merged)
    assert meant(text) != told(engine, text)
