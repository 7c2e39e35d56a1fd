# SPDX-License-Identifier: Apache-2.0
"""A diagnosis: what it finds, what it costs, what it says, and that its intervals hold."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.errors import BudgetExceeded, MissingDeclaration, UnsupportedSql, WrongUse
from sfumato.query.diagnosis import Diagnosis, Finding
from sfumato.query.session import Session
from sfumato.testing import assert_at_most

BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY ward"
# 100 patients with one visit, 25 of them in no known ward; 20 with eight visits in both wards
PATIENTS = [f"p{n}" for n in range(100)] + [f"q{n}" for n in range(20) for _ in range(8)]
WARDS = ["a"] * 75 + ["?"] * 25 + ["a", "b"] * 80
COSTS = [-1.0] * 10 + [50.0] * 90 + [400.0] * 160
FRAME = pa.table({"patient": PATIENTS, "ward": WARDS, "cost": COSTS})
EXACTLY = 10**5


def opened(folder: Path, budget: object = (10**6, "1e-6"), **options: object) -> Session:
    """A session over the visits."""
    table = sf.Table(
        FRAME,
        unit=sf.Unit("patient", max_rows=2, max_groups=1),
        columns={"ward": sf.Category("a", "b"), "cost": sf.Real(0, 100)},
    )
    limit = sf.Budget(*budget)
    return sf.connect(
        {"visits": table}, dataset="d", budget=limit, ledger=folder / "l.db", **options
    )


def shares(found: Diagnosis) -> dict[str, float]:
    """Each share, to a millionth."""
    return {each.what: round(each.share, 6) for each in found.findings}


# without groups a patient counts with two rows at most: 75 + 20 * 2 of them have a ward and a cost
TRUE = {
    "more than 2 rows in a group": round(20 / 95, 6),
    "more than 2 rows in all, at most 2 of a group": round(20 / 95, 6),
    "cost below the declared 0": round(10 / 115, 6),
    "cost above the declared 100": round(40 / 115, 6),
    "ward missing or not declared": round(25 / 140, 6),
}


def test_it_says_which_share_of_units_and_values_is_touched(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        found = session.diagnose(BY_WARD, epsilon=EXACTLY)
        assert shares(found) == TRUE
        rows = found.findings[0]
        assert (rows.count, rows.half_width, rows.total) == (20, 0, 95)
        assert found.findings[2].count is None
        assert all(each.low <= each.share <= each.high for each in found.findings)


def test_it_is_charged_as_stated_and_once(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        one = session.diagnose(BY_WARD, epsilon="0.5")
        assert session.budget.spent == "0.5"
        assert [each.cost.epsilon for each in one.answers] == ["0.25", "0.25"]
        again = session.diagnose(BY_WARD, epsilon="0.5")
        assert again == Diagnosis(one.findings, again.answers)
        assert [each.bytes for each in again.answers] == [each.bytes for each in one.answers]
        assert session.budget.spent == "0.5"
        assert session.verify().problems == ()


def test_gaussian_noise_works_too(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        found = session.diagnose(BY_WARD, rho=1)
        assert [each.cost.rho for each in found.answers] == ["0.5", "0.5"]
        assert len(found.findings) == len(TRUE)


def test_the_question_itself_is_not_asked(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.diagnose(BY_WARD, epsilon=1)
        answer = session.query(BY_WARD, epsilon=1)
        assert session.budget.spent == "2"
        # and its intervals are what they are without a diagnosis
        assert (
            answer.error(0.9)[0]["n"]["half_width"]
            == session.preview(BY_WARD, epsilon=1).error(0.9)[0]["half_width"]
        )


def test_what_cannot_be_paid_in_full_is_not_begun(tmp_path: Path) -> None:
    with opened(tmp_path, budget=(1, 0)) as session:
        with pytest.raises(BudgetExceeded, match=r"costs epsilon 1\.5"):
            session.diagnose(BY_WARD, epsilon="1.5")
        assert session.budget.spent == "0"


@pytest.mark.parametrize(
    ("sql", "price", "error"),
    [
        ("SELECT COUNT(DISTINCT patient) AS n FROM visits", {"epsilon": 1}, UnsupportedSql),
        (f"{BY_WARD} HAVING COUNT(*) > nothing", {"epsilon": 1}, sf.SfumatoError),
        (
            "SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)",
            {"epsilon": 1},
            UnsupportedSql,
        ),
        (BY_WARD, {}, WrongUse),
        (BY_WARD, {"epsilon": 1, "rho": 1}, WrongUse),
    ],
)
def test_refusals_are_free(
    tmp_path: Path, sql: str, price: dict[str, object], error: type[Exception]
) -> None:
    with opened(tmp_path) as session:
        with pytest.raises(error):
            session.diagnose(sql, **price)
        assert session.budget.spent == "0"


def test_a_limit_that_is_not_known_yet_cannot_be_diagnosed(tmp_path: Path) -> None:
    table = sf.Table(
        FRAME, unit=sf.Unit("patient", max_rows=sf.AUTO), columns={"cost": sf.Real(0, 100)}
    )
    with sf.connect(
        {"visits": table}, dataset="d", budget=sf.Budget(9), ledger=tmp_path / "l.db"
    ) as session:
        with pytest.raises(MissingDeclaration, match=r"sf\.AUTO"):
            session.diagnose("SELECT AVG(cost) FROM visits", epsilon=1)
        assert session.budget.spent == "0"


def test_a_prepared_layout_hides_nothing(tmp_path: Path) -> None:
    source = tmp_path / "visits.parquet"
    parquet.write_table(FRAME, source)
    table = sf.Table(
        source,
        unit=sf.Unit("patient", max_rows=2, max_groups=1),
        columns={"ward": sf.Category("a", "b"), "cost": sf.Real(0, 100)},
    )
    sf.prepare({"visits": table}, dataset="d", folder=tmp_path / "layouts")
    with sf.connect(
        {"visits": table},
        dataset="d",
        budget=sf.Budget(10**6),
        ledger=tmp_path / "l.db",
        prepared=tmp_path / "layouts",
    ) as session:
        assert shares(session.diagnose(BY_WARD, epsilon=EXACTLY)) == TRUE


def test_it_reads_as_a_sentence() -> None:
    units = Finding("more than 2 rows in a group", 0.0412, 0.031, 0.052, 120, 30.5, 2913)
    assert (
        str(units)
        == "4.1% [3.1%, 5.2%] of the units: more than 2 rows in a group (120 +- 30.5 of about 2,913)"
    )
    assert str(Finding("cost above the declared 9", 0.03, 0.02, 0.04)) == (
        "3.0% [2.0%, 4.0%] of the rows: cost above the declared 9"
    )


def test_its_json_has_findings_and_charges(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        found = session.diagnose(BY_WARD, epsilon=1)
    form = json.loads(json.dumps(found.to_json()))
    assert [each["what"] for each in form["findings"]] == list(TRUE)
    assert [each["of"] for each in form["findings"]] == ["units", "units", "rows", "rows", "rows"]
    assert [each["cost"]["epsilon"] for each in form["charges"]] == ["0.5", "0.5"]
    assert repr(found).count("of the units") == 2
    assert repr(found).count("cost epsilon = 0.5") == 2


@pytest.mark.long
def test_intervals_hold_as_often_as_stated(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        findings = [
            session.diagnose(BY_WARD, epsilon=str(1 + n / 1000)).findings[0] for n in range(220)
        ]
    misses = sum(not share.low <= 20 / 95 <= share.high for share in findings)
    assert_at_most(misses, 220, 0.05, notices=0.49)
    # and they are no wider than they have to be: a wrong scale would show
    assert all(share.high - share.low < 0.9 for share in findings)
