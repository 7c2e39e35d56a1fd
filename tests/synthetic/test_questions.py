# SPDX-License-Identifier: Apache-2.0
"""SQL on released rows."""

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.synthetic.questions import answered, by_key, keys_of

ROWS = pa.table({"age": [1, 2, 2], "sex": ["F", "M", "M"]})
COLUMNS = {"age": sf.Integer(0, 9), "sex": sf.Category("F", "M")}
DECLARED = Dataset("d", {"people": sf.Table("p.csv", columns=COLUMNS)})
SQL = "SELECT AVG(age) AS a, sex FROM people GROUP BY sex ORDER BY sex"


def test_results_by_the_keys_of_their_groups():
    assert keys_of(SQL, DECLARED) == [1]
    (found,) = answered(SQL, [{"people": ROWS}])
    assert by_key(found, [1]) == {("F",): [1.0], ("M",): [2.0]}


def test_samples_are_answered_one_after_the_other_in_one_connection(monkeypatch):
    opened, connect = [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda **options: opened.append(1) or connect(**options))
    samples = [{"people": ROWS.slice(0, rows)} for rows in (3, 1, 2)]
    found = list(answered("SELECT COUNT(*) AS n FROM people", iter(samples)))
    assert [each["n"].to_pylist() for each in found] == [[3], [1], [2]]
    assert len(opened) == 1


def test_groups_that_look_the_same_are_refused():
    hidden = "SELECT AVG(age) AS a FROM people GROUP BY sex"
    assert keys_of(hidden, DECLARED) == []
    with pytest.raises(UnsupportedSql, match="tell apart"):
        by_key(*answered(hidden, [{"people": ROWS}]), [])


def test_statements_that_no_session_answers_are_refused():
    for sql in ("SELECT * FROM people", "DROP TABLE people", "SELECT COUNT(*) FROM 'x.csv'"):
        with pytest.raises(sf.SfumatoError):
            keys_of(sql, DECLARED)


def test_files_are_out_of_reach(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(UnsupportedSql):
        list(answered(f"SELECT COUNT(*) FROM '{tmp_path}/x.csv'", [{"people": ROWS}]))
