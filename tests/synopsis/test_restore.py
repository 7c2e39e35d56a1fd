# SPDX-License-Identifier: Apache-2.0
"""A synopsis that was written as JSON, and read again without the data and the ledger."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import synopsis
from sfumato.errors import UnknownName, WrongUse
from sfumato.metadata.dataset import Dataset

COLUMNS = {"age": sf.Integer(0, 63), "sex": sf.Category("F", "M")}
ROWS = pa.table({"age": [3, 5, 5, 60], "sex": ["F", "M", None, "M"]})
ELSEWHERE = Dataset("d", {"t": sf.Table("not-here.csv", columns=COLUMNS)})
ONE = synopsis.ranges("age")
BOTH = (
    ONE * synopsis.cells("sex")
    + 2 * synopsis.prefixes("age")
    + synopsis.queries(["SELECT sex, SUM(age) FROM t WHERE age > 9 GROUP BY sex"])
)


def written(folder: Path, wanted: synopsis.Wanted, **cost: object) -> str:
    with sf.connect(
        {"t": sf.Table(ROWS, columns=COLUMNS)},
        dataset="d", budget=sf.Budget(100, "1e-6"), ledger=folder / "l.db",
    ) as session:  # fmt: skip
        found = synopsis.measure(session, "t", wanted, **cost)
        again = synopsis.from_json(found.to_json(), ELSEWHERE)
    for test in ("age < 9", "age BETWEEN 3 AND 40"):
        assert again.answer(test) == found.answer(test)
    assert again.error("0.9", over="0.5") == found.error("0.9", over="0.5")
    sql = "SELECT age, COUNT(*) AS n FROM t WHERE age < 5 GROUP BY age"
    assert again.query(sql).equals(found.query(sql))
    assert again.to_json() == found.to_json()
    return found.to_json()


@pytest.mark.parametrize("wanted", [ONE, BOTH])
@pytest.mark.parametrize(
    "cost", [{"epsilon": "0.5"}, {"rho": "0.1"}, {"epsilon": 1, "delta": "1e-7"}]
)
def test_it_answers_as_before(tmp_path, wanted, cost):
    facts = json.loads(written(tmp_path, wanted, **cost))
    assert facts["charge_id"]
    assert facts["cost"]["items"]
    assert facts["declared"]


def test_other_declarations_are_refused(tmp_path):
    text = written(tmp_path, ONE, rho=1)
    wider = {"t": sf.Table("t.csv", columns={"age": sf.Integer(0, 64)})}
    with pytest.raises(WrongUse, match="other declarations"):
        synopsis.from_json(text, Dataset("d", wider))
    with pytest.raises(WrongUse, match="other declarations"):
        synopsis.from_json(text, Dataset("d", ELSEWHERE.tables, sf.ReplaceOne))
    with pytest.raises(UnknownName):
        synopsis.from_json(text, Dataset("d", {"u": wider["t"]}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", 2),
        ("integers", "AAAA"),
        ("integers", 3),
        ("wanted", []),
        ("wanted", [{"weight": "1", "factors": [["age", "magic"]]}]),
        ("strategy", {}),
        ("allowance", {"norm": "L9", "amount": "1", "delta": None}),
        ("allowance", {"norm": "L2", "amount": "1/0", "delta": None}),
    ],
)
def test_what_was_not_written_by_to_json_is_refused(tmp_path, key, value):
    facts = json.loads(written(tmp_path, ONE, rho=1))
    with pytest.raises(WrongUse, match="not a synopsis"):
        synopsis.from_json(json.dumps(facts | {key: value}), ELSEWHERE)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"format": 1}', "[" * 100_000])
def test_what_is_no_synopsis_is_refused(text):
    with pytest.raises(WrongUse, match="not a synopsis"):
        synopsis.from_json(text, ELSEWHERE)
