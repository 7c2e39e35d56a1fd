# SPDX-License-Identifier: Apache-2.0
"""The data owner of three hospitals: three tables about one patient, one budget on a PostgreSQL
server, and four analysts who ask at the same time.
"""

from pathlib import Path

from tests.journeys.person import Person, ended

DECLARED = """\
dataset = "hospitals-2025"
ledger = "{ledger}"

[budget]
epsilon = "3"
delta = "1e-6"

[tables.patients]
source = "patients.parquet"
unit = {{column = "patient_id", max_rows_total = 1}}
size = 5_000
columns.hospital = {{type = "category", values = ["Northgate", "Riverside", "St. Anne"]}}
columns.sex = {{type = "category", values = ["female", "male"]}}
columns.age = {{type = "integer", lower = 0, upper = 100}}

[tables.visits]
source = "visits.parquet"
unit = {{column = "patient_id", max_rows = 8, max_groups = 3, max_rows_total = 12}}
columns.ward = {{type = "category", values = ["emergency", "internal", "psychiatry", "surgery"]}}
columns.cost = {{type = "real", lower = 0, upper = 20_000, clip = 5_000}}

[tables.prescriptions]
source = "prescriptions.parquet"
unit = {{column = "visit_id", via = "visits.patient_id", max_rows = 4, max_groups = 3, max_rows_total = 8}}
columns.drug = {{type = "category", values = ["metformin", "aspirin", "ibuprofen"]}}
columns.response = {{type = "boolean"}}
"""
LIMITS = """\
purpose,analyst,epsilon,delta
study,,2,0
study,ann,0.5,0
study,bob,0.5,0
study,cho,0.5,0
study,dan,0.5,0
"""
QUESTIONS = {
    "ann": "SELECT hospital, AVG(age) AS age FROM patients GROUP BY hospital",
    "bob": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "cho": "SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY drug",
    "dan": "SELECT ward, AVG(cost) AS cost FROM visits GROUP BY ward",
}


def test_four_analysts_share_one_budget_on_a_server(tmp_path: Path, database: str) -> None:
    owner = Person(tmp_path)
    assert "prescriptions.parquet" in owner.types("demo", "hospitals", "--tables", ".")
    (tmp_path / "sfumato.toml").write_text(DECLARED.format(ledger=database), encoding="utf-8")
    assert "will be made on first use" in owner.types("check")
    (tmp_path / "limits.csv").write_text(LIMITS, encoding="utf-8")
    said = owner.types("budget", "--allocate", "limits.csv", "--reason", "the study of 2025")
    assert "5 of 5 accounts have another limit now" in said
    assert owner.typed <= 6

    # all at once, each in a process of their own
    asked = {
        name: Person(tmp_path).begins(
            "query", sql, "--epsilon", "0.4", "--analyst", name, "--purpose", "study"
        )
        for name, sql in QUESTIONS.items()
    }
    answers = {name: ended(running) for name, running in asked.items()}
    assert all("cost epsilon = 0.4" in said for said in answers.values()), answers
    assert "Riverside" in answers["ann"] and "metformin" in answers["cho"]

    # more than one's own limit, and a stranger
    more = ("query", QUESTIONS["bob"], "--epsilon", "0.2", "--purpose", "study", "--analyst")
    refused = owner.types(*more, "ann")
    assert "BudgetExceeded" in refused and "0.1" in refused
    assert "NotListed" in owner.types(*more, "eve")
    # what one has paid for is free, for oneself
    again = owner.types(
        "query", QUESTIONS["ann"], "--epsilon", "0.4", "--purpose", "study", "--analyst", "ann"
    )
    assert "paid before, nothing now" in again
    left = owner.types("budget", "--analyst", "ann", "--purpose", "study")
    assert left.splitlines()[0].startswith("you       ann, for study: epsilon 0.4 spent")
    whole = owner.types("budget", "--details")
    assert "epsilon 1.6 of 3" in whole
    assert "sound:" in owner.types("ledger", "verify")
    owner.types("ledger", "report", "--output", "ledger.html")
    page = (tmp_path / "ledger.html").read_text("utf-8")
    assert all(name in page for name in QUESTIONS)


def test_what_shows_persons_is_refused_with_what_to_do(tmp_path: Path) -> None:
    owner = Person(tmp_path)
    owner.types("demo", "hospitals", "--tables", ".")
    (tmp_path / "sfumato.toml").write_text(DECLARED.format(ledger="l.db"), encoding="utf-8")
    for sql in (
        "SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id",
        "SELECT * FROM patients WHERE age > 99",
        "SELECT patient_id FROM prescriptions GROUP BY patient_id",
    ):
        said = owner.types("preview", sql, "--epsilon", "0.1")
        assert "UnsupportedSql" in said and "What to do:" in said
