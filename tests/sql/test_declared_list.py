# SPDX-License-Identifier: Apache-2.0
"""SELECT DISTINCT of declared columns is the declared list: free, and the same whatever the data."""

import datetime

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.sql import understand
from sfumato.sql.declared_list import MOST_ROWS, NOTE, declared_list
from sfumato.sql.split import split

DAY = datetime.date(2024, 1, 1)
ROWS = pa.table(
    {
        "who": [0, 1], "ward": ["eye", "eye"], "age": [3, 3], "day": [DAY, DAY], "job": ["cook", "cook"],
        "half": [0.5, 0.5], "yes": [True, None], "ts": ["2024-01-01 10:00:00"] * 2, "drug": ["a", "b"],
    }
)  # fmt: skip
COLUMNS = {
    "ward": sf.Category("eye", "ear", "heart"),
    "age": sf.Integer(0, 5),
    "day": sf.Date("2024-01-01", "2024-12-31"),
    "job": sf.Text(),
    "half": sf.Real(0, 1, step="0.5"),
    "yes": sf.Boolean(missing="N"),
    "ts": sf.Timestamp("2024-01-01", "2024-02-01", zone="UTC"),
    "drug": sf.Category("a", "b"),
}
DRUGS = sf.Table(
    pa.table({"drug": ["a"], "kind": ["x"]}),
    public=True,
    columns={"drug": sf.Category("a", "b"), "kind": sf.Category("x", "y")},
)
UNIT = sf.Unit("who", max_rows=2, max_groups=2)
VISITS = sf.Table(ROWS, unit=UNIT, columns=COLUMNS)
DATA = Dataset("clinic", {"visits": VISITS, "drugs": DRUGS})


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    ledger = tmp_path_factory.mktemp("lists") / "ledger.db"
    with sf.connect(
        {"visits": VISITS, "drugs": DRUGS}, dataset="clinic", budget=sf.Budget(1), ledger=ledger
    ) as opened:
        yield opened


LISTS = {
    "SELECT DISTINCT ward FROM visits": [["eye"], ["ear"], ["heart"]],
    "SELECT ward FROM visits GROUP BY ward": [["eye"], ["ear"], ["heart"]],
    "SELECT DISTINCT ward AS w FROM visits WHERE ward <> 'ear' ORDER BY w DESC LIMIT 1": [["heart"]],
    "SELECT DISTINCT ward, age FROM visits WHERE age < 2 AND (ward = 'eye' OR age = 1)": [
        ["eye", 0], ["eye", 1], ["ear", 1], ["heart", 1],
    ],
    "SELECT DISTINCT MONTH(day) AS m FROM visits WHERE day >= '2024-10-15' ORDER BY m": [[10], [11], [12]],
    "SELECT DISTINCT day FROM visits WHERE day < '2024-01-03'": [["2024-01-01"], ["2024-01-02"]],
    "SELECT DISTINCT half FROM visits": [[0.0], [0.5], [1.0]],
    "SELECT DISTINCT yes FROM visits": [[False], [True], [None]],
    "SELECT DISTINCT yes FROM visits WHERE yes IS NOT NULL": [[False], [True]],
    "SELECT DISTINCT DATE_TRUNC('month', ts) AS m FROM visits": [["2024-01-01"], ["2024-02-01"]],
    "SELECT DISTINCT kind FROM visits JOIN drugs USING (drug)": [["x"], ["y"]],
    "SELECT DISTINCT drug FROM visits UNION SELECT DISTINCT drug FROM visits ORDER BY 1": [["a"], ["b"]],
    "SELECT w, d FROM (SELECT DISTINCT ward AS w FROM visits WHERE ward = 'ear') CROSS JOIN "
    "(SELECT DISTINCT drug AS d FROM visits) ORDER BY d": [["ear", "a"], ["ear", "b"]],
    "SELECT half, RANK() OVER (ORDER BY half DESC) AS r, LAG(half) OVER (ORDER BY half) AS l "
    "FROM (SELECT DISTINCT half FROM visits) ORDER BY half": [[0.0, 3, None], [0.5, 2, 0.0], [1.0, 1, 0.5]],
    "SELECT DISTINCT age FROM visits WHERE ABS(age - 1) = 1": [[0], [2]],
    "SELECT DISTINCT age + 1 AS n FROM visits WHERE FLOOR(age / 2) = 1": [[3], [4]],
    "SELECT DISTINCT CASE WHEN age > 1 THEN 'old' ELSE 'new' END AS a FROM visits WHERE age * age = 4": [["old"]],
    "SELECT DISTINCT COALESCE(yes, TRUE) AS y FROM visits WHERE yes IS NULL": [[True]],
}  # fmt: skip


@pytest.mark.parametrize("text", LISTS)
def test_the_declared_list_is_free(session, text):
    answer = session.query(text, epsilon=1)
    assert answer.rows == LISTS[text]
    assert NOTE in answer.notes and answer.inner == () and answer.charge_id == ""
    assert answer.receipt() == "cost epsilon = 0, no charge" and not answer.recalled
    assert session.preview(text, epsilon=1).cost.epsilon == answer.cost.epsilon == "0"
    assert session.budget.spent == "0"


def test_a_list_says_nothing_about_the_data(tmp_path):
    for place, rows in enumerate((ROWS, ROWS.slice(0, 0))):
        tables = {"visits": sf.Table(rows, unit=UNIT, columns=COLUMNS)}
        ledger = tmp_path / f"{place}.db"
        with sf.connect(tables, dataset="clinic", budget=sf.Budget(1), ledger=ledger) as opened:
            answer = opened.query("SELECT DISTINCT ward FROM visits", epsilon=1)
        assert answer.rows == [["eye"], ["ear"], ["heart"]]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT ward FROM visits WHERE age > 3",
        "SELECT DISTINCT ward FROM visits WHERE age > 3 OR ward = 'eye'",
        "SELECT DISTINCT ward FROM visits WHERE job = 'cook'",
        "SELECT ward FROM visits WHERE age > 3 GROUP BY ward",
        "SELECT DISTINCT ward FROM visits WHERE who IN (SELECT who FROM visits WHERE age = 1)",
        "SELECT DISTINCT age, age + 1 FROM visits",
        "SELECT DISTINCT age FROM visits WHERE age > (SELECT AVG(age) FROM visits)",
        "SELECT DISTINCT DATE_TRUNC('month', ts) AS m FROM visits WHERE NOT ts < '2024-01-15'",
    ],
)
def test_what_would_be_read_as_what_occurs_is_refused(session, text):
    with pytest.raises(UnsupportedSql, match="which is itself private"):
        session.query(text, epsilon=1)


MONTHS = "SELECT DISTINCT MONTH(day) AS m FROM visits"
OTHERS = "SELECT DISTINCT MONTH(ts) AS m FROM visits"
READ_AS_WHAT_OCCURS = (
    "SELECT COUNT(*) FROM (SELECT DISTINCT ward FROM visits)",
    "SELECT COUNT(*) FROM (SELECT ward FROM visits GROUP BY ward)",
    f"SELECT MIN(m) + 1 AS a FROM ({MONTHS})",
    f"SELECT m, COUNT(*) OVER () AS n FROM ({MONTHS})",
    f"SELECT m FROM ({MONTHS}) GROUP BY m HAVING COUNT(*) > 0",
    f"SELECT COUNT(*) AS n FROM (({MONTHS}) UNION ({OTHERS}))",
    f"SELECT (SELECT COUNT(*) FROM ({MONTHS})) AS m, COUNT(*) AS n FROM visits",
    f"{MONTHS} EXCEPT {OTHERS}",
    f"{MONTHS} INTERSECT {OTHERS}",
    f"SELECT a.m FROM ({MONTHS}) AS a LEFT JOIN ({OTHERS}) AS b ON a.m = b.m WHERE b.m IS NULL",
    f"SELECT m FROM ({MONTHS}) AS a JOIN ({OTHERS}) AS b USING (m)",
    f"SELECT m FROM ({MONTHS}) AS a WHERE m NOT IN ({OTHERS})",
    f"SELECT m FROM ({MONTHS}) AS a WHERE EXISTS ({OTHERS})",
    f"SELECT m, n FROM (SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY 1) WHERE m IN ({OTHERS})",
)


@pytest.mark.parametrize("text", READ_AS_WHAT_OCCURS)
def test_declared_values_are_not_counted_or_compared_as_if_they_occurred(session, text):
    with pytest.raises(UnsupportedSql, match="would be read as what occurs"):
        session.query(text, epsilon=1)


def test_a_comparison_with_a_private_answer_is_answered():
    counts = "SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY 1"
    for text in (
        f"{MONTHS} EXCEPT SELECT m FROM ({counts}) WHERE n > 1",
        f"SELECT COUNT(*) AS n FROM ({MONTHS}) AS a LEFT JOIN ({counts}) AS c USING (m) WHERE n > 1",
    ):
        assert len(split(text, DATA, DAY).inner) == 1


def test_in_place_of_their_number_that_of_the_values_that_occur(session):
    with pytest.raises(UnsupportedSql) as refused:
        session.query(
            "SELECT COUNT(*) AS wards FROM (SELECT DISTINCT ward AS w FROM visits)", epsilon=1
        )
    assert refused.value.instead == "SELECT COUNT(DISTINCT ward) AS wards FROM visits"
    assert session.preview(refused.value.instead, epsilon=1).cost.epsilon == "1"


def test_of_a_text_the_list_is_a_question_with_a_threshold():
    for text in ("SELECT DISTINCT job FROM visits", "SELECT DISTINCT LEFT(job, 1) FROM visits"):
        assert understand(text, DATA).raw.is_open
        assert split(text, DATA, DAY) is None


def test_values_beside_a_private_answer_cost_what_the_answer_costs():
    text = (
        "SELECT w.ward, n FROM (SELECT DISTINCT ward FROM visits) AS w "
        "LEFT JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS c ON c.ward = w.ward"
    )
    parts = split(text, DATA, DAY)
    assert len(parts.inner) == 1 and parts.notes == (NOTE,)


def test_a_long_list_is_no_list():
    text = f"SELECT age, day, COUNT(*) FROM visits WHERE age < {MOST_ROWS // 366} GROUP BY 1, 2"
    assert declared_list(understand(text, DATA).raw) is not None
    assert declared_list(understand(text.replace("< ", "<= 5 OR age < "), DATA).raw) is not None
    dated = Dataset("long", {"t": sf.Table("t.csv", columns={"n": sf.Integer(1, MOST_ROWS + 1)})})
    assert declared_list(understand("SELECT n, COUNT(*) FROM t GROUP BY n", dated).raw) is None
    fewer = understand("SELECT n, COUNT(*) FROM t WHERE n > 1 GROUP BY n", dated).raw
    assert len(declared_list(fewer).expressions) == MOST_ROWS
