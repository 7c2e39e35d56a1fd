# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo hospitals``, whole, once."""

import contextlib
import io
from pathlib import Path

import duckdb
import pytest

from sfumato.cli.main import run
from sfumato.examples import hospitals
from sfumato.examples.hospitals_data import PATIENTS, write_hospitals
from sfumato.examples.hospitals_study import OFFICE, PATIENT, REFUSED, STUDY, UNITS, VISIT


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tables of the demo."""
    return write_hospitals(tmp_path_factory.mktemp("hospitals"))


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo printed; it must leave nothing in the folder where it ran."""
    folder, out = tmp_path_factory.mktemp("demo"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")
        assert run(["demo", "hospitals"]) == 0
    assert list(folder.iterdir()) == []
    return out.getvalue()


def test_it_prints_each_question_its_text_and_its_price(printed: str) -> None:
    for asked in (*STUDY, *OFFICE, UNITS):
        assert asked.sql[:60] in printed and asked.shown_price in printed
    for title, questions in (("The study", STUDY), ("The statistics office", OFFICE)):
        for place, asked in enumerate(questions, start=1):
            assert f"{title}, {place}. {asked.title}" in printed
    assert printed.count("left: one question of epsilon up to") == len(STUDY) + len(OFFICE)


def test_each_answer_stands_beside_its_interval_and_the_truth(printed: str) -> None:
    assert printed.count("95% interval") >= len(STUDY) + len(OFFICE)
    assert "Only a demo on made-up data may show it" in printed
    assert "prescriptions: Unit('visit_id', via='visits.patient_id', max_rows=" in printed
    assert "drugs: nobody: the table is public" in printed
    assert f"Refused: {REFUSED.title}" in printed


def test_the_truth_is_that_of_plain_sql(printed: str, paths: dict[str, Path]) -> None:
    often = (
        duckdb.connect()
        .sql(
            f"SELECT count(*) FROM (SELECT patient_id FROM '{paths['visits']}' GROUP BY ALL HAVING count(*) >= 3)"
        )
        .fetchall()[0][0]
    )
    assert f"{often:,}" in printed and f"{PATIENTS:,}" in printed


def test_hiding_a_patient_takes_more_noise_than_hiding_a_visit(
    paths: dict[str, Path], tmp_path: Path
) -> None:
    of_visit, of_patient = (
        hospitals.half_width(paths, unit, tmp_path) for unit in (VISIT, PATIENT)
    )
    assert 6 * of_visit < of_patient
